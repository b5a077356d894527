"""Times of timed experiments: the median of each contestant's turns, with their quartiles.

Contestants take turns in one process (`bench.harness`), so what disturbs the machine disturbs all of
them, and their ratios hold on a noisy machine. The quartiles tell how far to trust a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles

from palio.lab.bench.harness import Repeated, in_turns

TURN_S = 0.015
TURNS = 7


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds of a call: the median of its turns, and the quartiles."""

    median: float
    low: float
    high: float

    def columns(self, name: str, factor: float) -> dict[str, float]:
        """As columns of a row, in another unit."""
        return {
            name: self.median * factor,
            f"{name}_low": self.low * factor,
            f"{name}_high": self.high * factor,
        }


def spreads(
    contestants: Mapping[str, Callable[[], object]], turns: int = TURNS, turn_s: float = TURN_S
) -> dict[str, Spread]:
    """What one call of each takes."""
    calls = {name: Repeated(call, turn_s) for name, call in contestants.items()}
    times = in_turns(calls, turns)
    return {name: _spread(times.turns[name]) for name in calls}


def _spread(turns: Sequence[float]) -> Spread:
    low, median, high = quantiles(turns, n=4, method="inclusive")
    return Spread(median, low, high)
