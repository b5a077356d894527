"""How much memory the workers of a machine take for one table: they map one file.

Each of two Python workers opens the table, forwards, waits for the other, and then reads from
/proc/self/smaps what the mapping of the file takes: Rss counts every page it uses, Pss a page that
two share by half. So the sum of Pss is what the machine has less while they run.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from palio.errors import MissingSoftware
from palio.lab.bench.harness import Result
from palio.matching.table import ForwardingTable
from palio.spark.tables import Location, located, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = 2
_WAIT_S_MAX = 60
_KINDS = ("Rss", "Pss", "Private_Dirty")


@dataclass(frozen=True, slots=True)
class SharedTable(Result):
    """Bytes of a table's file and what the workers have of it, added up."""

    case: str
    workers: int
    table_bytes: int
    rss_bytes: int
    pss_bytes: int
    private_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.workers} workers, one table of {self.table_bytes / 1e6:.1f} MB: "
            f"they see {self.rss_bytes / 1e6:.1f} MB and take {self.pss_bytes / 1e6:.1f} MB "
            f"({self.pss_bytes / self.table_bytes:.2f} of the file; "
            f"{self.private_bytes / 1e6:.1f} MB is not shared)"
        )


def shared_table(spark: SparkSession, table: ForwardingTable) -> SharedTable:
    """Open the table in two workers at once and add up what they take."""
    if not Path("/proc/self/smaps").exists():
        raise MissingSoftware("shared memory is read from /proc/self/smaps, which Linux has")
    location = located(spark, table, shared=True)
    schema = "pid long, Rss long, Pss long, Private_Dirty long"
    with tempfile.TemporaryDirectory(prefix="palio-meeting-") as meeting:
        measure = _measure(location, meeting)
        frame = spark.range(WORKERS, numPartitions=WORKERS).mapInArrow(measure, schema)
        arrow = frame.toArrow()
    sums = {kind: sum(arrow[kind].to_pylist()) * 1024 for kind in _KINDS}
    workers = len(set(arrow["pid"].to_pylist()))
    return SharedTable(
        "shared", workers, location.size, sums["Rss"], sums["Pss"], sums["Private_Dirty"]
    )


def _measure(location: Location, meeting: str):  # type: ignore[no-untyped-def]
    def measure(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        opened(location).forward({"x": 1})
        _meet(Path(meeting), "open")
        taken = mapped(location.address, Path("/proc/self/smaps").read_text())
        _meet(Path(meeting), "measured")  # nobody closes it before all have looked
        values = {kind: [taken[kind]] for kind in _KINDS}
        yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], **values})

    return measure


def mapped(path: str, smaps: str) -> dict[str, int]:
    """Kilobytes by kind that the mappings of a file take."""
    blocks = re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", smaps)
    total = dict.fromkeys(_KINDS, 0)
    for block in blocks:
        if path in block.partition("\n")[0]:
            sizes = dict(re.findall(r"^(\w+): +(\d+) kB", block, re.MULTILINE))
            for kind in _KINDS:
                total[kind] += int(sizes[kind])
    return total


def _meet(folder: Path, step: str) -> None:
    """Wait until all workers are at this step; if one never comes, go on."""
    (folder / f"{step}-{os.getpid()}").touch()
    until = time.monotonic() + _WAIT_S_MAX
    while len(list(folder.glob(f"{step}-*"))) < WORKERS and time.monotonic() < until:
        time.sleep(0.02)
