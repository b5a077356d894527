"""A batch of what was published: a durable subscription that starts in the past, read to its end.

    startingTime ─────────────────── endingTime (default: when the query was planned) ── now
        stored at its first broker then or later         published then or earlier

No broker knows what all others still have to send. So a replay ends when no message of that time
has come for `quiet` seconds, and then the broker stores something at once: a disk or a processor that
is busy for long is not the end. Each attempt of the task makes its own subscription, and forgets it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from palio.carried_errors import carried
from palio.errors import PalioError
from palio.net import blocking
from palio.net.client.notes import microseconds
from palio.spark_network.columns import ColumnLayout, StreamedMessage
from palio.spark_network.options import Options
from palio.spark_network.pushdown import narrowed

if TYPE_CHECKING:
    import pyarrow as pa

CREDIT = 8192
BATCH_ROWS = 4096


@dataclass
class ReplayPartition(InputPartition):
    """The whole replay. It is one partition, since a subscription has one queue."""

    name: str
    predicate: str
    starting_us: int
    ending_us: int


class Replay(DataSourceReader):
    """`pushFilters` and `partitions` run on the driver, `read` in a task."""

    def __init__(self, options: Options, schema: Any) -> None:
        self._options = options
        self._columns = ColumnLayout(schema, options.is_strict)
        self._predicate = options.predicate

    def partitions(self) -> list[InputPartition]:
        options = self._options
        now_us = time.time_ns() // 1000
        ending_us = now_us if options.ending_time is None else options.ending_time
        name = f"spark-replay-{secrets.token_hex(8)}"
        return [ReplayPartition(name, self._predicate, options.starting_time or 0, ending_us)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReplayPartition)
        with carried():
            yield from self._read(partition)

    def _read(self, partition: ReplayPartition) -> Iterator[pa.RecordBatch]:
        with self._options.connect(f"{partition.name}-{secrets.token_hex(4)}") as client:
            self._subscribe(client, partition).close(forget=True)  # of an attempt that failed
            subscription = self._subscribe(client, partition)
            try:
                for messages in self._pieces(client, subscription, partition):
                    yield self._columns.batch(messages)
            finally:
                with suppress(PalioError):
                    subscription.close(forget=True)

    def _subscribe(self, client: blocking.Client, span: ReplayPartition) -> blocking.Subscription:
        return client.subscribe(
            span.predicate,
            durable=span.name,
            since=span.starting_us,
            credit=CREDIT,
            full=self._options.full,
        )

    def _pieces(
        self, client: blocking.Client, subscription: blocking.Subscription, span: ReplayPartition
    ) -> Iterator[list[StreamedMessage]]:
        messages: list[StreamedMessage] = []
        positions: list[int] = []
        quiet_s, is_broker_idle = self._options.quiet, False
        until = time.monotonic() + quiet_s
        while (left := until - time.monotonic()) > 0 or not is_broker_idle:
            if left <= 0:
                is_broker_idle = self._answer_s(client, span) < quiet_s / 10
                # If it is: what it sent before its answer is here in a moment.
                until = time.monotonic() + quiet_s / (10 if is_broker_idle else 1)
                continue
            try:
                note = subscription.next(timeout=left)
            except TimeoutError:
                continue
            if not note.position:
                continue  # a best-effort message of now
            positions.append(note.position)
            if microseconds(note.time) <= span.ending_us:
                messages.append(StreamedMessage.of(note))
                until, is_broker_idle = time.monotonic() + quiet_s, False
            if len(positions) >= BATCH_ROWS:
                subscription.acknowledge(positions)
                yield messages
                messages, positions = [], []
        yield messages

    def _answer_s(self, client: blocking.Client, span: ReplayPartition) -> float:
        """How long the broker takes to store something."""
        began = time.monotonic()
        client.subscribe("FALSE", durable=f"{span.name}-asks").close(forget=True)
        return time.monotonic() - began


class PushingReplay(Replay):
    """Spark refuses a reader with `pushFilters` where pushing down is switched off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        self._predicate = narrowed(self._predicate, filters, self._columns.attributes)
        return filters
