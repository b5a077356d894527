"""Times of contestants, in turns within one process: their ratios hold on a noisy machine.

The first turn compiles and warms up; a short contestant is called several times a turn. What counts
is the shortest turn: whatever else the machine does can only add to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

TURN_S = 0.015


def shortest(
    contestants: Mapping[str, Callable[[], object]], turns: int = 7, turn_s: float = TURN_S
) -> dict[str, float]:
    """Seconds of one call of each."""
    loops: dict[str, int] = {}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for name, call in contestants.items():
        call()
        loops[name] = max(1, int(turn_s / max(1e-9, _seconds(call, 1))))
    for _ in range(turns):
        for name, call in contestants.items():
            times[name].append(_seconds(call, loops[name]))
    return {name: min(found) for name, found in times.items()}


def _seconds(call: Callable[[], object], loops: int) -> float:
    started = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - started) / loops
