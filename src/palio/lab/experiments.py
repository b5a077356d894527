"""Experiments: what an experiment is, which there are, and how one point of it is run and stored.

An experiment is a small module of `palio.lab.figures` with

    SETTINGS          its ID, the figure it redraws, what is measured
    points(scale)     what to run, as plain values; 1 is the full size
    run(values, seed) one point, one repetition: rows of plain values; no Spark, no clock but its own
    plot(rows, figure)   draws stored rows on a matplotlib figure

    DIR/manifest.json                      DIR/2006-fig6/names=500 zipf=True predicates=100 #3.parquet
    of which version, seed and scale       the rows of one finished point, with its values and seed

Always: a point's seed depends on the run's seed, the experiment, the repetition and, unless points
are paired, its values, and on nothing else; a file is there only when its point is finished.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import os
import pkgutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from palio.errors import InvalidFile, InvalidValue
from palio.lab import figures

Plain: TypeAlias = str | int | float | bool
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
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
    """A module of `palio.lab.figures`."""

    SETTINGS: Settings

    def points(self, scale: float) -> Sequence[Mapping[str, Plain]]:
        """Values of the points, small ones first; `repetitions` says how often each is run."""

    def run(self, values: Mapping[str, Any], seed: int) -> Sequence[Row]: ...

    def plot(self, rows: Sequence[Row], figure: Any) -> None: ...


@cache
def experiments() -> dict[str, Experiment]:
    """All experiments, by ID, in the order of the files."""
    found: dict[str, Experiment] = {}
    for entry in sorted(pkgutil.iter_modules(figures.__path__), key=lambda entry: entry.name):
        module: Any = importlib.import_module(f"{figures.__name__}.{entry.name}")
        found[module.SETTINGS.id] = module
    return found


def experiment(id: str) -> Experiment:
    """The experiment of this ID."""
    known = experiments()
    if id not in known:
        raise InvalidValue(f"no experiment {id!r}; there are {', '.join(known)}")
    return known[id]


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
    found, size = [], float(first)
    while size < last / factor**0.5:
        found.append(round(size))
        size *= factor
    return [*found, last]


def all_points(id: str, scale: float) -> list[Point]:
    """The tasks of an experiment at a scale, one a repetition."""
    if not 0 < scale <= 100:
        raise InvalidValue(f"a scale is above 0 and at most 100, not {scale:g}")
    source = experiment(id).SETTINGS.source
    made = []
    for given in experiment(source).points(scale):
        values = dict(given)
        repetitions = int(values.pop("repetitions", 1))
        made += [Point(source, tuple(values.items()), r) for r in range(repetitions)]
    return made


# ---- one point, on whatever machine


def path_of(folder: str | Path, point: Point) -> Path:
    """Where the rows of a point lie."""
    return Path(folder) / point.experiment / f"{point.name}.parquet"


def seed_of(point: Point, base: int) -> int:
    """The seed of a point in a run of this seed."""
    is_paired = experiment(point.experiment).SETTINGS.is_paired
    own = f"#{point.repetition}" if is_paired else point.name
    digest = hashlib.sha256(f"{base} {point.experiment} {own}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def work(folder: str | Path, point: Point, base: int) -> int:
    """Run a point and store its rows in one step; how many there are."""
    seed = seed_of(point, base)
    values = dict(point.values)
    started = time.perf_counter()
    rows = experiment(point.experiment).run(values, seed)
    spent = time.perf_counter() - started
    whole = [
        {**values, "repetition": point.repetition, "seed": seed, "task_s": spent, **row}
        for row in rows
    ]
    path = path_of(folder, point)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(whole), unfinished)
        unfinished.replace(path)
    except OSError as error:
        raise InvalidFile(
            f"{path} cannot be written ({error}); the directory of the results must be one that "
            "every worker can write to"
        ) from None
    return len(whole)


def stored(folder: str | Path, id: str, points: Sequence[Point]) -> list[Row]:
    """The rows of those points that are finished, in the order of the points."""
    place = Path(folder) / experiment(id).SETTINGS.source
    there = set(os.listdir(place)) if place.is_dir() else set()
    rows: list[Row] = []
    for point in points:
        path = path_of(folder, point)
        if path.name not in there:
            continue
        try:
            rows += pq.read_table(path).to_pylist()
        except (pa.ArrowInvalid, OSError) as error:
            raise InvalidFile(
                f"{path} is not the Parquet file of a point ({error}); delete it and run "
                f"`palio lab run {id}` again"
            ) from None
    return rows
