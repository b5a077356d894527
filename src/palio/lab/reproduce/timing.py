"""Times of timed experiments: the shortest turn of each contestant.

Contestants take turns in one process (`bench.harness`), so their ratios hold on a noisy machine.
Whatever else the machine does can only add to a turn, so the shortest one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from palio.lab.bench.harness import Repeated, in_turns

TURN_S = 0.015


def shortest(
    contestants: Mapping[str, Callable[[], object]], turns: int = 7, turn_s: float = TURN_S
) -> dict[str, float]:
    """Seconds of one call of each."""
    calls = {name: Repeated(call, turn_s) for name, call in contestants.items()}
    times = in_turns(calls, turns)
    return {name: times.shortest(name) for name in calls}
