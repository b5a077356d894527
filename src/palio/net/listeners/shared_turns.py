"""The turns of the event loop that the connections of a listener share, so that together they hold it shortly.

data of one connection ─▶ is nobody waiting, and is there time left? ─┬─ yes ─▶ processed at once
                                                                    └─ no ──▶ waits with the others, in order
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from palio.net.monitoring.logs import log_bug

TURN_S = 0.005


class SharedTurns:
    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._ends_s = 0.0  # of the turn under way; 0: there is none
        self._is_going_on = False

    def is_over(self) -> bool:
        """Must what is being processed wait for a later turn?"""
        now_s = time.perf_counter()
        if not self._ends_s:
            if self._waiting:
                return True
            self._ends_s = now_s + TURN_S
            asyncio.get_running_loop().call_soon(self._end)
        return now_s > self._ends_s

    def _end(self) -> None:
        if not self._is_going_on:
            self._ends_s = 0.0

    def soon(self, call: Callable[[], None]) -> None:
        """Call in a later turn, in order."""
        self._waiting.append(call)
        if len(self._waiting) == 1 and not self._is_going_on:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_going_on = True
        self._ends_s = time.perf_counter() + TURN_S
        while self._waiting:
            try:
                self._waiting.popleft()()
            except Exception as error:  # of one connection; the others go on
                log_bug("what a connection waited for has failed: this is a bug", error)
            if time.perf_counter() > self._ends_s:
                break
        self._is_going_on, self._ends_s = False, 0.0
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._go_on)
