"""The patterns of a router: its watches, what is delegated, and what is matched here.

    Watch from a client      ┐          ┌─▶ filters that the router itself subscribes to
    Watch from a neighbour   ├─▶ plan ──┼─▶ available patterns ──▶ Watch(id) to neighbours
                             ┘          └─▶ a matcher of the residual (None: answers are forwarded)
    Publish by subscription  ┐
    Assembled(id), Sieved(id)├─▶ matcher ──▶ Assembled, Sieved to the watcher
    Tick                     ┘

Available patterns. What neighbours match for this router is in a table (available.py), and watches that
need the same share it: there is one delegation for equal sub-patterns. A neighbour never restarts what
it matches for us, so any number of watches can use it, whenever they began and whatever they have
matched; each takes from it what began after the watch did. So only the router of a client matches with
restarts: a pattern that a neighbour provides as a whole is assembled there, and consumed here.

Plans. Delegation needs advertisements: without them (or below a master, which advertises nothing)
a pattern is matched at the router of its watcher, and its parts are plain subscriptions. A watch of a
neighbour is planned without the advertisements of that neighbour, so nothing is delegated back to
it. Plans depend on the pattern and the advertisements only. When advertisements change, new plans
are made. If the delegations and the residual are equal, nothing happens; otherwise matching restarts
with the messages from then on, and delegations that nobody uses any more are removed.

Time. Messages are ordered by time, publisher and number. They take different paths, and delegation
delays them further. A client's watch has the router's `lateness`: messages are held for so long. A
delegation gets `hop` less, the longest delay of a link, and a router with less than a `hop` left does
not delegate. So if messages reach every router within `lateness`, less one `hop` for each link
between it and the watcher, no message is late. Late messages are dropped and counted. A `Tick`, or a
later message, releases held messages.

Effort. A message, or an answer, costs something for each watch that wants it. `publishing` and
`hearing` go from watch to watch, and their caller may pause between two of them. Each watch gets messages
in the order in which the caller passes them on; one that began after a message arrived (`begun`) does not
get it, and one that has been removed meanwhile gets nothing. A `Tick` costs something only for the
watches that hold a message which it releases.

Invariants:
- each matcher takes one copy of a message, however many subscriptions and sieves let it pass: a
  second copy is recognized for as long as it would not be late.
- a watch that comes or goes disturbs no other one.
- within a step, messages are sent before the compounds made of them.
- answers for a removed watch are dropped: a router never reuses an id. After a `Joined` a neighbour
  may have lost its ids: it gets nothing until its `Restate` has listed its watches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from palio.errors import RoutingError
from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.interest_table import InterestTable
from palio.routing.packets import Role, Send
from palio.routing.patterns.active_watch import ActiveWatch
from palio.routing.patterns.available import AvailablePattern, AvailablePatterns
from palio.routing.patterns.due_watches import DueWatches
from palio.routing.patterns.monitor import BYTES_MAX
from palio.routing.patterns.packets import Assembled, Sieved, Task, Watch
from palio.routing.patterns.pattern import core
from palio.routing.patterns.planning import PatternPlan, here, plan
from palio.routing.publication import Peer, Publish

_WatchKey: TypeAlias = tuple[Peer, int]
"""The watcher, and its id of the watch."""
WatchSteps: TypeAlias = Iterator[tuple[list[Send], int]]
"""For each watch: what is sent, and the effort."""
STEP_EFFORT = 20
"""What a step costs beside the constraints of its pattern, and what a lookup costs."""
STEPS_PER_EFFORT = 2.5
"""Of expressions; a step is about a microsecond (expressions/costs.py)."""


class PatternSettings(msgspec.Struct, frozen=True):
    """How a router matches patterns. Times are in microseconds."""

    delegates: bool = True
    """Delegate sub-patterns to neighbours; False: match patterns at the router of the watcher."""
    lateness: int = 0
    """How long messages are held to bring them into order; 0: not at all."""
    hop: int = 0
    """The longest delay of a link; a delegation has so much less lateness."""
    watch_bytes: int = BYTES_MAX
    """About how many bytes of messages one watch may hold; then its oldest keys are dropped."""
    watches_bytes: int = 1 << 40
    """The same of all watches; then those that hold most lose half of it."""

    def __post_init__(self) -> None:
        if self.lateness < 0 or self.hop < 0:
            raise RoutingError(f"lateness and hop are 0 or more microseconds; got {self}")


class Watches:
    """All watches of a router; computes what it subscribes to, and what it sends."""

    def __init__(
        self,
        settings: PatternSettings,
        peers: Mapping[Peer, Role],
        advertised: Callable[[Peer], Iterable[Advertisement]] | None,
        clock: Callable[[], int] | None,
    ) -> None:
        """`advertised`: the advertisements of a peer; None: advertisements are not in use. `clock`: the
        time of the publishers; None: the largest time that was seen."""
        self._settings = settings
        self._peers = peers
        self._advertised = advertised
        self._clock = clock
        self._watched: dict[_WatchKey, ActiveWatch] = {}
        self._unplanned: dict[_WatchKey, None] = {}
        self._revised: dict[_WatchKey, None] = {}
        self.available: AvailablePatterns[_WatchKey] = AvailablePatterns()
        """What neighbours match for this router; to be read only."""
        self._latest = -(2**63)  # time of a message that was seen
        self._muted: set[Peer] = set()
        self._table = InterestTable()  # from messages to watches
        self._wanted: dict[Filter, int] = {}  # by the watches that match it here
        self._news: dict[Filter, bool] = {}
        self._late = self._keys_dropped = 0  # in watches that are gone
        self.bytes = 0
        """About how many bytes all watches hold; to be read only."""
        self._counted: dict[int, int] = {}  # what of it is held by which watch, by its order
        self._orders = 0
        self._due = DueWatches()
        self._now: int | None = None  # of the last tick
        self.begun = 0
        """How often matching has begun or restarted, in any watch; to be read only."""

    # ---- queries

    def __iter__(self) -> Iterator[ActiveWatch]:
        """In the order in which they came."""
        return iter(self._watched.values())

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def due(self) -> int | None:
        """When a `Tick` will release a held message; None: none is held."""
        return self._due.first

    @property
    def late(self) -> int:
        """How many messages and compounds came too late, since the start."""
        return self._late + sum(active.late for active in self)

    @property
    def keys_dropped(self) -> int:
        """How many keys were dropped because too much was held, since the start."""
        return self._keys_dropped + sum(active.keys_dropped for active in self)

    # ---- changes by peers

    def say(self, peer: Peer, watch: Watch) -> None:
        """Add a watch of a peer, or replace the one with its id."""
        key = (peer, watch.id)
        known = self._watched.get(key)
        lateness = self._settings.lateness if watch.lateness is None else watch.lateness
        if known is not None:
            if known.watch == watch:
                return
            if _is_revision(known.watch, watch):
                known.revise(watch, lateness)
                self._revised[key] = None
                return
            self._drop(key)
        self._orders += 1
        self._watched[key] = ActiveWatch(
            peer, watch, lateness, self._orders, self._settings.watch_bytes
        )
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
        self._revised.pop(key, None)
        self._late += active.late
        self._keys_dropped += active.keys_dropped
        self.bytes -= self._counted.pop(active.order, 0)
        self._due.remove(active)
        self.available.release(key)
        self._want(key, dict.fromkeys(active.wanted, False))

    # ---- plans

    def settle(self, news: Collection[Advertisement], *, replan: bool) -> list[Send]:
        """Plan new and revised watches, and those that changed advertisements concern, or (`replan`)
        all; returns what is sent."""
        chosen = dict.fromkeys([*self._unplanned, *self._revised])
        if replan or news:
            chosen |= {
                key: None
                for key, active in self._watched.items()
                if replan or active.is_concerned(news)
            }
        offers = self._offers() if chosen else None
        answers: list[Send] = []
        for key in chosen:
            active = self._watched[key]
            made = self._plan(active, offers)
            if key in self._unplanned or made.shape != active.plan.shape:
                self.available.release(key)
                self.begun += 1
                active.begin(made, self.begun, self._now)
                self._note(active)
                self._use(key, active)
            elif key in self._revised:
                active.catch_up(self._now)
                answers += self._answer(active, active.adjust(made))
                self.available.adjust(key, made.delegations, self._left(active))
            wanted = dict.fromkeys(f for predicate in made.parts for f in predicate)
            changed = {f: False for f in active.wanted if f not in wanted}
            changed |= {f: True for f in wanted if f not in active.wanted}
            self._want(key, changed)
            active.plan, active.wanted = made, wanted
        self._unplanned, self._revised = {}, {}
        self._table.settle()  # a part for each change, not all when the next message comes
        told = self.available.settle(self._peers)
        return answers + [Send(peer, packet) for peer, packet in told]

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

    def _want(self, key: _WatchKey, news: dict[Filter, bool]) -> None:
        """A watch matches other parts here than before."""
        self._table.change(key, news)
        for found, is_wanted in news.items():
            before = self._wanted.get(found, 0)
            after = self._wanted[found] = before + (1 if is_wanted else -1)
            if not after:
                del self._wanted[found]
            if bool(before) != bool(after) and self._news.pop(found, is_wanted) is is_wanted:
                self._news[found] = is_wanted

    def take_news(self) -> dict[Filter, bool]:
        """The filters that the router itself subscribes to from now on (True), or not any more."""
        news, self._news = self._news, {}
        return news

    def _use(self, key: _WatchKey, active: ActiveWatch) -> None:
        """Have neighbours match what the plan delegates; of what they match already, the watch gets
        what begins now or later."""
        since = self._latest + 1 if self._clock is None else self._clock()
        self.available.use(key, active.plan.delegations, self._left(active), since)

    def _left(self, active: ActiveWatch) -> int:
        """The lateness of what is delegated."""
        return active.lateness - self._settings.hop

    # ---- messages

    def publish(self, source: Peer | None, publication: Publish) -> list[Send]:
        """Process a message that the router subscribed to."""
        steps = self.publishing(source, publication, self.begun)
        return [send for sends, _ in steps for send in sends]

    def _effort_of_expressions(self, message: Message) -> int:
        """Of looking up a message for all watches, besides."""
        costs = self._table.expressions
        return (
            int(costs.total.of(1, message.memory_bytes) / STEPS_PER_EFFORT) if costs.has_any else 0
        )

    def publishing(self, source: Peer | None, publication: Publish, begun: int) -> WatchSteps:
        """The same in steps. `begun`: the counter of this name when the message arrived. The watches
        of a neighbour get no messages that came from it: it has them itself."""
        self._latest = max(self._latest, publication.time)
        is_router = self._peers.get(source) is Role.NEIGHBOUR
        interested = [self._watched[key] for key in self._table.interfaces_of(publication.message)]
        interested.sort(key=attrgetter("order"))
        yield [], STEP_EFFORT + self._effort_of_expressions(publication.message)
        for active in interested:
            if not (is_router and active.peer == source) and self._is_current(active, begun):
                active.catch_up(self._now)
                yield self._answer(active, active.take(publication)), active.effort + STEP_EFFORT

    def hear(self, peer: Peer, packet: Assembled | Sieved) -> list[Send]:
        """Process the answer to a delegation, for all who use it; it is dropped if nobody does."""
        return [send for sends, _ in self.hearing(peer, packet, self.begun) for send in sends]

    def hearing(self, peer: Peer, packet: Assembled | Sieved, begun: int) -> WatchSteps:
        """The same in steps. Raises RoutingError, at once, for an answer of the wrong kind."""
        entry = self.available.find(peer, packet.id)
        if entry is None:
            return iter(())
        if isinstance(packet, Sieved) is not (entry.task is Task.SIEVE):
            raise RoutingError(
                f"{peer!r} answers a watch with task {entry.task} with {type(packet).__name__}"
            )
        return self._hearing(entry, packet, begun)

    def _hearing(
        self, entry: AvailablePattern[_WatchKey], packet: Assembled | Sieved, begun: int
    ) -> WatchSteps:
        part = packet.compound if isinstance(packet, Assembled) else packet.publication
        start, end = (part.time, part.time) if isinstance(part, Publish) else (part.start, part.end)
        self._latest = max(self._latest, end)
        for use in entry.uses:
            active = self._watched.get(use.user)
            if active is None or not use.wants(start, end) or not self._is_current(active, begun):
                continue
            active.catch_up(self._now)
            answers = active.hear(use.delegation.number, part)
            yield self._answer(active, answers), active.effort + STEP_EFFORT

    def tick(self, now: int) -> list[Send]:
        self._latest = max(self._latest, now)
        self._now = now if self._now is None else max(now, self._now)
        due = self._due.take(self._now)
        return [send for active in due for send in self._answer(active, active.expire(self._now))]

    def _is_current(self, active: ActiveWatch, begun: int) -> bool:
        """Whether a watch is there, and was matching when `begun` was this number."""
        return active.begun <= begun and self._watched.get(active.key) is active

    def _answer(self, active: ActiveWatch, answers: list[Any]) -> list[Send]:
        """What a watch that was given something sends."""
        self._note(active)
        if active.peer in self._muted:
            return []
        id = active.watch.id
        return [
            Send(active.peer, Sieved(id, a) if isinstance(a, Publish) else Assembled(id, a))
            for a in answers
        ]

    def _note(self, active: ActiveWatch) -> None:
        """What a watch holds may have changed."""
        self._due.note(active)
        self._count(active)
        while self.bytes > self._settings.watches_bytes:
            heaviest = max(self, key=attrgetter("bytes"))
            before = heaviest.bytes
            heaviest.shed()
            self._count(heaviest)
            if heaviest.bytes == before:
                break

    def _count(self, active: ActiveWatch) -> None:
        self.bytes += active.bytes - self._counted.get(active.order, 0)
        self._counted[active.order] = active.bytes


def _is_revision(known: Watch, watch: Watch) -> bool:
    """Whether a delegated watch differs only in its limits of time, so that it can continue."""
    is_delegated = known.task is watch.task is not Task.WHOLE
    return is_delegated and core(known.pattern)[0] == core(watch.pattern)[0]
