"""The watchdog of the event loop: how long the host keeps it from everything else.

    poll ─▶ received, received, timer, ... ─▶ turn ─▶ poll
            └─────────── one hold ────────────┘

A hold begins with the first event after a poll and ends with the turn that carries out the effects:
all other connections wait meanwhile. That takes three readings of the clock a turn. A timer that
rings late although no turn was under way shows a hold by something else: a thread that kept the
interpreter, or a machine that is busy.

The time on the wall says how long others waited; the processor time of the loop's thread says how
much of that is the broker's own doing. Reading the processor time takes a system call, so it is read
at most once a millisecond: a hold is charged with what its thread used since the last reading, which
is too much by a millisecond at most.

A hold that is longer than `[times] loop_warning` is logged, with what was done in it; at most one
line a second.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from palio.net.monitoring.counts import Durations
from palio.net.monitoring.logs import log_event

HOLDS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""The bounds of the histogram."""
RECENT_S = 60.0
_LATE_S_MIN = 0.005
"""Timers are never exact; a smaller delay is none."""
_LOG_S = 1.0
_CPU_S = 0.001
"""Processor time is read at most this often, and not for holds that are shorter."""


@dataclass(frozen=True, slots=True)
class LoopHolds:
    """What the watchdog has seen."""

    count: int
    longest_s: float
    """Since the broker started."""
    recent_s: float
    """The longest of the last one to two minutes."""
    p999_s: float
    """An upper bound of 999 in 1,000 holds."""
    warnings: int
    """How many were longer than the limit."""
    longest_cpu_s: float
    """The most processor time that the loop's thread used in a hold, since the broker started."""


class LoopWatch:
    """`began` is the time when the hold that is under way began; 0: there is none."""

    def __init__(
        self,
        warning_s: float,
        clock: Callable[[], float] = time.perf_counter,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """`cpu_clock` gives the processor time of the thread that reads it."""
        self._warning_s, self.clock = warning_s, clock
        self.holds = Durations(bounds_s=HOLDS_S)
        self._cpu = _ProcessorTime(cpu_clock, clock())
        self.cpu_holds = self._cpu.holds
        self.began = 0.0
        self.events: list[str] = []
        """What happened in the hold that is under way, besides bytes that were received."""
        self._ended = clock()
        self._longest_s = 0.0
        self._windows = [0.0, 0.0]  # the longest of this window, and of the last one
        self._window_ends = self._ended + RECENT_S
        self._warnings = self._unlogged = 0
        self._logs_from = 0.0

    def end(self, began: float, taking: float, acting: float, requests: dict[str, int]) -> None:
        """A turn has ended whose hold `began` then. It took the core's effects from `taking` on, and
        carried them out from `acting` on; `requests` says what the core did for clients and
        neighbours, and how often."""
        now, began = self.clock(), began or taking
        if self.began:  # another turn follows
            self.began = now
        self._ended = now
        held_s = now - began
        cpu_s = self._count(held_s, now)
        if held_s > self._warning_s:
            self._warn(
                held_s, cpu_s, now, receiving_ms=_ms(taking - began), core_ms=_ms(acting - taking),
                sending_ms=_ms(now - acting), events=_listed(Counter(self.events)),
                requests=_listed(requests),
            )  # fmt: skip
        if self.events:
            self.events = []

    def measure(self, what: str, began: float) -> None:
        """Something outside turns has ended: a page for machines, for example."""
        now = self.clock()
        if self.began:  # the hold that is under way includes it
            self.events.append(what)
            return
        self._ended = now
        cpu_s = self._count(now - began, now)
        if now - began > self._warning_s:
            self._warn(now - began, cpu_s, now, events=what)

    def late(self, due: float) -> None:
        """A timer that was due then rings only now."""
        now = self.clock()
        held_s = (self.began or now) - max(due, self._ended)
        if held_s < _LATE_S_MIN:
            return
        cpu_s = self._count(held_s, now)
        if held_s > self._warning_s:
            self._warn(held_s, cpu_s, now, events="none: another thread, or the machine was busy")

    def snapshot(self) -> LoopHolds:
        self._turn_window(self.clock())
        return LoopHolds(
            self.holds.count, self._longest_s, max(self._windows), self.holds.quantile(0.999),
            self._warnings, self._cpu.longest_s,
        )  # fmt: skip

    def _count(self, held_s: float, now: float) -> float:
        """Count a hold that ends now; gives the processor time in it."""
        self.holds.add(held_s)
        if now >= self._window_ends:
            self._turn_window(now)
        if held_s > self._windows[0]:
            self._windows[0] = held_s
            if held_s > self._longest_s:
                self._longest_s = held_s
        return self._cpu.count(held_s, now)

    def _turn_window(self, now: float) -> None:
        missed = int((now - self._window_ends) // RECENT_S) + 1
        if missed > 0:
            self._windows = [0.0, self._windows[0] if missed == 1 else 0.0]
            self._window_ends += missed * RECENT_S

    def _warn(self, held_s: float, cpu_s: float, now: float, **fields: object) -> None:
        self._warnings += 1
        if now < self._logs_from:
            self._unlogged += 1
            return
        if self._unlogged:
            fields["more"] = self._unlogged
        self._logs_from, self._unlogged = now + _LOG_S, 0
        known = {key: value for key, value in fields.items() if value != ""}
        log_event(
            logging.WARNING, "the event loop was held", held_ms=_ms(held_s), cpu_ms=_ms(cpu_s), **known
        )  # fmt: skip


class _ProcessorTime:
    """The processor time that the loop's thread used in holds."""

    def __init__(self, clock: Callable[[], float], now: float) -> None:
        self.holds = Durations(bounds_s=HOLDS_S)
        self.longest_s = 0.0
        self._clock = clock
        self._read_at, self._used_s = now, clock()

    def count(self, held_s: float, now: float) -> float:
        """Count what was used in a hold that ends `now`; in a short one, all of its time."""
        if now - self._read_at < _CPU_S:
            self.holds.add(held_s)
            return held_s
        before_s, self._used_s, self._read_at = self._used_s, self._clock(), now
        used_s = min(held_s, self._used_s - before_s)
        self.holds.add(used_s)
        if used_s > self.longest_s:
            self.longest_s = used_s
        return used_s


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items())
