"""Times of timed experiments."""

from __future__ import annotations

import time

from palio.lab.reproduce import timing


def test_the_median_turn_counts_and_its_quartiles_are_told() -> None:
    """One turn that is disturbed does not move the median; the quartiles show the spread."""
    waits = iter([0.0, 0.0, 0.001, 0.05, 0.001, 0.002, 0.001])
    spread = timing.spreads({"a": lambda: time.sleep(next(waits))}, turns=5, turn_s=0)["a"]
    assert 0.001 <= spread.low <= spread.median <= spread.high < 0.02
    assert spread.columns("us", 1e6) == {
        "us": spread.median * 1e6,
        "us_low": spread.low * 1e6,
        "us_high": spread.high * 1e6,
    }
