"""Which watches hold messages that a `Tick` releases, and when: a heap with lazy deletion.

    note(watch) ──▶ heap of (time, order of the watch) ──▶ first: the next time
                                                       └─▶ take(now): the watches that are due

An entry is valid while its watch releases a message at that time; others are dropped when they come to
the top, or when they are more than half of the heap.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TypeAlias

from palio.routing.patterns.active_watch import ActiveWatch

_HEAP_MIN = 64  # entries that are kept before invalid ones are dropped

_Entry: TypeAlias = tuple[int, int]


class DueWatches:
    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._noted: dict[int, tuple[int, ActiveWatch]] = {}  # by order: those that hold messages

    def note(self, active: ActiveWatch) -> None:
        """What a watch holds may have changed."""
        at, known = active.release_at, self._noted.get(active.order)
        if at is None:
            if known is not None:
                del self._noted[active.order]
        elif known is None or known[0] != at:
            self._noted[active.order] = at, active
            heappush(self._heap, (at, active.order))
            if len(self._heap) > max(_HEAP_MIN, 2 * len(self._noted)):
                self._heap = [(time, order) for order, (time, _) in self._noted.items()]
                heapify(self._heap)

    def remove(self, active: ActiveWatch) -> None:
        self._noted.pop(active.order, None)

    @property
    def first(self) -> int | None:
        """When the next message is released; None: none is held."""
        while self._heap and not self._is_valid(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: int) -> list[ActiveWatch]:
        """The watches that release a message now, in the order of watching."""
        due: dict[int, ActiveWatch] = {}
        while self._heap and self._heap[0][0] <= now:
            entry = heappop(self._heap)
            if self._is_valid(entry):
                due[entry[1]] = self._noted.pop(entry[1])[1]
        return [due[order] for order in sorted(due)]

    def _is_valid(self, entry: _Entry) -> bool:
        known = self._noted.get(entry[1])
        return known is not None and known[0] == entry[0]
