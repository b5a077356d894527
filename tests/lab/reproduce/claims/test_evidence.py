"""Tests with a stated error, against draws whose law is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.seeds import sizes

from palio.lab.reproduce.claims.claim import TooSmall
from palio.lab.reproduce.claims.evidence import (
    ERROR,
    fits_better,
    growth,
    mean_range,
    predicted,
    rate_max,
)


@sizes(500, 4_000)
def test_ranges_miss_as_often_as_they_say(size: int) -> None:
    """Of many ranges about one in a hundred misses the next draw, and the mean."""
    rng = np.random.default_rng(3)
    missed = {"draw": 0, "mean": 0}
    for _ in range(size):
        *draws, more = rng.normal(0.35, 0.04, 11).tolist()
        low, high = predicted(draws)
        missed["draw"] += not low <= more <= high
        low, high = mean_range(draws)
        missed["mean"] += not low <= 0.35 <= high
    for count in missed.values():
        assert 0.2 * ERROR * size < count < 2.5 * ERROR * size


def test_few_draws_are_no_evidence() -> None:
    for ranged in (predicted, mean_range):
        with pytest.raises(TooSmall, match="3 draws"):
            ranged([0.3, 0.4])


def test_a_power_is_found_with_its_range() -> None:
    exponent, low, high = growth([(n, 3 * n**0.5) for n in (10, 100, 1_000)])
    assert (exponent, low, high) == pytest.approx((0.5, 0.5, 0.5))
    rng = np.random.default_rng(4)
    noisy = [(n, n * float(rng.lognormal(0, 0.1))) for n in range(10, 200, 10)]
    exponent, low, high = growth(noisy)
    assert low < 1 < high
    assert 0.8 < low < exponent < high < 1.2
    with pytest.raises(TooSmall, match="three sizes"):
        growth(noisy[:2])


def test_no_failure_in_many_trials() -> None:
    """The chance of none is the error."""
    assert (1 - rate_max(300)) ** 300 == pytest.approx(ERROR)


def test_curves_are_told_apart_unless_the_noise_is_larger() -> None:
    rng = np.random.default_rng(5)
    sizes = (100.0, 316.0, 1_000.0, 3_162.0, 10_000.0)

    def drawn(noise: float) -> dict[float, list[float]]:
        return {
            n: [2 * float(np.log(np.log(n))) + float(rng.normal(0, noise)) for _ in range(6)]
            for n in sizes
        }

    def slow(n: float) -> float:
        return float(np.log(np.log(n)))

    def fast(n: float) -> float:
        return float(np.log(n))

    assert fits_better(drawn(0.01), slow, fast) == 1
    assert fits_better(drawn(0.01), fast, slow) == 0
    assert 0.01 < fits_better(drawn(1.0), slow, fast) < 0.99
