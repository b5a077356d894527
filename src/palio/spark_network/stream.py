"""A stream of messages: a durable subscription, read by the driver, in micro-batches.

    queue at the broker      3   4   5   6   7   8   9 │ 10  11  12 ...
    the driver holds       acknowledged  │           │
                                 committed         planned          offsets = positions

The offset of a batch is the position of its last message in the queue of the subscription, so a
batch is the same whenever Spark asks for it. A message is acknowledged when Spark says that its
batch is committed, and not before: whatever happens to this process, the broker redelivers what is
not committed, under the same positions. A committed message that it redelivers, since the
acknowledgement was lost, is acknowledged once more and given to nobody.

An offset also holds the version of the subscription. If the subscription was forgotten, or its
broker lost its disk, positions mean something else, and the query stops with an error.
"""

from __future__ import annotations

import secrets
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from palio.carried_errors import carried
from palio.errors import InvalidValue, PalioError, SubscriptionEnded, Unreachable
from palio.spark_network.columns import ColumnLayout, StreamedMessage
from palio.spark_network.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION_BYTES = 900_000
"""Of messages in one task; Spark warns of tasks beyond 1,000 KiB."""
BATCH_ROWS = 4096


@dataclass
class MessagePartition(InputPartition):
    """Messages on their way to a task."""

    messages: list[StreamedMessage]


class Intake:
    """The subscription, and the messages that it received and that are not committed."""

    def __init__(self, options: Options, least: int = 0) -> None:
        """`least`: so many messages must have room at once, because they are one batch."""
        self._options = options
        # A batch is acknowledged when the next one is planned, so two of them are held.
        self.credit = max(options.max_messages, least) + options.max_messages + 1
        self._client = options.connect(f"spark-{secrets.token_hex(6)}")
        try:
            self._subscription = self._client.subscribe(
                options.predicate,
                durable=options.durable,
                since=options.starting_time,
                credit=self.credit,
                full=options.full,
            )
        except BaseException:
            self.close()
            raise
        answer = self._subscription.subscribed
        assert answer is not None
        self.version, self.committed, self.last = answer.version, answer.position, answer.last
        self._messages: list[StreamedMessage] = []
        self._positions: list[int] = []

    def pull(self, wait: float = 0.0) -> None:
        """Take what has arrived; if nothing has, wait so many seconds for something."""
        stale: list[int] = []
        try:
            while True:
                note = self._subscription.next(timeout=wait)
                wait = 0.0
                if note.position > self.committed:
                    self._hold(StreamedMessage.of(note))
                elif (
                    note.position
                ):  # best-effort messages have none: no broker could redeliver them
                    stale.append(note.position)
        except TimeoutError:
            pass
        answer = self._subscription.subscribed
        if answer is not None and answer.version != self.version:
            raise SubscriptionEnded(anew(self._options))
        if stale:
            self._subscription.acknowledge(stale)

    def _hold(self, received: StreamedMessage) -> None:
        at = bisect_right(self._positions, received.position)
        self._positions.insert(at, received.position)
        self._messages.insert(at, received)

    def between(self, start: int, end: int) -> list[StreamedMessage]:
        """The messages after the position `start`, up to `end`."""
        first, last = bisect_right(self._positions, start), bisect_right(self._positions, end)
        return self._messages[first:last]

    def wait_for(self, position: int) -> None:
        """Wait for this message, which the broker is known to have."""
        until = time.monotonic() + self._options.timeout
        self.pull()
        while not self._positions or self._positions[-1] < position:
            left = until - time.monotonic()
            if left <= 0:
                raise Unreachable(
                    f"message {position} of the durable subscription {self._options.durable!r}, "
                    "which is in a batch of the checkpoint, did not come within "
                    f"{self._options.timeout:g} s: another client acknowledged it, or its broker "
                    "cannot be reached",
                    remedy="raise `timeout`, or start with a new checkpoint",
                )
            self.pull(min(left, 1.0))

    def commit(self, position: int) -> None:
        """Acknowledge all messages up to this position."""
        self.committed = max(self.committed, position)
        count = bisect_right(self._positions, position)
        if count:
            self._subscription.acknowledge(self._positions[:count])
            del self._positions[:count], self._messages[:count]

    def close(self) -> None:
        with suppress(PalioError):
            self._client.close()


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What Spark asks, in a Python process of the driver; `read` alone runs in tasks."""

    def __init__(self, options: Options, schema: Any) -> None:
        if not options.durable:
            raise InvalidValue(
                "a stream needs a name for its durable subscription, which waits for it at the "
                'broker between restarts: .option("durable", "...")'
            )
        self._options = options
        self._columns = ColumnLayout(schema, options.is_strict)
        self._intake: Intake | None = None
        self._is_placed = False
        self._target: int | None = None
        """Of a query that ends with what is there."""

    def _open(self, start: dict[str, int] | None = None) -> Intake:
        """The subscription. The first `start` comes from the checkpoint, so all up to it is
        committed; later ones may only be planned."""
        if self._intake is None:
            self._intake = Intake(self._options)
        if start is not None:
            if start["version"] != self._intake.version:
                raise SubscriptionEnded(anew(self._options))
            if not self._is_placed:
                self._is_placed = True
                self._intake.commit(start["position"])
        return self._intake

    def _offset(self, position: int) -> dict[str, int]:
        return {"position": position, "version": self._open().version}

    @carried()
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return self._offset(self._open().committed)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_messages)

    @carried()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._open().last

    @carried()
    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        intake = self._open(start)
        intake.pull()
        position = start["position"]
        if self._target is not None and position < self._target:
            intake.wait_for(position + 1)
        most = self._target if self._target is not None else 1 << 63
        messages = intake.between(position, most)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else intake.credit - 1
        messages = messages[:rows]  # fewer than the credit, so that new messages have room
        return self._offset(messages[-1].position) if messages else start

    @carried()
    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if start == end:
            return []
        intake = self._open(start)
        size = end["position"] - start["position"]
        if size >= intake.credit:  # planned when maxMessages was larger
            intake.close()
            self._intake = intake = Intake(self._options, size)
            intake.commit(start["position"])
        intake.wait_for(end["position"])
        return [
            MessagePartition(part)
            for part in _parts(intake.between(start["position"], end["position"]))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, MessagePartition)
        for first in range(0, len(partition.messages), BATCH_ROWS):
            with carried():
                batch = self._columns.batch(partition.messages[first : first + BATCH_ROWS])
            yield batch

    @carried()
    def commit(self, end: dict[str, int]) -> None:
        self._open(end).commit(end["position"])

    def stop(self) -> None:
        if self._intake is not None:
            self._intake.close()


def _parts(messages: list[StreamedMessage]) -> Iterator[list[StreamedMessage]]:
    """The messages in parts, one for each task."""
    part: list[StreamedMessage] = []
    size = 0
    for received in messages:
        part.append(received)
        size += len(received.attributes) + len(received.body) + 100
        if size >= PARTITION_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def anew(options: Options) -> str:
    return (
        f"the durable subscription {options.durable!r} at {options.url} is not the one that this "
        "checkpoint has read: it was forgotten and made anew, its broker lost its disk, or the url "
        "is of another broker. Messages may be missing: start with a new checkpoint, and with "
        "`startingTime` to get what is still kept"
    )
