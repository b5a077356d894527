"""The virtual clock: a queue of actions in the order of their times.

Of two actions at one time, the one that was planned first happens first, so a run depends on
nothing but what was planned. `instant` numbers the actions as they happen: it tells before from
after within one microsecond, and is what the checkers' histories are kept in.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from palio.errors import PalioError

START_US = 1
"""Time begins here: 0 is no incarnation of a link."""


class Clock:
    def __init__(self) -> None:
        self.now_us = START_US
        self.instant = 0
        self._planned = 0
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def __len__(self) -> int:
        return len(self._queue)

    def after(self, delay_us: int, action: Callable[..., None], *arguments: Any) -> None:
        """Plan an action."""
        self._planned += 1
        heappush(self._queue, (self.now_us + delay_us, self._planned, action, arguments))

    def run(self, until_us: int | None = None, *, actions_max: int) -> None:
        """Let everything happen that is planned, up to a time; the clock then shows that time."""
        queue = self._queue
        last = self.instant + actions_max
        while queue and (until_us is None or queue[0][0] <= until_us):
            self.now_us, _, action, arguments = heappop(queue)
            self.instant += 1
            if self.instant > last:
                raise Restless(f"{actions_max:,} actions did not bring the network to rest")
            action(*arguments)
        if until_us is not None and until_us > self.now_us:
            self.now_us = until_us


class Restless(PalioError):
    """Something goes on forever in a network that should become quiet."""
