"""How far a job is, in tasks: what Spark tells while it runs, classic and Connect.

The classic session is asked a few times a second (its status tracker), a Connect session tells by
itself (a progress handler). Stages that wait for others are not counted before they begin, so the
number of tasks may grow; it never is less than what is done.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 0.2
Tell = Callable[[int, int], Any]  # (tasks done, tasks known)


@contextlib.contextmanager
def watched(spark: SparkSession, tell: Tell) -> Iterator[None]:
    """While the block runs, tell how many tasks are done, and of how many."""
    watch = _connect if "connect" in type(spark).__module__ else _classic
    with watch(spark, tell):
        yield


@contextlib.contextmanager
def _connect(spark: Any, tell: Tell) -> Iterator[None]:
    def handle(stages: Any, **_: Any) -> None:
        done = sum(stage.num_completed_tasks for stage in stages or ())
        known = sum(stage.num_tasks for stage in stages or ())
        if known:
            tell(done, known)

    spark.registerProgressHandler(handle)
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)


@contextlib.contextmanager
def _classic(spark: SparkSession, tell: Tell) -> Iterator[None]:
    tracker, stop = spark.sparkContext.statusTracker(), threading.Event()
    seen: dict[int, tuple[int, int]] = {}

    def look() -> None:
        for job in tracker.getActiveJobsIds():
            info = tracker.getJobInfo(job)
            for number in info.stageIds if info else ():
                stage = tracker.getStageInfo(number)
                if stage is not None and stage.numCompletedTasks + stage.numActiveTasks:
                    seen[number] = (stage.numCompletedTasks, stage.numTasks)
        if seen:
            tell(sum(done for done, _ in seen.values()), sum(known for _, known in seen.values()))

    def poll() -> None:
        with contextlib.suppress(Exception):  # the bar matters less than the job, which may be over
            while not stop.wait(_POLL_S):
                look()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_POLL_S * 10)
