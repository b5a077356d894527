"""Turns with a budget: no turn of the host's event loop takes long, whatever clients ask for.

    receive ─▶ does anything wait on this link, or has this turn done enough? ─┬─ no ──▶ processed
                                                                              └─ yes ─▶ backlog of the link
    take    ─▶ a new budget: the links with a backlog in turn, an item or a slice of each

Frames are read when it is their turn, not when they arrive: 256 KiB may hold 20,000 of them.

A request that takes long is a generator (`Slices`). It yields where the rest may wait: None, or the
units that a slice has cost beyond the usual, or a BackgroundJob: a computation that the host runs in
another thread. What arrives on the same link waits meanwhile, in order; other links do not. Large
backlogs stop the reading of their links.

Costs are counted in units of about 0.1 ms. A machine may be slower, and an estimate too low: a host
passes a stopwatch, by which a turn ends too. Without one (in the simulator) what a broker does depends on
its input only. A broker that does not defer (tests, tools) has no bounds and runs jobs at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, TypeAlias, TypeVar

from palio.errors import PalioError
from palio.protocol.broker.effects import BackgroundJob, Effects
from palio.protocol.broker.links import Link
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.control import (
    AdvertiseRequest,
    ControlMessage,
    Explain,
    Forget,
    Hello,
    LinkStates,
    Quench,
    RouterPacket,
    Show,
    SubscribeRequest,
    UnadvertiseRequest,
    UnsubscribeRequest,
)
from palio.protocol.wire.frames import MessageFrame
from palio.protocol.wire.queue_control import (
    EndQueue,
    ForgetDurable,
    ListQueues,
    ListSubscriptions,
    MoveQueue,
    PauseQueue,
    PurgeQueue,
)

TURN_UNITS = 80
"""The budget of a turn."""
TURN_S = 0.01
"""By the stopwatch a turn begins nothing more after this time."""
SLICE_UNITS = 20
"""What a slice of a long request may cost."""
BACKLOG_BYTES = 1 << 20
"""A link with a larger backlog is not read."""
BACKLOGS_BYTES = 64 << 20
"""When all backlogs together are larger, no link with a backlog is read."""

T = TypeVar("T")
Item: TypeAlias = MessageBatch | MessageFrame | ControlMessage


Slices: TypeAlias = Generator["BackgroundJob[Any] | int | None", None, None]


class WorkList:
    """Work that parts of the broker have begun and that belongs to no link; the broker schedules it."""

    def __init__(self) -> None:
        self.new: list[Slices] = []

    def add(self, slices: Slices) -> None:
        self.new.append(slices)


def in_slices(parts: list[T], size: int) -> list[list[T]]:
    return [parts[at : at + size] for at in range(0, len(parts), size)]


COSTS: Final[dict[Any, int]] = {
    Hello: 1, SubscribeRequest: 4, UnsubscribeRequest: 4, AdvertiseRequest: 4, UnadvertiseRequest: 4,
    Explain: 8, Show: 8, Forget: 8, Quench: 4, RouterPacket: 4, LinkStates: 4, ForgetDurable: 8,
    ListQueues: 20, ListSubscriptions: 40, PauseQueue: 4, PurgeQueue: 4, EndQueue: 4, MoveQueue: 4,
}  # fmt: skip
"""Of control messages that take long, in units."""
SMALL_COST = 0.15
"""Of all other control messages. Messages cost nothing here."""
POSITIONS_PER_UNIT = 400
"""Positions that Acknowledge has, besides."""
RETURNS_PER_UNIT = 50
"""Positions that Nack and Reject have, likewise: they are counted, and ordered anew."""


def cost(item: Item) -> float:
    """What an item costs, in units."""
    kind = type(item)
    if kind is MessageBatch or kind is MessageFrame:
        return 0
    if isinstance(item, LinkStates):  # a large one comes in slices, which are counted by themselves
        texts = sum(len(state.wanted) + len(state.durable) for state in item.states)
        return 4 + min(texts, SLICE_UNITS)
    return COSTS.get(kind, SMALL_COST)


class _Backlog:
    """What waits on one link; `slices` is the request that is under way, `item` the next one."""

    __slots__ = ("bytes", "is_paused", "item", "items", "job", "kind", "link", "slices", "unread")

    def __init__(self, link: Link | None) -> None:
        self.link = link
        self.item: Item | None = None
        self.items: Iterator[Item] = iter(())
        """What comes after it, read as it is needed."""
        self.unread: deque[bytes] = deque()
        """What has arrived since."""
        self.slices: Slices | None = None
        self.kind = "departure"
        """Of the request that is under way."""
        self.job: BackgroundJob[Any] | None = None
        self.bytes = 0
        self.is_paused = False


class TurnScheduler:
    """`process(link, item)` does what an item asks for, or returns the slices of it. `read(link,
    items)` gives items of a link as they are read, and raises nothing. `stopwatch` gives seconds."""

    def __init__(
        self,
        process: Callable[[Link, Item], Slices | None],
        read: Callable[[Link, Iterator[Item]], Iterator[Item]],
        stopwatch: Callable[[], float] | None = None,
        *,
        defers: bool,
    ) -> None:
        self._process, self._read = process, read
        self._defers = defers
        self._stopwatch = stopwatch
        self.ends_s = 0.0
        """When the turn ends by the stopwatch; 0: nothing that takes long was begun in it."""
        self.budget: float = TURN_UNITS
        """What the turn may still cost."""
        self.turn: deque[_Backlog] = deque()
        """Backlogs that have something to do, the next one first."""
        self.backlogs: dict[int, _Backlog] = {}
        """By link."""
        self.bytes = 0
        """Of all backlogs."""
        self._blocked: dict[BackgroundJob[Any], _Backlog] = {}
        self.jobs: list[BackgroundJob[Any]] = []
        """For the host, new since it was asked."""
        self.reading: dict[int, bool] = {}
        """Links to stop (False) or start reading, since the host was asked."""
        self.requests: dict[str, int] = {}
        """What was processed since the host was asked, by kind."""

    def __len__(self) -> int:
        """How many links or departures have work that waits."""
        return len(self.turn) + len(self._blocked)

    # ---- input

    def take(self, link: Link, item: Item) -> None:
        """Process an item of a link without a backlog, now or in its turn: then the link has one."""
        units = cost(item) if self._defers else 0
        if units and not self._may_begin():
            self._wait(link, None).item = item
            return
        self.budget -= units
        slices = self._process(link, item)
        if slices is None:
            self._note(type(item).__name__)
        else:
            backlog = self._wait(link, slices)
            backlog.kind = type(item).__name__
            self._advance(backlog)

    def arrived(self, link: int, data: bytes) -> None:
        """These bytes came over a link with a backlog."""
        self.backlogs[link].unread.append(data)
        self._grow(link, len(data))

    def wait(self, link: int, items: Iterator[Item], size: int) -> None:
        """A link has a backlog now; these items, of so many bytes, came with what waits."""
        backlog = self.backlogs[link]
        assert backlog.link is not None
        backlog.items = self._read(backlog.link, items)
        self._grow(link, size)

    def _grow(self, link: int, size: int) -> None:
        backlog = self.backlogs[link]
        backlog.bytes += size
        self.bytes += size
        is_large = backlog.bytes > BACKLOG_BYTES or self.bytes > BACKLOGS_BYTES
        if is_large and not backlog.is_paused:
            backlog.is_paused = True
            self.reading[link] = False

    def discard_unread(self, link: Link) -> None:
        """A frame of this link was broken: what came behind it means nothing."""
        if link.number in self.backlogs:
            self.backlogs[link.number].unread.clear()

    def detach(self, slices: Slices) -> None:
        """Work that belongs to no link. It begins in its turn: many may come at once."""
        backlog = self._wait(None, slices)
        if self._defers:
            self.turn.append(backlog)
        else:
            self._advance(backlog)

    def drop(self, link: Link) -> None:
        """A link is gone, and so is what waits on it."""
        backlog = self.backlogs.pop(link.number, None)
        self.reading.pop(link.number, None)
        if backlog is None:
            return
        self.bytes -= backlog.bytes
        if backlog.job is not None:
            self._blocked.pop(backlog.job, None)
        if backlog in self.turn:
            self.turn.remove(backlog)
        if backlog.slices is not None:
            backlog.slices.close()

    def finished(self, job: BackgroundJob[Any]) -> None:
        """The host has run a job."""
        backlog = self._blocked.pop(job, None)
        if backlog is not None:
            backlog.job = None
            self.turn.append(backlog)

    def add_to(self, effects: Effects) -> None:
        """What the host has to do, besides the rest."""
        effects.has_more = bool(self.turn)
        effects.jobs, self.jobs = self.jobs, []
        effects.reading, self.reading = self.reading, {}
        effects.requests, self.requests = self.requests, {}

    def _may_begin(self) -> bool:
        """May the turn begin something that takes long?"""
        if self.budget > 0 and self._stopwatch is not None:
            now_s = self._stopwatch()
            if not self.ends_s:
                self.ends_s = now_s + TURN_S
            elif now_s >= self.ends_s:
                self.budget = 0
        return self.budget > 0

    def _note(self, kind: str) -> None:
        self.requests[kind] = self.requests.get(kind, 0) + 1

    def work(self) -> bool:
        """Do one thing that waits, if the turn may; False: nothing was done."""
        if not self.turn or not self._may_begin():
            return False
        backlog = self.turn.popleft()
        if backlog.slices is not None:
            self._advance(backlog)
            return True
        assert backlog.link is not None
        assert backlog.item is not None
        item, backlog.item = backlog.item, None
        self.budget -= cost(item)
        self.turn.append(backlog)
        slices = self._process(backlog.link, item)
        if backlog.link.number not in self.backlogs:  # the item closed its link
            if slices is not None:
                slices.close()
            return True
        backlog.slices, backlog.kind = slices, type(item).__name__
        if slices is None:
            self._note(backlog.kind)
            if not self._has_item(backlog):
                self.turn.remove(backlog)
                self._end(backlog)
        return True

    # ---- one backlog

    def _wait(self, link: Link | None, slices: Slices | None) -> _Backlog:
        backlog = _Backlog(link)
        backlog.slices = slices
        if link is not None:
            self.backlogs[link.number] = backlog
        if slices is None:
            self.turn.append(backlog)
        return backlog

    def _advance(self, backlog: _Backlog) -> None:
        """The next slice; all of them, if this broker does not defer."""
        assert backlog.slices is not None
        self._note(backlog.kind)
        while True:
            self.budget -= SLICE_UNITS
            try:
                job = next(backlog.slices)
            except StopIteration:
                backlog.slices = None
                self._continue(backlog)
                return
            if isinstance(job, int):
                self.budget -= job
                job = None
            if self._defers:
                self._postpone(backlog, job)
                return
            if job is not None:
                job.run()

    def _has_item(self, backlog: _Backlog) -> bool:
        """Whether anything waits behind what was done; reads it."""
        while backlog.item is None and backlog.link is not None:
            backlog.item = next(backlog.items, None)
            if backlog.item is None:
                if not backlog.unread:
                    return False
                unread = backlog.link.reader.feed(backlog.unread.popleft())
                backlog.items = self._read(backlog.link, unread)
        return backlog.item is not None

    def _continue(self, backlog: _Backlog) -> None:
        if self._has_item(backlog):
            self.turn.append(backlog)
        else:
            self._end(backlog)

    def _postpone(self, backlog: _Backlog, job: BackgroundJob[Any] | None) -> None:
        if job is None:
            self.turn.append(backlog)
        else:
            backlog.job = job
            self._blocked[job] = backlog
            self.jobs.append(job)

    def _end(self, backlog: _Backlog) -> None:
        if backlog.link is None:
            return
        if self.backlogs.pop(backlog.link.number, None) is not None:
            self.bytes -= backlog.bytes
        if backlog.is_paused:
            self.reading[backlog.link.number] = True


def guarded(
    link: Link, items: Iterator[T], fail: Callable[[Link, PalioError], None]
) -> Generator[T, None, None]:
    """What comes over a link, as it is read or processed: an error ends the connection."""
    try:
        yield from items
    except PalioError as error:
        fail(link, error)
