"""What an experiment is. It is a small module of `palio.lab.reproduce.figures` with

    SETTINGS          its ID, the figure it redraws, what is measured
    points(scale)     what to run, as plain values; 1 is the full size
    run(values, seed) one point, one repetition: rows of plain values; no Spark, no clock but its own
    plot(rows, figure)   draws stored rows on a matplotlib figure

`grid` and `sizes` make lists of points.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from palio.errors import InvalidValue

Plain: TypeAlias = str | int | float | bool
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """What an experiment is. One that `uses` another has no points: it draws the other's rows."""

    id: str
    figure: str
    title: str
    text: str
    is_timed: bool = False  # its points run one at a time, since they would disturb each other
    is_paired: bool = False  # its points draw by one seed, so that they differ by their values only
    uses: str | None = None

    @property
    def source(self) -> str:
        """The experiment whose rows it draws."""
        return self.uses or self.id


@dataclass(frozen=True, slots=True)
class Point:
    """One task: values, and which repetition of them."""

    experiment: str
    values: tuple[tuple[str, Plain], ...]
    repetition: int

    @property
    def name(self) -> str:
        """As a file is named."""
        parts = [f"{key}={value}" for key, value in self.values]
        return " ".join([*parts, f"#{self.repetition}"])


class Experiment(Protocol):
    """A module of `palio.lab.reproduce.figures`."""

    SETTINGS: ExperimentSettings

    def points(self, scale: float) -> Sequence[Mapping[str, Plain]]:
        """Values of the points, small ones first; `repetitions` says how often each is run."""

    def run(self, values: Mapping[str, Any], seed: int) -> Sequence[Row]: ...

    def plot(self, rows: Sequence[Row], figure: Any) -> None: ...


def read_scale(text: str) -> float:
    """A scale as it is written on the command line: a number, or `full`.

    >>> read_scale("full"), read_scale("0.1")
    (1.0, 0.1)
    """
    if text == "full":
        return 1.0
    try:
        return float(text)
    except ValueError:
        raise InvalidValue(f"a scale is a number or `full`, not {text!r}") from None


def grid(**lists: Sequence[Plain]) -> list[dict[str, Plain]]:
    """All combinations, the first list turning slowest.

    >>> grid(names=[50, 500], zipf=[True])
    [{'names': 50, 'zipf': True}, {'names': 500, 'zipf': True}]
    """
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def sizes(first: int, last: int, factor: float) -> list[int]:
    """From `first` to `last`, each about `factor` times the one before; both are there.

    >>> sizes(10, 1000, 10)
    [10, 100, 1000]
    """
    sizes, size = [], float(first)
    while size < last / factor**0.5:
        sizes.append(round(size))
        size *= factor
    return [*sizes, last]
