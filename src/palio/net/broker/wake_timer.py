"""The timer that wakes the core at its deadline.

The deadline moves with every message, and asking for it takes time that grows with the number of
links. So the timer does not ask after every turn, but at most every 10 ms. The watchdog of the event
loop hears when it rings too late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from palio.net.broker.loop_watch import LoopWatch

_LOOK_S = 0.01


class WakeTimer:
    """`look` wakes the core if its deadline has come; else it gives the seconds until then."""

    def __init__(self, look: Callable[[], float | None], watch: LoopWatch) -> None:
        self._look, self._watch = look, watch
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._expected = (
            0.0  # the same by the watchdog's clock: the loop's own stands during a turn
        )

    def deadline_may_have_moved(self) -> None:
        self._set(_LOOK_S)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, wait_s: float) -> None:
        due = self._loop.time() + wait_s
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._timer, self._due = self._loop.call_at(due, self._ring), due
        self._expected = self._watch.clock() + wait_s

    def _ring(self) -> None:
        self._timer = None
        self._watch.late(self._expected)
        wait_s = self._look()
        if wait_s is not None:
            self._set(wait_s)
