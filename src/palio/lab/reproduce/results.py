"""One point of an experiment, run and stored, on whatever machine.

    DIR/manifest.json                      DIR/2006-fig6/names=500 zipf=True predicates=100 #3.parquet
    of which version, seed and scale       the rows of one finished point, with its values and seed

Always: a point's seed depends on the run's seed, the experiment, the repetition and, unless points
are paired, its values, and on nothing else; a file is there only when its point is finished.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from palio.errors import InvalidFile
from palio.lab.reproduce.catalogue import experiment
from palio.lab.reproduce.experiment import Point, Row


def path_of(folder: str | Path, point: Point) -> Path:
    """Where the rows of a point lie."""
    return Path(folder) / point.experiment / f"{point.name}.parquet"


def seed_of(point: Point, base: int) -> int:
    """The seed of a point in a run of this seed."""
    is_paired = experiment(point.experiment).SETTINGS.is_paired
    label = f"#{point.repetition}" if is_paired else point.name
    digest = hashlib.sha256(f"{base} {point.experiment} {label}".encode()).digest()
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
