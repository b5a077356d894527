"""Replays: give a new subscription the messages published here since its start time.

    journal   1 2 3 4 5 6 7 8 9 10 11 12
                    │   │            │
                  since cursor       positions from the cursor on are not matched yet

The cursor advances through the journal in steps and waits while the destination is full; the journal
keeps the segments from the cursor on. Until the cursor reaches the end, the replay matches new
messages too; afterwards fan-out does. So each message is matched once for each subscription, in
order. The cursor is stored in the same commit as the entries that it made.
"""

from __future__ import annotations

from palio.errors import InvalidValue
from palio.protocol.durability.commits import DirtySet
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.statistics import StoreCounters
from palio.protocol.durability.subscriptions import Matching, TrackedSubscription

_STEP = 2048
"""About how many messages one step of a replay looks at."""
_EVERYTHING = 1 << 62


class Replays:
    """The replays that are not done."""

    def __init__(self, journal: Journal, dirty: DirtySet, counters: StoreCounters) -> None:
        self._journal = journal
        self._dirty = dirty
        self._counters = counters
        self.tracked: dict[TrackedSubscription, None] = {}

    def add(self, tracked: TrackedSubscription) -> None:
        self.tracked[tracked] = None

    def remove(self, tracked: TrackedSubscription) -> None:
        self.tracked.pop(tracked, None)

    def ready(self) -> list[TrackedSubscription]:
        """The subscriptions whose replay can continue."""
        return [tracked for tracked in self.tracked if _can_replay(tracked)]

    def first_needed(self) -> int:
        """The first position that a replay needs."""
        cursors = [tracked.cursor for tracked in self.tracked]
        return min([cursor for cursor in cursors if cursor is not None], default=_EVERYTHING)

    def step(self, tracked: TrackedSubscription) -> bool:
        """Advance a replay by one step. True: it is done."""
        end = (tracked.cursor or 0) + _STEP
        while tracked.cursor is not None and tracked.cursor < end and _can_replay(tracked):
            self._look(tracked, tracked.cursor)
            if tracked.cursor >= self._journal.next:
                tracked.cursor = None
        self._counters.replayed += 1
        self._dirty.note_subscription(tracked)
        self._dirty.note_pushed(tracked.destination)
        if tracked.cursor is None:
            self.remove(tracked)
        return tracked.cursor is None

    def _look(self, tracked: TrackedSubscription, cursor: int) -> None:
        """Match the messages of one segment, while the destination has room."""
        page, tracked.cursor = self._journal.page(cursor)
        if page is None or tracked.matching is None:
            return
        destination, batch = tracked.destination, page.batch
        texts = [batch.attributes(row) for row in range(batch.count)]
        try:
            hits = tracked.matching(texts)
        except InvalidValue:  # such as an older version stored
            hits = [self._matches(tracked.matching, text) for text in texts]
        for position, is_hit in zip(page.positions, hits, strict=True):
            if not is_hit:
                continue
            if destination.is_full:
                tracked.cursor = position
                return
            size = self._journal.retain(position)
            destination.push((position,), (tracked.labels,), size)

    def _matches(self, matching: Matching, text: bytes) -> bool:
        """Whether a message matches; one that cannot be parsed does not."""
        try:
            return matching([text])[0]
        except InvalidValue:
            self._counters.unreadable += 1
            return False


def _can_replay(tracked: TrackedSubscription) -> bool:
    return (
        tracked.cursor is not None
        and tracked.matching is not None
        and not tracked.destination.is_full
    )
