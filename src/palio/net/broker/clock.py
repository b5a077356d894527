"""The broker's clock: microseconds since 1970 that never go back.

Timers and the times of messages read the same clock. It follows the machine's monotonic clock, so
setting the machine's time back does not stop timers. When the machine's time runs ahead by more than
a second (after the machine slept, for example), this clock catches up.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_AHEAD_US = 1_000_000


class BrokerClock:
    """`wall_ns` is the machine's time, `steady_ns` its monotonic clock."""

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
        """Jump ahead if the machine's time did. The host calls this from time to time."""
        ahead = self._wall_ns() // 1000 - self.now_us()
        if ahead > _AHEAD_US:
            self._offset_us += ahead
