"""Tests with a stated error, for claims on draws: a single draw or run is no evidence.

    predicted    the range in which one more draw lies, except with probability ERROR
    mean_range   the range of the mean of all draws, with the same error
    rate_max     a rate above this would have shown in so many trials, with the same error
    growth       the exponent b of y ~ x^b by least squares, with its range
    fits_better  in which share of resamples of the draws one curve is nearer to them than another

ERROR is 1% throughout. Draws are taken for normal, which suits means of many messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import mean, stdev

from palio.lab.reproduce.claims.claim import TooSmall

ERROR = 0.01
DRAWS_MIN = 3
_RESAMPLES = 500


def predicted(draws: Sequence[float]) -> tuple[float, float]:
    """Where one more draw lies."""
    return _range(draws, 1 + 1 / len(draws))


def mean_range(draws: Sequence[float]) -> tuple[float, float]:
    """Where the mean lies."""
    return _range(draws, 1 / len(draws))


def _range(draws: Sequence[float], variances: float) -> tuple[float, float]:
    if len(draws) < DRAWS_MIN:
        raise TooSmall(f"{DRAWS_MIN} draws or more")
    reach = _t(len(draws) - 1) * stdev(draws) * math.sqrt(variances)
    return mean(draws) - reach, mean(draws) + reach


def _t(freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf(1 - ERROR / 2, freedom))


def rate_max(trials: int) -> float:
    """No failure in so many trials: the rate is below this.

    >>> round(rate_max(1_000), 4)
    0.0046
    """
    return 1 - float(ERROR ** (1 / trials))


def growth(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """The exponent, and the ends of its range."""
    if len(points) < 3:
        raise TooSmall("three sizes or more")
    xs, ys = ([math.log(p[axis]) for p in points] for axis in (0, 1))
    x0, y0 = mean(xs), mean(ys)
    square = sum((x - x0) ** 2 for x in xs)
    slope = sum((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)) / square
    left = sum((y - y0 - slope * (x - x0)) ** 2 for x, y in zip(xs, ys, strict=True))
    error = math.sqrt(left / (len(points) - 2) / square)
    reach = _t(len(points) - 2) * error
    return slope, slope - reach, slope + reach


def fits_better(
    draws: Mapping[float, Sequence[float]],
    curve: Callable[[float], float],
    other: Callable[[float], float],
) -> float:
    """For draws of y by x: how often a + b curve(x) leaves less than a + b other(x), by least squares,
    when the draws are resampled. 1 - ERROR or more says that it describes them better."""
    random, wins = Random(1), 0
    for _ in range(_RESAMPLES):
        points = [(x, mean(random.choices(ys, k=len(ys)))) for x, ys in draws.items()]
        wins += _left(points, curve) < _left(points, other)
    return wins / _RESAMPLES


def _left(points: Sequence[tuple[float, float]], curve: Callable[[float], float]) -> float:
    """The sum of squares that a straight line over curve(x) leaves."""
    xs, ys = [curve(x) for x, _ in points], [y for _, y in points]
    x0, y0 = mean(xs), mean(ys)
    slope = sum((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - x0) ** 2 for x in xs
    )
    return sum((y - y0 - slope * (x - x0)) ** 2 for x, y in zip(xs, ys, strict=True))
