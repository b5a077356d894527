"""Which sizes were really run: the values of the finished points of an experiment, in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from palio.lab.reproduce.experiment import Plain, Point
from palio.lab.reproduce.results import path_of

_LISTED = 6


def sizes_run(folder: str | Path, points: Sequence[Point]) -> str:
    """The finished points: how many of how many, and the values of each setting."""
    done = [point for point in points if path_of(folder, point).exists()]
    if not done:
        return "nothing"
    values: dict[str, dict[Plain, None]] = {}
    for point in done:
        for key, value in point.values:
            values.setdefault(key, {})[value] = None
    draws = max(point.repetition for point in done) + 1
    parts = [f"{key} {_listed(list(found))}" for key, found in values.items()]
    if draws > 1:
        parts.append(f"up to {draws} draws")
    count = (
        f"all {len(done):,}" if len(done) == len(points) else f"{len(done):,} of {len(points):,}"
    )
    return f"{'; '.join(parts)} ({count} points)"


def unfinished(folder: str | Path, points: Sequence[Point]) -> str:
    """How many points are finished, if these are not all; a part of them decides no claim."""
    done = sum(path_of(folder, point).exists() for point in points)
    return "" if done == len(points) else f"{done:,} of {len(points):,} points are finished"


def _listed(values: list[Plain]) -> str:
    """All values if they are few, else the ends of their range.

    >>> _listed([100, 1000, 10]), _listed(list(range(1, 9)))
    ('10, 100, 1,000', '1 to 8')
    """
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(values):
        return ", ".join(map(str, values))
    ordered = sorted(numbers)
    if len(ordered) <= _LISTED:
        return ", ".join(f"{value:,}" for value in ordered)
    return f"{ordered[0]:,} to {ordered[-1]:,}"
