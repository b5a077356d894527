"""What one run of a routing job did: read from the records of its batches and from its output."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from palio.spark.batches import BatchRecord, BatchRecords
from palio.spark.sinks import FileSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TOP_MAX = 10
_TOP_BATCHES_MAX = 100  # the last ones; a stream may have run for months


@dataclass(frozen=True, slots=True)
class RouteSummary:
    """What one run of a job did."""

    messages: int
    matches: int
    seconds: float
    batches: int
    version: int | None
    rejects: int
    top: list[tuple[str, int]]
    out: str

    def row(self) -> dict[str, Any]:
        """For JSON."""
        rate = 1 / self.seconds if self.seconds else 0.0
        return {
            **asdict(self),
            "messages_per_s": round(self.messages * rate, 1),
            "matches_per_s": round(self.matches * rate, 1),
        }


def last_batch(sink: FileSink) -> BatchRecord | None:
    """The last batch that readers see."""
    records = BatchRecords(sink.own / "batches")
    last = records.last()
    while last is not None and not sink.has(last.batch):
        last = records.of(last.batch - 1)
    return last


def summary_of(
    spark: SparkSession,
    sink: FileSink,
    output: str,
    before: BatchRecord | None,
    *,
    seconds: float,
    rejects: int,
) -> RouteSummary:
    """The summary of the batches after `before`, which is the last batch of an earlier run."""
    first = before.batch + 1 if before else 0
    done = last_batch(sink)
    end = done.batch + 1 if done else 0
    counted = range(max(first, end - _TOP_BATCHES_MAX), end)
    return RouteSummary(
        messages=_since(done, before, "messages_total"),
        matches=_since(done, before, "matches_total"),
        seconds=round(seconds, 3),
        batches=end - first,
        version=done.version if done else None,
        rejects=rejects,
        top=top_interfaces(spark, sink, list(counted), output),
        out=str(sink.path),
    )


def _since(done: BatchRecord | None, before: BatchRecord | None, total: str) -> int:
    return int(getattr(done, total, 0)) - int(getattr(before, total, 0))


def top_interfaces(
    spark: SparkSession, sink: FileSink, batches: list[int], output: str
) -> list[tuple[str, int]]:
    """The interfaces that got the most messages in these batches."""
    paths = [str(sink.file(batch)) for batch in batches if sink.is_filled(batch)]
    if not paths:
        return []
    reader = spark.read.format(sink.format).option("basePath", str(sink.path))
    rows: DataFrame = reader.load(paths)
    name = F.explode("interfaces") if output == "array" else F.col("interface")
    if {"interfaces", "interface"}.isdisjoint(rows.columns):
        return []  # JSON of no rows has no columns
    counts = rows.select(name.alias("interface")).groupBy("interface").count()
    top = counts.orderBy(F.desc("count"), "interface").limit(_TOP_MAX).collect()
    return [(str(row["interface"]), int(row["count"])) for row in top]
