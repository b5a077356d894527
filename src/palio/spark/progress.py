"""What a running stream says of itself after each micro-batch.

Spark's listener knows rows and times; the record of the batch (batches.py) knows matches and the
version. A listener hears of every query of its session, so ours waits until it is told its query.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from palio.spark.batches import BatchRecords

_START_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """One micro-batch; matches are None where the sink does not let them be counted."""

    batch: int
    version: int | None
    messages: int
    matches: int | None
    messages_per_s: float
    matches_per_s: float | None
    lag_s: float  # from the start of the batch to its end: its oldest message is at least this old
    behind: int | None  # what waits in the source, where it tells (Kafka: offsets)
    messages_total: int
    matches_total: int


class ProgressListener(StreamingQueryListener):
    """Tells the progress of one query to a function."""

    def __init__(self, records: BatchRecords, tell: Callable[[StreamProgress], Any]) -> None:
        self._records = records
        self._tell = tell
        self._query = ""
        self._known = threading.Event()

    def follow(self, query_id: object) -> None:
        """This is the query to tell about."""
        self._query = str(query_id)
        self._known.set()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._known.wait(_START_S_MAX)
        if str(event.progress.id) == self._query:
            self._tell(progress_of(json.loads(event.progress.json), self._records))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


def progress_of(said: dict[str, Any], records: BatchRecords) -> StreamProgress:
    """Spark's progress of a batch and the record of it, together."""
    batch = int(said["batchId"])
    record = records.of(batch)
    matches = record.matches if record else None
    seconds = float(said.get("batchDuration") or said["durationMs"]["triggerExecution"]) / 1000
    messages = int(said["numInputRows"])
    return StreamProgress(
        batch=batch,
        version=record.version if record else None,
        messages=messages,
        matches=matches,
        messages_per_s=messages / seconds if seconds else 0.0,
        matches_per_s=matches / seconds if matches is not None and seconds else None,
        lag_s=seconds,
        behind=_behind(said["sources"]),
        messages_total=record.messages_total if record else messages,
        matches_total=record.matches_total if record else 0,
    )


def _behind(sources: list[dict[str, Any]]) -> int | None:
    """Sources that tell have a metric such as Kafka's maxOffsetsBehindLatest."""
    told = [
        float(value)
        for source in sources
        for name, value in (source.get("metrics") or {}).items()
        if name in ("maxOffsetsBehindLatest", "numFilesOutstanding")
    ]
    return int(sum(told)) if told else None
