"""The virtual clock: a queue of actions in the order of their times.

Of two actions at one time, the one that was planned first happens first, so a run depends on
nothing but what was planned. `instant` numbers the actions as they happen: it tells before from
after within one microsecond, and histories are kept in it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from palio.sim.kernel.verdicts import Violation

START_US = 1
"""Time begins here: 0 is no incarnation of a link."""


class VirtualClock:
    """Actions happen when `run` passes their time; nothing waits in real time."""

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

    def run(self, until_us: int) -> None:
        """Run all actions that are planned up to a time; the clock then shows that time."""
        while self._queue and self._queue[0][0] <= until_us:
            self._next()
        self.now_us = max(self.now_us, until_us)

    def run_until_quiet(self, within_us: int) -> None:
        """Run all planned actions and all that they plan, until the queue is empty."""
        limit_us = self.now_us + within_us
        while self._queue:
            if self._queue[0][0] > limit_us:
                raise Violation("restless", f"actions remain after {within_us / 1e6:g} s")
            self._next()

    def _next(self) -> None:
        self.now_us, _, action, arguments = heappop(self._queue)
        self.instant += 1
        action(*arguments)
