"""Replays: give a new subscription the messages published here since its start time.

    journal   1 2 3 4 5 6 7 8 9 10 11 12
                    │   │            │
                  since cursor       positions from the cursor on are not matched yet

The cursor advances through the journal in steps and waits while the destination is full; the journal
keeps the segments from the cursor on. Until the cursor reaches the end, the replay matches new
messages too; afterwards fan-out does. So each message is matched once for each subscription, in
order. The cursor is stored in the same commit as the entries that it made.

All replays share the units of a time between two calls of `begin`, and take turns. A step stops where
they are spent, even within a message: the verdict on it goes on in the next step.
"""

from __future__ import annotations

from typing import Final

from palio.errors import InvalidValue
from palio.protocol.durability.commits import DirtySet
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.statistics import StoreCounters
from palio.protocol.durability.subscriptions import TrackedSubscription, Verdict

REPLAY_UNITS: Final = 5_000
"""What all replays may spend at a time, about 5 ms: a unit is the evaluation of one constraint."""
_PAGE: Final = 256
"""Messages that are looked for at once."""
_PAGE_UNITS: Final = 100
_MESSAGE_UNITS: Final = 30
"""Of a message, besides its constraints."""
_BYTES_PER_UNIT: Final = 256
"""Of a message, which may come from the disk."""
_EVERYTHING = 1 << 62


class Replays:
    """The replays that are not done."""

    def __init__(self, journal: Journal, dirty: DirtySet, counters: StoreCounters) -> None:
        self._journal = journal
        self._dirty = dirty
        self._counters = counters
        self.tracked: dict[TrackedSubscription, None] = {}
        """The next one to advance first."""
        self._units = REPLAY_UNITS
        self._undecided: dict[TrackedSubscription, tuple[int, Verdict]] = {}
        """The message at the cursor, and the verdict on it that has begun."""

    def add(self, tracked: TrackedSubscription) -> None:
        self.tracked[tracked] = None

    def remove(self, tracked: TrackedSubscription) -> None:
        self.tracked.pop(tracked, None)
        self._undecided.pop(tracked, None)

    @property
    def is_any_ready(self) -> bool:
        """Whether a replay can continue."""
        return any(map(_can_replay, self.tracked))

    def ready(self) -> list[TrackedSubscription]:
        """The subscriptions whose replay can continue, in their turn."""
        return [tracked for tracked in self.tracked if _can_replay(tracked)]

    def first_needed(self) -> int:
        """The first position that a replay needs."""
        cursors = [tracked.cursor for tracked in self.tracked]
        return min([cursor for cursor in cursors if cursor is not None], default=_EVERYTHING)

    def begin(self) -> None:
        """The replays may spend as much again."""
        self._units = REPLAY_UNITS

    @property
    def may_go_on(self) -> bool:
        """Whether there are units left."""
        return self._units > 0

    def step(self, tracked: TrackedSubscription) -> bool:
        """Advance a replay as far as the units go; at its end it needs none. True: it is done."""
        before = tracked.cursor
        while tracked.cursor is not None and _can_replay(tracked):
            if tracked.cursor < self._journal.next:
                if not self.may_go_on:
                    break
                self._look(tracked, tracked.cursor)
            if tracked.cursor >= self._journal.next:
                tracked.cursor = None
        self._counters.replayed += 1
        if tracked.cursor != before:
            self._dirty.note_subscription(tracked)
            self._dirty.note_pushed(tracked.destination)
        if tracked.cursor is None:
            self.remove(tracked)
        elif tracked in self.tracked:  # it is the turn of the others
            self.tracked[tracked] = self.tracked.pop(tracked)
        return tracked.cursor is None

    def _look(self, tracked: TrackedSubscription, cursor: int) -> None:
        """Match messages of one segment, while the destination has room and there are units."""
        page, end = self._journal.page(cursor, _PAGE)
        self._units -= _PAGE_UNITS
        destination = tracked.destination
        for row, position in enumerate(page.positions if page else ()):
            assert page is not None
            is_hit = self._matches(tracked, position, page.batch.attributes(row))
            if is_hit is None or (is_hit and destination.is_full):
                tracked.cursor = position
                return
            if is_hit:
                size = self._journal.retain(position)
                destination.push((position,), (tracked.labels,), size)
        tracked.cursor = end

    def _matches(self, tracked: TrackedSubscription, position: int, text: bytes) -> bool | None:
        """Whether a message matches; one that cannot be parsed does not. None: the units are spent."""
        if not self.may_go_on:
            return None
        assert tracked.matching is not None
        begun, verdict = self._undecided.pop(tracked, (0, None))
        if verdict is None or begun != position:
            verdict = tracked.matching(text)
            self._units -= _MESSAGE_UNITS + self._journal.size(position) // _BYTES_PER_UNIT
        while True:
            try:
                self._units -= next(verdict)
            except StopIteration as end:
                return bool(end.value)
            except InvalidValue:  # such as an older version stored
                self._counters.unreadable += 1
                return False
            if self._units <= 0:
                self._undecided[tracked] = position, verdict
                return None


def _can_replay(tracked: TrackedSubscription) -> bool:
    return (
        tracked.cursor is not None
        and tracked.matching is not None
        and not tracked.destination.is_full
    )
