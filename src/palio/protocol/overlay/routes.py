"""Routes: where a message goes next, by the landscape of this broker.

    interested   messages          which brokers want each
    start        these brokers     ──▶ [(neighbour, trail), ...] for a new message
    onward       trail and these   the same, at a broker on the way
    hop, split                     unicast, for what has an address

    trail     msgpack [hops left, header]; the header is that of the scheme (2006, 3): for PSF, iPS
              and PIF the name of the source, for DRP the names of the brokers that it is for

The way depends on the map (`ways.py`) and on who wants the message: one forwarding table of the
filters of all other brokers tells. Both follow the landscape when the next message comes, each for
itself: a subscription changes one filter of the table, a link the map.

While brokers see different maps, messages may go astray. Then they are dropped and counted:

    astray    from a neighbour that does not lie towards the source, or it would go back there
    unknown   the trail names nobody who is on the map
    spent     it has made all its hops

So a message is never passed on by a broker for two neighbours, and makes at most as many packets as
there are brokers, times the hops; with DRP, as there are receivers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, TypeAlias

import msgspec

from palio.errors import InvalidTopology
from palio.model.message import Message, as_message
from palio.model.predicate import Filter, Predicate
from palio.protocol.answers import Answers, Matched
from palio.protocol.frames import BrokenFrame
from palio.protocol.overlay.demand import Demand
from palio.protocol.overlay.landscape import Landscape
from palio.protocol.overlay.ways import WAYS, Ways, first_hops
from palio.protocol.runs import Run
from palio.routing.schemes import SCHEMES, scheme
from palio.routing.schemes.delivery import Delivery
from palio.routing.topology import Topology

DROPS = ("astray", "unknown", "spent")

Sends: TypeAlias = list[tuple[str, bytes]]
"""Neighbours, each with the trail of the message that it gets."""

_Hops: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[tuple[int, str | tuple[str, ...]]] = msgspec.msgpack.Decoder(
    tuple[_Hops, str | tuple[str, ...]]
)


class Routes:
    """The next hops of one broker."""

    def __init__(self, me: str, scheme_name: str, landscape: Landscape) -> None:
        if scheme_name not in SCHEMES:
            raise InvalidTopology(f"no scheme {scheme_name!r}; there are {', '.join(SCHEMES)}")
        self.dropped = dict.fromkeys(DROPS, 0)
        """How many messages were dropped, by the reason."""
        self._me, self._scheme, self._landscape = me, scheme_name, landscape
        self._wanting: Answers[str] = Answers(str)
        self._changes = landscape.follow()
        self._version = -1
        self._net: Topology | None = None
        self._hops: dict[str, str] = {}
        self._ways: Ways | None = None
        self._demand: Demand | None = None  # from the first question on

    # ---- messages without an address

    def interested(self, texts: Sequence[bytes]) -> list[tuple[str, ...]]:
        """The other brokers that are known to want each message, whether on the map or not. The
        messages are JSON objects; InvalidValue if one is not."""
        self._follow()
        return self._wanting.of(texts)

    def interested_in(self, run: Run) -> Matched[str]:
        """The same for a run."""
        self._follow()
        return self._wanting.of_run(run)

    def start(self, wanting: Collection[str]) -> Sends:
        """Where a new message goes first that these brokers want."""
        self._follow()
        if not self._hops or not wanting:
            return []
        hops = len(self._hops)  # no way has more
        if self._scheme == "DRP":
            return self._part(self._hops.keys() & wanting, hops, None)
        return self._pass(self._me, wanting, hops, None)

    def onward(
        self, trail: bytes | msgspec.Raw, wanting: Collection[str], came_from: str, count: int = 1
    ) -> Sends:
        """Where so many messages go next that came from a neighbour; `BrokenFrame` if their trail is
        none."""
        try:
            left, header = _decoder.decode(trail)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise BrokenFrame(f"the trail of a message from {came_from!r}: {error}") from None
        if isinstance(header, str) is (self._scheme == "DRP"):
            raise BrokenFrame(
                f"the trail of a message from {came_from!r} is not one of {self._scheme}; "
                "all brokers of a network use one scheme"
            )
        self._follow()
        left = min(left, len(self._hops))  # whatever the others think
        if not isinstance(header, str):
            return self._part(header, left, came_from, count)
        if self._net is None or header not in self._net:
            self.dropped["unknown"] += count
            return []
        return self._pass(header, wanting, left, came_from, count)

    def _part(
        self, brokers: Iterable[str], left: int, came_from: str | None, count: int = 1
    ) -> Sends:
        """DRP: the receivers by next hop."""
        parts: dict[str, list[str]] = {}
        for broker in sorted(brokers):
            hop = self._hops.get(broker)
            if hop is None and broker != self._me:
                self.dropped["unknown"] += count
            elif hop is not None and hop == came_from:
                self.dropped["astray"] += count
            elif hop is not None:
                parts.setdefault(hop, []).append(broker)
        if parts and not left:
            self.dropped["spent"] += count
            return []
        return [(hop, _encode((left - 1, names))) for hop, names in parts.items()]

    def _pass(
        self,
        source: str,
        wanting: Collection[str],
        left: int,
        came_from: str | None,
        count: int = 1,
    ) -> Sends:
        """PSF, iPS, PIF: along the tree of the source."""
        if self._ways is None:
            return []
        way = self._ways.of(source)
        if way.giver != came_from:
            self.dropped["astray"] += count
            return []
        hops = [hop for hop, behind in way.behind if not behind.isdisjoint(wanting)]
        if hops and not left:
            self.dropped["spent"] += count
            return []
        trail = _encode((left - 1, way.header)) if hops else b""
        return [(hop, trail) for hop in hops]

    # ---- what has an address

    def hop(self, broker: str) -> str | None:
        """The neighbour that is next on the way to a broker; None: there is no way."""
        self._follow()
        return self._hops.get(broker)

    def split(self, brokers: Iterable[str]) -> dict[str, list[str]]:
        """Brokers by the next hop; without those that cannot be reached."""
        self._follow()
        parts: dict[str, list[str]] = {}
        for broker in brokers:
            hop = self._hops.get(broker)
            if hop is not None:
                parts.setdefault(hop, []).append(broker)
        return parts

    # ---- what others want, and why

    def anyone_wants(self) -> Predicate | None:
        """What brokers that can be reached want, reduced; None: too many things to say."""
        self._follow()
        if self._demand is None:
            self._demand = Demand()
            for broker in self._hops:
                self._demand.add(self._landscape.wanted(broker).filters)
        return self._demand.reduced()

    def explain(
        self, message: Message | Mapping[str, object], source: str | None = None
    ) -> Delivery | None:
        """The packets that a message causes, as this broker sees the network, from here or from
        another source; None: this broker is alone.

        `predicates` of the delivery hold, for each broker that wants it, the first filter that says
        so.
        """
        self._follow()
        if self._net is None:
            return None
        known = as_message(message)
        reasons: dict[str, Predicate] = {}
        (wanting,) = self._wanting.of([known.to_json().encode()])
        for broker in sorted((self._hops.keys() & wanting) | {self._me}):
            filters = self._landscape.wanted(broker).filters
            reason = next((found for found in filters if found.matches(known)), None)
            if reason is not None:
                reasons[broker] = Predicate((reason,))
        return scheme(self._scheme, self._net, reasons).deliver(source or self._me, known)

    # ---- following the landscape

    def _follow(self) -> None:
        """Take over what has changed in the landscape."""
        if self._version == self._landscape.version:
            return
        self._version = self._landscape.version
        for broker, news in self._changes.items():
            self._wanting.change(broker, news)
        net = self._landscape.topology()
        before = self._hops
        if net is not self._net:
            self._net = net
            self._hops = {} if net is None else first_hops(net, self._me)
            made = WAYS.get(self._scheme)
            self._ways = None if net is None or made is None else made(net, self._me)
        if self._demand is not None:
            self._shift(self._demand, before)
        self._changes.clear()

    def _shift(self, demand: Demand, before: Mapping[str, str]) -> None:
        """Bring the demand up to date: who came and went, and what the others changed."""
        changes = self._changes
        for broker in sorted(self._hops.keys() - before.keys()):
            demand.add(self._landscape.wanted(broker).filters)
        for broker in sorted(before.keys() - self._hops.keys()):
            demand.remove(_earlier(self._landscape.wanted(broker).filters, changes.get(broker, {})))
        for broker in sorted(changes.keys() & before.keys() & self._hops.keys()):
            demand.add(f for f, is_wanted in changes[broker].items() if is_wanted)
            demand.remove(f for f, is_wanted in changes[broker].items() if not is_wanted)


def _earlier(filters: Iterable[Filter], news: Mapping[Filter, bool]) -> set[Filter]:
    """What a broker wanted before these news."""
    added = {found for found, is_wanted in news.items() if is_wanted}
    return (set(filters) - added) | (news.keys() - added)
