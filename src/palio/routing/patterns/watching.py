"""The patterns of a router: its watches, what is delegated, and what is matched here.

    Watch from a client      ┐          ┌─▶ filters that the router itself subscribes to
    Watch from a neighbour   ├─▶ plan ──┼─▶ Watch(id) to neighbours        <n> in the residual
                             ┘          └─▶ a matcher of the residual (None: answers are forwarded)
    Publish by subscription  ┐
    Assembled(id), Sieved(id)├─▶ matcher ──▶ Assembled, Sieved to the watcher
    Tick                     ┘

Plans. Delegation needs advertisements: without them (or below a master, which advertises nothing)
a pattern is matched at the router of its watcher, and its parts are plain subscriptions. A watch of a
neighbour is planned without the advertisements of that neighbour, so nothing is delegated back to
it. Plans depend on the pattern and the advertisements only. When advertisements change, new plans
are made. If the delegations and the residual are equal, nothing happens; otherwise the delegations
are removed, and matching restarts at all routers with the messages from then on.

Time. Messages are ordered by time, publisher and number. They take different paths, and delegation
delays them further. A client's watch has the router's `lateness`: messages are held for so long. A
delegation gets `hop` less, the longest delay of a link, and a router with less than a `hop` left does
not delegate. So if messages reach every router within `lateness`, less one `hop` for each link
between it and the watcher, no message is late. Late messages are dropped and counted. A `Tick`, or a
later message, releases held messages.

Invariants:
- each matcher takes one copy of a message, however many subscriptions and sieves let it pass: a
  second copy is recognized for as long as it would not be late.
- within a step, messages are sent before the compounds made of them.
- answers for a removed watch are dropped: a router never reuses an id. After a `Joined` a neighbour
  may have lost its ids: it gets nothing until its `Restate` has listed its watches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from palio.errors import RoutingError
from palio.model.advertisement import Advertisement
from palio.model.covering import intersects
from palio.model.predicate import Filter
from palio.routing.interest_table import InterestTable
from palio.routing.packets import Role, Send
from palio.routing.patterns.automaton import Stamp, stamp
from palio.routing.patterns.monitor import Matcher, matcher
from palio.routing.patterns.packets import Assembled, Compound, Sieved, Task, Unwatch, Watch
from palio.routing.patterns.planning import Delegation, PatternPlan, here, plan
from palio.routing.publication import Peer, Publish

_WatchKey: TypeAlias = tuple[Peer, int]
"""The watcher, and its id of the watch."""

SEEN_MIN = 64  # stamps that are kept before old ones are dropped


class PatternSettings(msgspec.Struct, frozen=True):
    """How a router matches patterns. Times are in microseconds."""

    delegates: bool = True
    """Delegate sub-patterns to neighbours; False: match patterns at the router of the watcher."""
    lateness: int = 0
    """How long messages are held to bring them into order; 0: not at all."""
    hop: int = 0
    """The longest delay of a link; a delegation has so much less lateness."""

    def __post_init__(self) -> None:
        if self.lateness < 0 or self.hop < 0:
            raise RoutingError(f"lateness and hop are 0 or more microseconds; got {self}")


class ActiveWatch:
    """A watch, its plan, and the matcher of what is matched here."""

    def __init__(self, peer: Peer, watch: Watch, lateness: int) -> None:
        self.peer, self.watch, self.lateness = peer, watch, lateness
        self.plan = PatternPlan()
        self.wanted: dict[Filter, None] = {}
        self.delegated: dict[int, Delegation] = {}  # by the id of our watch at the neighbour
        self._parts = here(watch.pattern).parts
        self._matcher: Matcher[Any] | None = None
        self._seen: dict[Stamp, None] = {}
        self._seen_max = SEEN_MIN
        self._late = 0

    def begin(self, made: PatternPlan) -> None:
        """Restart matching with this plan."""
        self._late = self.late
        self.plan = made
        self._seen = {}
        self._matcher = None
        if made.residual is not None:
            self._matcher = matcher(self.watch.task, made.residual, lateness=self.lateness)

    def is_concerned(self, advertisements: Collection[Advertisement]) -> bool:
        """Whether one of these advertisements can change the plan."""
        return any(intersects(a, part) for a in advertisements for part in self._parts)

    @property
    def late(self) -> int:
        """How many messages and compounds came too late."""
        return self._late + (self._matcher.counters.late if self._matcher is not None else 0)

    @property
    def release_at(self) -> int | None:
        return self._matcher.release_at if self._matcher is not None else None

    def take(self, publication: Publish) -> list[Any]:
        """Feed a message of a part; a second copy is dropped."""
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
        """Feed the answer of a neighbour to a delegation."""
        if self._matcher is None:
            return [answer]
        if isinstance(answer, Publish):
            return self.take(answer)
        return self._matcher.feed(Assembled(number, answer))

    def expire(self, now: int) -> list[Any]:
        return self._matcher.expire(now) if self._matcher is not None else []


class Watches:
    """All watches of a router; computes what it subscribes to, and what it sends."""

    def __init__(
        self,
        settings: PatternSettings,
        peers: Mapping[Peer, Role],
        advertised: Callable[[Peer], Iterable[Advertisement]] | None,
    ) -> None:
        """`advertised`: the advertisements of a peer; None: advertisements are not in use."""
        self._settings = settings
        self._peers = peers
        self._advertised = advertised
        self._watched: dict[_WatchKey, ActiveWatch] = {}
        self._unplanned: dict[_WatchKey, None] = {}
        self._delegated: dict[int, ActiveWatch] = {}
        self._withdrawn: list[Send] = []  # in this step
        self._ids = 0
        self._muted: set[Peer] = set()
        self._table = InterestTable()  # from messages to watches
        self._wanted: list[Filter] | None = []
        self._late = 0  # in watches that are gone

    # ---- queries

    def __iter__(self) -> Iterator[ActiveWatch]:
        """In the order in which they came."""
        return iter(self._watched.values())

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def wanted(self) -> list[Filter]:
        """What the router itself subscribes to: the parts that are matched here."""
        if self._wanted is None:
            self._wanted = list({f: None for active in self for f in active.wanted})
        return self._wanted

    @property
    def due(self) -> int | None:
        """When a `Tick` will release a held message; None: none is held."""
        return min((at for t in self if (at := t.release_at) is not None), default=None)

    @property
    def late(self) -> int:
        """How many messages and compounds came too late, since the start."""
        return self._late + sum(active.late for active in self)

    def told(self, peer: Peer) -> tuple[Watch, ...]:
        """What is delegated to a peer."""
        return tuple(
            self._delegated_watch(id, active)
            for id, active in self._delegated.items()
            if active.delegated[id].peer == peer
        )

    # ---- changes by peers

    def say(self, peer: Peer, watch: Watch) -> None:
        """Add a watch of a peer, or replace the one with its id."""
        key = (peer, watch.id)
        known = self._watched.get(key)
        if known is not None:
            if known.watch == watch:
                return
            self._drop(key)
        lateness = self._settings.lateness if watch.lateness is None else watch.lateness
        self._watched[key] = ActiveWatch(peer, watch, lateness)
        self._unplanned[key] = None

    def cancel(self, peer: Peer, id: int) -> None:
        """Remove a watch of a peer."""
        if (peer, id) in self._watched:
            self._drop((peer, id))

    def restate(self, peer: Peer, watches: Iterable[Watch]) -> None:
        """Replace all watches of a peer; equal ones continue."""
        stated = {watch.id: watch for watch in watches}
        for active in [t for t in self if t.peer == peer and t.watch.id not in stated]:
            self.cancel(peer, active.watch.id)
        for watch in stated.values():
            self.say(peer, watch)
        self._muted.discard(peer)

    def mute(self, peer: Peer) -> None:
        """Send a peer nothing until it has restated."""
        self._muted.add(peer)

    def _drop(self, key: _WatchKey) -> None:
        active = self._watched.pop(key)
        self._unplanned.pop(key, None)
        self._late += active.late
        self._withdraw(active)
        self._table.change(key, dict.fromkeys(active.wanted, False))
        self._wanted = None

    # ---- plans

    def settle(self, news: Collection[Advertisement], *, replan: bool) -> list[Send]:
        """Plan new watches, and those that changed advertisements concern, or (`replan`) all; returns
        what neighbours are sent."""
        chosen = list(self._unplanned)
        if replan or news:
            chosen += [
                key
                for key, active in self._watched.items()
                if key not in self._unplanned and (replan or active.is_concerned(news))
            ]
        offers = self._offers() if chosen else None
        begun: list[Send] = []
        for key in chosen:
            active = self._watched[key]
            made = self._plan(active, offers)
            is_same = (made.delegations, made.residual) == (
                active.plan.delegations,
                active.plan.residual,
            )
            if key in self._unplanned or not is_same:
                self._withdraw(active)
                active.begin(made)
                begun += self._delegate(active)
            self._want(key, active, made)
        self._unplanned = {}
        sends, self._withdrawn = self._withdrawn + begun, []
        return sends

    def _offers(self) -> dict[Peer, tuple[Advertisement, ...]] | None:
        """The advertisements of all peers; None if they are not known, so nothing can be delegated."""
        is_below = Role.MASTER in self._peers.values()
        if self._advertised is None or is_below or not self._settings.delegates:
            return None
        return {peer: tuple(self._advertised(peer)) for peer in self._peers}

    def _plan(
        self, active: ActiveWatch, offers: dict[Peer, tuple[Advertisement, ...]] | None
    ) -> PatternPlan:
        if offers is None or active.lateness < self._settings.hop:
            return here(active.watch.pattern)
        routers = [peer for peer, role in self._peers.items() if role is Role.NEIGHBOUR]
        others = {p: a for p, a in offers.items() if p != active.peer or p not in routers}
        return plan(active.watch.pattern, others, routers, active.watch.task)

    def _want(self, key: _WatchKey, active: ActiveWatch, made: PatternPlan) -> None:
        """Subscribe to the parts that are matched here."""
        wanted = dict.fromkeys(f for predicate in made.parts for f in predicate)
        news = {f: False for f in active.wanted if f not in wanted}
        news |= {f: True for f in wanted if f not in active.wanted}
        if news:
            self._table.change(key, news)
            self._wanted = None
        active.plan, active.wanted = made, wanted

    def _delegate(self, active: ActiveWatch) -> list[Send]:
        sends = []
        for delegation in active.plan.delegations:
            self._ids += 1
            self._delegated[self._ids] = active
            active.delegated[self._ids] = delegation
            sends.append(Send(delegation.peer, self._delegated_watch(self._ids, active)))
        return sends

    def _withdraw(self, active: ActiveWatch) -> None:
        for id, delegation in active.delegated.items():
            del self._delegated[id]
            if delegation.peer in self._peers:
                self._withdrawn.append(Send(delegation.peer, Unwatch(id)))
        active.delegated = {}

    def _delegated_watch(self, id: int, active: ActiveWatch) -> Watch:
        delegation = active.delegated[id]
        lateness = active.lateness - self._settings.hop
        return Watch(id, delegation.pattern, delegation.task, lateness)

    # ---- messages

    def publish(self, source: Peer | None, publication: Publish) -> list[Send]:
        """Process a message that the router subscribed to. The watches of a neighbour get no messages
        that came from it: it has them itself."""
        interested = self._table.interfaces_of(publication.message)
        is_router = self._peers.get(source) is Role.NEIGHBOUR
        return [
            send
            for key, active in self._watched.items()
            if key in interested and not (is_router and active.peer == source)
            for send in self._answer(active, active.take(publication))
        ]

    def hear(self, peer: Peer, packet: Assembled | Sieved) -> list[Send]:
        """Process the answer to a delegation; it is dropped if the delegation was removed."""
        active = self._delegated.get(packet.id)
        if active is None or active.delegated[packet.id].peer != peer:
            return []
        delegation = active.delegated[packet.id]
        if isinstance(packet, Sieved) is not (delegation.task is Task.SIEVE):
            raise RoutingError(
                f"{peer!r} answers a watch with task {delegation.task} with {type(packet).__name__}"
            )
        part = packet.compound if isinstance(packet, Assembled) else packet.publication
        return self._answer(active, active.hear(delegation.number, part))

    def tick(self, now: int) -> list[Send]:
        return [send for active in self for send in self._answer(active, active.expire(now))]

    def _answer(self, active: ActiveWatch, answers: list[Any]) -> list[Send]:
        if active.peer in self._muted:
            return []
        id = active.watch.id
        return [
            Send(active.peer, Sieved(id, a) if isinstance(a, Publish) else Assembled(id, a))
            for a in answers
        ]
