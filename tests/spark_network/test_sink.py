"""Writers as Spark calls them, with attempts that fail, against real brokers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark.sql.types import LongType, StructType

from palio.net import blocking
from palio.spark_network import sink
from palio.spark_network.options import WRITE, read_options
from palio.spark_network.sink import BatchWriter, StreamWriter, TaskMessages
from palio.spark_network.stream import StreamReader
from tests.spark_network.brokers import brokers

SCHEMA = StructType().add("x", LongType())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with brokers(tmp_path_factory.mktemp("broker"), "milan") as (url,):
        yield url


def read(stream: StreamReader, start: dict[str, int], end: dict[str, int]) -> list[int]:
    parts = stream.partitions(start, end)
    return [x for part in parts for batch in stream.read(part) for x in batch["x"].to_pylist()]


def share(query: str, *numbers: int) -> TaskMessages:
    return TaskMessages(query, [((), b'{"x":%d}' % x, b"") for x in numbers])


def test_a_batch_that_is_published_again_is_stored_once(url: str) -> None:
    writer = StreamWriter(read_options({"url": url}, WRITE, "w"), SCHEMA)
    with (
        blocking.connect(url) as client,
        client.subscribe("x >= 1000 AND x < 2000", durable="sink", timeout=2) as subscription,
    ):
        parts = [range(1000, 1400), range(1400, 1700)]
        messages = sorted(b'{"x":%d}' % x for part in parts for x in part)
        # A process that was killed in the middle: some are stored, under the same numbers.
        with blocking.connect(url, name="spark-q", first=(5 << 32) + 1) as killed:
            killed.publish_many({"x": int(m[5:-1])} for m in messages[:250])
        writer.commit([share("q", *part) for part in parts], 5)
        mixed = [x for part in parts for x in part]
        random.Random(1).shuffle(mixed)  # Spark gives rows in another order and other parts
        writer.commit([share("q", *mixed[:10]), None, share("q", *mixed[10:])], 5)
        writer.commit([share("q", 1000, 1000)], 6)  # the same content twice is two messages
        writer.commit([share("q"), None], 7)
        found = Counter(note.attributes["x"] for note in subscription)
    assert found == Counter(range(1000, 1700)) + Counter({1000: 2})


def test_a_task_that_is_tried_again_publishes_what_is_missing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "_task", lambda: SimpleNamespace(partitionId=lambda: 3))
    writer = BatchWriter(read_options({"url": url, "orderBy": "x"}, WRITE, "w"), SCHEMA)
    rows = [{"x": x} for x in range(2000, 2600)]
    with (
        blocking.connect(url) as client,
        client.subscribe("x >= 2000 AND x < 3000", durable="task", timeout=2) as subscription,
    ):
        with blocking.connect(url, name=f"spark-{writer._id}-3", first=1) as killed:
            killed.publish_many(rows[:350])
        for _attempt in range(2):
            random.Random(_attempt).shuffle(rows)
            assert writer.write(iter([pa.RecordBatch.from_pylist(rows)])).messages == 600
        found = [note.attributes["x"] for note in subscription]
    assert found == list(range(2000, 2600))
