"""A router's patterns: who watches what, what was delegated to whom, and what is matched here.

    Watch from a client      ┐          ┌─▶ filters that the router itself subscribes to
    Watch from a neighbour   ├─▶ plan ──┼─▶ Watch(id) to neighbours        <n> in the residual
                             ┘          └─▶ a matcher of the residual (none: answers are passed on)
    Publish by subscription  ┐
    Assembled(id), Sieved(id)├─▶ matcher ──▶ Assembled, Sieved to whoever watches
    Tick                     ┘

Plans. Delegation needs advertisements: without them (or below a master, which advertises nothing)
a pattern is matched at the router of who watches it, and its parts are plain subscriptions. What a
neighbour watches is planned as if that neighbour had nothing, so nothing is ever handed back. Plans
depend on the pattern and the advertisements only. When advertisements come or go, watches are
planned again. If the delegations and the residual are the same, nothing happens; otherwise they
are taken back, and matching starts anew, here and there, with what comes from then on.

Time. Messages are ordered by time, publisher and number; they travel on different ways, and what
was delegated is held up there too. The watch of a client has the router's `lateness`: for so long
messages are held. What is delegated gets that less `hop`, the most that a link takes, and a router
with less than a `hop` left does not delegate. So if messages reach every router within `lateness`,
and `hop` less for each link between it and who watches, nothing is late anywhere; what is late is
dropped, and counted. Held messages are let go by a `Tick`, or by later messages.

What always holds:
- of a message, each matcher takes one copy, by whatever subscriptions and sieves it comes: a second
  is known while it could still be taken, after that it is late.
- in a step, messages are sent on before what was assembled of them.
- what comes for a watch that was taken back is dropped: ids are not used again while a router
  lives. After a `Joined` a neighbour may have forgotten its ids: it gets nothing until it has said
  by a `Restate` what it watches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from palio.errors import RoutingError
from palio.model.advertisement import Advertisement
from palio.model.covering import intersects
from palio.model.predicate import Filter
from palio.routing.data_path import DataPath
from palio.routing.packets import Role, Send
from palio.routing.patterns.automaton import Stamp, stamp
from palio.routing.patterns.monitor import Matcher, matcher
from palio.routing.patterns.packets import Assembled, Compound, Sieved, Unwatch, Watch
from palio.routing.patterns.planning import Delegation, Plan, here, plan
from palio.routing.publication import Peer, Publish

SEEN_MIN = 64  # stamps that are remembered before it is worth forgetting some


class PatternSettings(msgspec.Struct, frozen=True):
    """How a router deals with patterns. Times are in microseconds."""

    delegates: bool = True
    """Give sub-patterns to neighbours; False: match all of a pattern where it is watched."""
    lateness: int = 0
    """How long messages are held to bring them into order; 0: they are taken as they come."""
    hop: int = 0
    """The most that a link takes: so much less lateness has a router that is delegated to."""

    def __post_init__(self) -> None:
        if self.lateness < 0 or self.hop < 0:
            raise RoutingError(f"lateness and hop are 0 or more microseconds; got {self}")


class Watched:
    """One watch, and how it is done."""

    def __init__(self, peer: Peer, watch: Watch, lateness: int) -> None:
        self.peer, self.watch, self.lateness = peer, watch, lateness
        self.plan = Plan()
        self.wanted: dict[Filter, None] = {}
        self.delegated: dict[int, Delegation] = {}  # by the id of our watch at the neighbour
        self._parts = here(watch.pattern).parts
        self._matcher: Matcher[Any] | None = None
        self._seen: dict[Stamp, None] = {}
        self._seen_max = SEEN_MIN
        self._late = 0

    def begin(self, made: Plan) -> None:
        """Start anew, by this plan."""
        self._late = self.late
        self.plan = made
        self._seen = {}
        self._matcher = None
        if made.residual is not None:
            self._matcher = matcher(self.watch.task, made.residual, lateness=self.lateness)

    def is_concerned(self, advertisements: Collection[Advertisement]) -> bool:
        """May a part come from one of these? All others leave the plan as it is."""
        return any(intersects(a, part) for a in advertisements for part in self._parts)

    @property
    def late(self) -> int:
        """How many messages and compounds came too late."""
        return self._late + (self._matcher.counters.late if self._matcher is not None else 0)

    @property
    def release_at(self) -> int | None:
        return self._matcher.release_at if self._matcher is not None else None

    def take(self, publication: Publish) -> list[Any]:
        """A message of a part; a copy is dropped."""
        if self._matcher is None:
            return []
        mark = stamp(publication)
        if mark in self._seen:
            return []
        self._seen[mark] = None
        answers = self._matcher.feed(publication)
        if len(self._seen) > self._seen_max:
            floor = self._matcher.floor
            self._seen = {m: None for m in self._seen if floor is None or m[0] >= floor}
            self._seen_max = max(SEEN_MIN, 2 * len(self._seen))
        return answers

    def hear(self, number: int, answer: Compound | Publish) -> list[Any]:
        """What a neighbour has found."""
        if self._matcher is None:
            return [answer]
        if isinstance(answer, Publish):
            return self.take(answer)
        return self._matcher.feed(Assembled(number, answer))

    def expire(self, now: int) -> list[Any]:
        return self._matcher.expire(now) if self._matcher is not None else []


class Watches:
    """All watches at a router; says what it wants, and what is to be sent."""

    def __init__(
        self,
        settings: PatternSettings,
        peers: Mapping[Peer, Role],
        advertised: Callable[[Peer], Iterable[Advertisement]] | None,
    ) -> None:
        """`advertised`: what a peer may send; None: nobody advertises."""
        self._settings = settings
        self._peers = peers
        self._advertised = advertised
        self._watched: dict[str, Watched] = {}
        self._unplanned: dict[str, None] = {}
        self._delegated: dict[int, Watched] = {}
        self._withdrawn: list[Send] = []  # in this step
        self._ids = 0
        self._muted: set[Peer] = set()
        self._paths = DataPath()  # from messages to watches
        self._wanted: list[Filter] | None = []
        self._late = 0  # in watches that are gone

    # ---- what is known

    def __iter__(self) -> Iterator[Watched]:
        """In the order in which they came."""
        return iter(self._watched.values())

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def wanted(self) -> list[Filter]:
        """What the router itself subscribes to: the parts that are matched here."""
        if self._wanted is None:
            self._wanted = list({f: None for one in self for f in one.wanted})
        return self._wanted

    @property
    def due(self) -> int | None:
        """When a `Tick` will let a held message go; None: nothing is held."""
        return min((at for t in self if (at := t.release_at) is not None), default=None)

    @property
    def late(self) -> int:
        """How many messages and compounds came too late to be matched, ever."""
        return self._late + sum(one.late for one in self)

    def told(self, peer: Peer) -> tuple[Watch, ...]:
        """What is delegated to a peer."""
        return tuple(
            self._word(id, one)
            for id, one in self._delegated.items()
            if one.delegated[id].peer == peer
        )

    # ---- what peers say

    def say(self, peer: Peer, watch: Watch) -> None:
        """A peer watches."""
        key = _key(peer, watch.id)
        known = self._watched.get(key)
        if known is not None:
            if known.watch == watch:
                return
            self._drop(key)
        lateness = self._settings.lateness if watch.lateness is None else watch.lateness
        self._watched[key] = Watched(peer, watch, lateness)
        self._unplanned[key] = None

    def cancel(self, peer: Peer, id: int) -> None:
        """A peer does not watch this any more."""
        if _key(peer, id) in self._watched:
            self._drop(_key(peer, id))

    def restate(self, peer: Peer, watches: Iterable[Watch]) -> None:
        """A peer watches these and nothing else; those that it watched before go on."""
        stated = {watch.id: watch for watch in watches}
        for one in [t for t in self if t.peer == peer and t.watch.id not in stated]:
            self.cancel(peer, one.watch.id)
        for watch in stated.values():
            self.say(peer, watch)
        self._muted.discard(peer)

    def mute(self, peer: Peer) -> None:
        """Send a peer nothing until it has restated."""
        self._muted.add(peer)

    def _drop(self, key: str) -> None:
        one = self._watched.pop(key)
        self._unplanned.pop(key, None)
        self._late += one.late
        self._withdraw(one)
        self._paths.change(key, dict.fromkeys(one.wanted, False))
        self._wanted = None

    # ---- plans

    def settle(self, news: Collection[Advertisement], *, again: bool) -> list[Send]:
        """Plan what is new, again what advertisements that came or went concern, or `again` all
        watches; what neighbours are told because of it."""
        chosen = list(self._unplanned)
        if again or news:
            chosen += [
                key
                for key, one in self._watched.items()
                if key not in self._unplanned and (again or one.is_concerned(news))
            ]
        offers = self._offers() if chosen else None
        begun: list[Send] = []
        for key in chosen:
            one = self._watched[key]
            made = self._plan(one, offers)
            is_same = (made.delegations, made.residual) == (
                one.plan.delegations,
                one.plan.residual,
            )
            if key in self._unplanned or not is_same:
                self._withdraw(one)
                one.begin(made)
                begun += self._delegate(one)
            self._want(key, one, made)
        self._unplanned = {}
        sends, self._withdrawn = self._withdrawn + begun, []
        return sends

    def _offers(self) -> dict[Peer, tuple[Advertisement, ...]] | None:
        """What comes from whom; None: that is not known, and nothing can be delegated."""
        is_below = Role.MASTER in self._peers.values()
        if self._advertised is None or is_below or not self._settings.delegates:
            return None
        return {peer: tuple(self._advertised(peer)) for peer in self._peers}

    def _plan(self, one: Watched, offers: dict[Peer, tuple[Advertisement, ...]] | None) -> Plan:
        if offers is None or one.lateness < self._settings.hop:
            return here(one.watch.pattern)
        routers = [peer for peer, role in self._peers.items() if role is Role.NEIGHBOUR]
        others = {p: a for p, a in offers.items() if p != one.peer or p not in routers}
        return plan(one.watch.pattern, others, routers, one.watch.task)

    def _want(self, key: str, one: Watched, made: Plan) -> None:
        """Subscribe to the parts that nobody else matches."""
        wanted = dict.fromkeys(f for predicate in made.parts for f in predicate)
        news = {f: False for f in one.wanted if f not in wanted}
        news |= {f: True for f in wanted if f not in one.wanted}
        if news:
            self._paths.change(key, news)
            self._wanted = None
        one.plan, one.wanted = made, wanted

    def _delegate(self, one: Watched) -> list[Send]:
        sends = []
        for delegation in one.plan.delegations:
            self._ids += 1
            self._delegated[self._ids] = one
            one.delegated[self._ids] = delegation
            sends.append(Send(delegation.peer, self._word(self._ids, one)))
        return sends

    def _withdraw(self, one: Watched) -> None:
        for id, delegation in one.delegated.items():
            del self._delegated[id]
            if delegation.peer in self._peers:
                self._withdrawn.append(Send(delegation.peer, Unwatch(id)))
        one.delegated = {}

    def _word(self, id: int, one: Watched) -> Watch:
        delegation = one.delegated[id]
        lateness = one.lateness - self._settings.hop
        return Watch(id, delegation.pattern, delegation.task, lateness)

    # ---- messages

    def publish(self, source: Peer, publication: Publish) -> list[Send]:
        """A message that the router subscribed to. A neighbour that watches has what
        comes from there, and planned with the rest."""
        found = self._paths.peers(publication.message)
        is_router = self._peers[source] is Role.NEIGHBOUR
        return [
            send
            for key, one in self._watched.items()
            if key in found and not (is_router and one.peer == source)
            for send in self._answer(one, one.take(publication))
        ]

    def hear(self, peer: Peer, packet: Assembled | Sieved) -> list[Send]:
        """An answer to what was delegated; dropped if that was taken back meanwhile."""
        one = self._delegated.get(packet.id)
        if one is None or one.delegated[packet.id].peer != peer:
            return []
        found = packet.compound if isinstance(packet, Assembled) else packet.publication
        return self._answer(one, one.hear(one.delegated[packet.id].number, found))

    def tick(self, now: int) -> list[Send]:
        return [send for one in self for send in self._answer(one, one.expire(now))]

    def _answer(self, one: Watched, answers: list[Any]) -> list[Send]:
        if one.peer in self._muted:
            return []
        id = one.watch.id
        return [
            Send(one.peer, Sieved(id, a) if isinstance(a, Publish) else Assembled(id, a))
            for a in answers
        ]


def _key(peer: Peer, id: int) -> str:
    return f"{id} {peer}"
