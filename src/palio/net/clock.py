"""The broker's clock: microseconds since 1970 that never go back.

Timers and the times of messages read the same clock. It follows the machine's monotonic clock, so
that setting the time back does not stop timers. When the real time runs ahead by more than a second
(the machine slept), it catches up.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_AHEAD_US = 1_000_000


class Clock:
    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns, self._steady_ns = wall_ns, steady_ns
        self._offset_us = (wall_ns() - steady_ns()) // 1000

    def now_us(self) -> int:
        return self._steady_ns() // 1000 + self._offset_us

    def catch_up(self) -> None:
        """Now and then: look whether the real time has run ahead."""
        ahead = self._wall_ns() // 1000 - self.now_us()
        if ahead > _AHEAD_US:
            self._offset_us += ahead
