"""Link-state flooding: how brokers learn of each other's links, interests and durable subscriptions.

    a link is up          Digest both ways; then the LinkStates that the other end lacks
    a state changes       LinkStates to all neighbours; received ones to all but their sender
    a base is missing     Missing; the answer is the whole LinkState

A large state comes in parts (policies/state_parts.py) and is sent by state_sender.py. Its predicates are
parsed and its record is made by jobs; routing follows in slices (network_view.py, remote_durable.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from palio.errors import InvalidPredicate, LimitExceeded
from palio.model.language import parse
from palio.model.predicate import Filter
from palio.protocol.broker.effects import BackgroundJob, Notice, Output
from palio.protocol.broker.links import Link
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.broker.remote_durable import RemoteSubscriptions
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.broker.state_sender import StateSender, state_frame
from palio.protocol.policies.broker_record import Parsed, invalid_predicate, parse_all
from palio.protocol.policies.link_state import Heard, LinkStateDatabase, texts_of
from palio.protocol.policies.state_parts import StateAssembly, is_large
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.control import Digest, LinkState, LinkStates, Missing
from palio.protocol.wire.frames import BrokenFrame
from palio.protocol.wire.handshake import RolesDiffer
from palio.protocol.wire.parts import digest_parts, missing_parts

DIGEST_MAX = 1 << 20
"""Brokers in a digest."""
SMALL_TEXTS = 2048
"""Characters of predicates that are parsed at once; with more, parsing is a job."""
SMALL_FILTERS = 8
"""Filters of a predicate that is parsed at once."""
_JOB_TEXTS = 16 << 10
"""Characters of predicates that one job parses, about."""


class _Incoming:
    """What a neighbour has begun to send."""

    __slots__ = ("digest", "link", "refused", "states")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.states = StateAssembly()
        self.digest: list[tuple[str, str, int]] = []
        self.refused = 0
        """States that are not believed; the first one is logged."""


class Flooding:
    """`now_us` returns the current time."""

    def __init__(
        self,
        database: LinkStateDatabase,
        neighbours: NeighbourLinks,
        remote: RemoteSubscriptions,
        output: Output,
        work: WorkList,
        now_us: Callable[[], int],
    ) -> None:
        self._database = database
        self._remote = remote
        self._neighbours = neighbours
        self._output = output
        self._work, self._now_us = work, now_us
        self._senders: dict[str, StateSender] = {}
        self._incoming: dict[str, _Incoming] = {}

    def restore(self) -> None:
        """Take what is stored of other brokers."""
        self._remote.restore()

    # ---- neighbours

    def greet(self, link: Link) -> None:
        """Send a new neighbour the digest of this database."""
        self._drop(link.neighbour)
        self._senders[link.neighbour] = StateSender(link, self._database, self._output, self._work)
        self._incoming[link.neighbour] = _Incoming(link)
        for part in digest_parts(self._database.digest()):
            self._output.say(link.number, part)
        self._set_links()

    def leave(self, neighbour: str) -> None:
        """The link to a neighbour is down."""
        self._drop(neighbour)
        self._set_links()

    def _set_links(self) -> None:
        self._database.set_links(self._neighbours.weights, self._neighbours.master)

    def check_masters(self, neighbour: str, role: NeighbourRole) -> None:
        """Raise RolesDiffer if masters would form a cycle with a new neighbour of this role."""
        if role is NeighbourRole.PEER:
            return
        pair = (self._database.me, neighbour)
        below, above = pair if role is NeighbourRole.MASTER else pair[::-1]
        cycle = [above, *self._database.masters_of(above)]
        if below in cycle:
            names = " -> ".join([below, *cycle[: cycle.index(below) + 1]])
            raise RolesDiffer(
                f"masters form a cycle, {names}, each the slave of the next: change role in "
                f"[neighbours] of one of these pairs, for example of {below!r} and {above!r} to peer"
            )

    def resume(self, neighbour: str) -> None:
        """The link to a neighbour is not congested any more."""
        self._senders[neighbour].resume()

    def _drop(self, neighbour: str) -> None:
        sender = self._senders.pop(neighbour, None)
        if sender is not None:
            sender.is_closed = True
        self._incoming.pop(neighbour, None)

    def answer(self, link: Link, message: Digest | Missing) -> None:
        """Send the link states that a neighbour lacks."""
        if isinstance(message, Missing):
            self._senders[link.neighbour].request(message.brokers)
            return
        digest = self._incoming[link.neighbour].digest
        digest += message.known
        if len(digest) > DIGEST_MAX:
            raise BrokenFrame(f"a digest of more than {DIGEST_MAX:,} brokers")
        if not message.more:
            self._senders[link.neighbour].request(self._database.newer_than(digest))
            digest.clear()

    # ---- link states of neighbours

    def hear(self, link: Link, message: LinkStates) -> Slices | None:
        """Process link states of a neighbour, and flood those that are new. The states before an
        invalid one are processed like any others: the neighbour would not send them again. Returns
        the rest of what takes long."""
        for at, state in enumerate(message.states):
            parsed = self._parsed_at_once(state)
            if parsed is None:
                return self._hear_in_slices(link, message.states[at:])
            heard = self._database.outdated(state, self._now_us())
            if heard is None:
                change = self._database.begin_change(state, parsed, self._now_us(), in_place=True)
                change.run()
                heard = self._database.end_change(change)
                assert heard is not None
            self._follow(link, state, heard)
        return None

    def _parsed_at_once(self, state: LinkState) -> Parsed | None:
        """The filters of the predicates in a state; None: it takes long to parse or to apply them."""
        count = len(state.wanted) + len(state.durable) + len(state.unwanted) + len(state.undurable)
        if state.part or state.more or count > SMALL_TEXTS // 32:
            return None
        if self._database.outdated(state, self._now_us()) is not None:
            return {}
        if not self._database.is_small_change(state):
            return None
        known = self._database.known_filters(state)
        left = SMALL_TEXTS
        for text in texts_of(state):
            if text not in known:
                left -= len(text)
                filters = _parse_small(state, text) if left >= 0 else None
                if filters is None:
                    return None
                known[text] = filters
        return known

    def _hear_in_slices(self, link: Link, states: tuple[LinkState, ...]) -> Slices:
        incoming = self._incoming[link.neighbour]
        for state in states:
            heard = self._database.outdated(state, self._now_us())
            if heard is None and not incoming.states.continues(state):
                heard = Heard(is_missing=True)
            if heard is not None:
                self._follow(link, state, heard)
                continue
            known = self._database.known_filters(state)
            for texts in _jobs([text for text in texts_of(state) if text not in known]):
                job = BackgroundJob(partial(parse_all, state, texts))
                yield job
                known |= job.result()
            complete = incoming.states.add(state, known)
            if complete is not None:
                yield from self._apply(link, *complete)

    def _apply(self, link: Link, state: LinkState, parsed: Parsed) -> Slices:
        """Apply a large state. While its record is made, another neighbour may send a newer one."""
        heard = self._database.outdated(state, self._now_us())
        while heard is None:
            change = self._database.begin_change(state, parsed, self._now_us())
            job = BackgroundJob(change.run)
            yield job
            job.result()
            heard = self._database.end_change(change) or self._database.outdated(
                state, self._now_us()
            )
        self._follow(link, state, heard)

    def _follow(self, link: Link, state: LinkState, heard: Heard) -> None:
        """Do what follows from a state that was heard."""
        if heard.refused:
            self._refuse(link.neighbour, heard.refused)
        if heard.is_missing:
            for part in missing_parts([state.broker]):
                self._output.say(link.number, part)
        if heard.is_new:
            self._flood(state, link.neighbour)
        if heard.removed or heard.added:
            self._remote.change(state.broker, heard)

    def _refuse(self, neighbour: str, reason: str) -> None:
        """Have the first state of a link that is not believed logged: there may be very many."""
        incoming = self._incoming.get(neighbour)
        if incoming is not None:
            incoming.refused += 1
            if incoming.refused == 1:
                fields: dict[str, object] = {"neighbour": neighbour, "reason": reason}
                self._output.log(Notice("a link state is refused", fields, is_warning=True))

    # ---- own link states

    def forget(self, broker: str, now_us: int) -> None:
        """Remove the durable subscriptions of a broker that will not return."""
        state, facts = self._database.forget(broker, now_us)
        self._flood(state)
        self._remote.change(broker, Heard(removed=facts))

    def announce(self, now_us: int) -> None:
        """Flood what has changed at this broker."""
        state = self._database.news(now_us)
        if state is not None:
            self._flood(state)

    def _flood(self, state: LinkState, but: str = "") -> None:
        """Send a state to all neighbours but one. Of one that needs parts, the complete state is sent."""
        others = [sender for name, sender in self._senders.items() if name != but]
        if not others:
            return
        if is_large(state):
            for sender in others:
                sender.request((state.broker,))
            return
        frame = state_frame(state)
        for sender in others:
            sender.flood(state, frame)


def _parse_small(state: LinkState, text: str) -> tuple[Filter, ...] | None:
    """The filters of a predicate; None: they are many."""
    try:
        return parse(text, limit=SMALL_FILTERS).filters
    except LimitExceeded:
        return None
    except InvalidPredicate as error:
        raise invalid_predicate(state, error) from None


def _jobs(texts: list[str]) -> list[list[str]]:
    """Predicates, in groups that one job parses."""
    groups: list[list[str]] = []
    size = _JOB_TEXTS
    for text in texts:
        if size >= _JOB_TEXTS:
            groups.append([])
            size = 0
        groups[-1].append(text)
        size += len(text)
    return groups
