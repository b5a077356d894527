"""Experiments as Spark jobs: one task a point and repetition, which stores its rows itself.

    points without a clock   one job of as many tasks as there are points: all cores
    points that are timed    one job of one task after another: nothing of ours runs beside them

A finished point is a file (`experiments.path_of`), so a run that was stopped, or killed, goes on
where it was. On a cluster the directory must be one that all workers see.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from palio.carried_errors import carried
from palio.errors import InvalidValue, PalioError
from palio.lab.reproduce import manifest
from palio.lab.reproduce.catalogue import all_points, experiment
from palio.lab.reproduce.experiment import Point
from palio.lab.reproduce.results import path_of, work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 1
_POLL_S = 0.3
# A task says nothing before it is done, and a large table takes minutes.
_PATIENCE = {"spark.sql.execution.pyspark.udf.idleTimeoutSeconds": "7200"}

Tell = Callable[[str, int, int], Any]  # what, points done, points to do


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run did: its points, those that were finished before, and the seconds of its jobs."""

    points: int
    finished_before: int
    seconds: float


def run(
    ids: Sequence[str],
    *,
    scale: float,
    out: str | Path,
    master: str = "local[2]",
    seed: int = SEED,
    spark: SparkSession | None = None,
    tell: Tell = lambda _text, _done, _total: None,
) -> Ran:
    """Run the points of experiments that are not finished, on the session given or on a new one."""
    folder = Path(out).absolute()
    points = list(dict.fromkeys(p for id in ids for p in all_points(id, scale)))
    if spark is None:
        _check(master)
    manifest.opened(folder, seed=seed, scale=scale)
    missing = [p for p in points if not path_of(folder, p).exists()]
    before = len(points) - len(missing)
    if not missing:
        return Ran(len(points), before, 0.0)
    tell("starting Spark", before, len(points))
    with _session(master, spark) as session:
        _warm(session)
        started = time.perf_counter()
        for job in _jobs(missing):
            text = job[0].experiment if len(job) == 1 else "all cores"
            with _watched(folder, points, text, tell):
                _run_job(session, folder, job, seed)
        seconds = time.perf_counter() - started
    there = manifest.read(folder)  # another run may have ended meanwhile
    manifest.write(folder, there.with_run(master, list(ids), len(points), before, seconds))
    return Ran(len(points), before, seconds)


def scaling(
    ids: Sequence[str],
    *,
    scale: float,
    out: str | Path,
    masters: Sequence[str] = ("local[1]", "local[2]"),
    seed: int = SEED,
    tell: Tell = lambda _text, _done, _total: None,
) -> dict[str, float]:
    """The seconds of the same run on several masters, each in a directory of its own."""
    timed = [id for id in ids if experiment(experiment(id).SETTINGS.source).SETTINGS.is_timed]
    if timed:
        raise InvalidValue(
            f"{timed[0]} measures time and runs one task at a time, on whatever master; "
            "choose experiments that `palio lab list` shows without a clock"
        )
    seconds = {}
    for master in masters:
        folder = Path(out) / master.replace("[", "-").replace("]", "")
        ran = run(ids, scale=scale, out=folder, master=master, seed=seed, tell=tell)
        if ran.finished_before:
            raise InvalidValue(
                f"{folder} holds points of an earlier run, so its time says nothing; "
                "name a new directory with --out"
            )
        seconds[master] = ran.seconds
    return seconds


def _jobs(missing: Sequence[Point]) -> list[list[Point]]:
    """Points that may run at the same time; the large ones, which come last, go first."""
    free = [p for p in missing if not experiment(p.experiment).SETTINGS.is_timed]
    timed = [p for p in missing if experiment(p.experiment).SETTINGS.is_timed]
    return [*([free[::-1]] if free else []), *([p] for p in timed)]


def _check(master: str) -> None:
    """Raise, before anything is written, when there is no such master, or no Java for it."""
    from palio.spark.sessions import require_java, require_master

    require_master(master)
    if not master.startswith("sc://"):
        require_java()


@contextlib.contextmanager
def _session(master: str, given: SparkSession | None) -> Iterator[SparkSession]:
    """A session of our own ends with the run."""
    if given is not None:
        yield given
        return
    import palio.spark

    made = palio.spark.session(master, "palio-lab", **_PATIENCE)
    try:
        yield made
    finally:
        made.stop()


def _warm(spark: SparkSession) -> None:
    """Start the workers before the clock runs."""
    spark.range(0, 8, 1, 8).mapInArrow(lambda batches: batches, "id bigint").count()


def _run_job(spark: SparkSession, folder: Path, points: Sequence[Point], seed: int) -> None:
    from palio.spark.failures import sentence

    place = str(folder)

    def worked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with carried():
                counts = [work(place, points[i], seed) for i in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(counts, pa.int64())], ["rows"])

    try:
        tasks = spark.range(0, len(points), 1, len(points)).mapInArrow(worked, "rows bigint")
        tasks.agg({"rows": "sum"}).collect()
    except Exception as error:
        raise PalioError(
            f"a task failed: {sentence(error)}; what is finished stays, and the same command continues"
        ) from error


@contextlib.contextmanager
def _watched(folder: Path, points: Sequence[Point], text: str, tell: Tell) -> Iterator[None]:
    """Tell while the block runs how many points are finished: workers leave a file for each."""
    expected: dict[Path, set[str]] = {}
    for point in points:
        path = path_of(folder, point)
        expected.setdefault(path.parent, set()).add(path.name)
    stop = threading.Event()

    def look() -> None:
        done = sum(len(names & _listed(place)) for place, names in expected.items())
        tell(text, done, len(points))

    def poll() -> None:
        while not stop.wait(_POLL_S):
            look()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        look()


def _listed(place: Path) -> set[str]:
    return set(os.listdir(place)) if place.is_dir() else set()
