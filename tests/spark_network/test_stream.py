"""Readers and writers as Spark calls them, with restarts anywhere, against real brokers.

Spark's own logs are played here: a batch that was planned runs again with the same offsets, and what
was committed is never asked for again. So many crashes are tried in seconds, without Java.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StructType

from palio.errors import InvalidValue, RefusedByBroker, SubscriptionEnded, Unreachable
from palio.net import blocking
from palio.spark_network.options import STREAM_READ, WRITE, read_options
from palio.spark_network.stream import StreamReader
from tests.spark_network.brokers import brokers

SCHEMA = StructType().add("x", LongType())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with brokers(tmp_path_factory.mktemp("broker"), "milan") as (url,):
        yield url


def reader(url: str, durable: str, **more: str) -> StreamReader:
    given = {"url": url, "durable": durable, "predicate": "x >= 0", "timeout": "10", **more}
    return StreamReader(read_options(given, STREAM_READ, "a stream that is read"), SCHEMA)


def read(stream: StreamReader, start: dict[str, int], end: dict[str, int]) -> list[int]:
    parts = stream.partitions(start, end)
    return [x for part in parts for batch in stream.read(part) for x in batch["x"].to_pylist()]


def publish(url: str, *numbers: int) -> None:
    with blocking.connect(url) as client:
        client.publish_many({"x": x} for x in numbers)


def arrived(stream: StreamReader, start: dict[str, int], limit: Any = None) -> dict[str, int]:
    """As Spark does it: ask until there is something."""
    for _ in range(1000):
        end = stream.latestOffset(start, limit or ReadAllAvailable())
        if end != start:
            return end
        stream._open().pull(0.01)
    raise AssertionError("nothing came")


@pytest.mark.parametrize("seed", range(10))
def test_crashes_anywhere_lose_and_double_nothing(url: str, seed: int) -> None:
    """Offsets, commits: what Spark has on disk. A crash loses everything else."""
    dice = random.Random(seed)
    name = f"crashes {seed}"
    stream = reader(url, name, maxMessages="7")
    start = stream.initialOffset()
    offsets, rows = [start], []
    committed = 0
    publish(url, *range(100))

    def crashed() -> bool:
        nonlocal stream
        if dice.random() < 0.25:
            stream.stop()  # no acknowledgement; a kill would close the socket likewise
            size = str(dice.choice([1, 7, 30]))
            stream = reader(url, name, maxMessages=size)
            return True
        return False

    while len(rows) < 100:
        if committed == len(offsets) - 1:  # plan
            limit = stream.getDefaultReadLimit()
            assert isinstance(limit, ReadMaxRows)
            offsets.append(arrived(stream, offsets[-1], limit))
            if crashed():
                continue
        found = read(stream, offsets[-2], offsets[-1])  # run
        if crashed():
            continue
        rows += found
        committed += 1
        if not crashed() and committed:
            stream.commit(offsets[-1])
            crashed()
    assert rows == list(range(100))
    stream.stop()


def test_a_batch_that_is_planned_is_the_same_in_another_process(url: str) -> None:
    first = reader(url, "planned", maxMessages="3")
    start = first.initialOffset()
    publish(url, *range(10))
    end = arrived(first, start, ReadMaxRows(3))
    first.stop()
    publish(url, 10)
    second = reader(url, "planned")
    assert read(second, start, end) == [0, 1, 2][: len(read(second, start, end))]
    second.commit(end)
    rest = arrived(second, end)
    assert read(second, end, rest)[0] == end["position"]
    second.stop()


def test_a_subscription_that_was_forgotten_stops_the_query(url: str) -> None:
    first = reader(url, "forgotten")
    start = first.initialOffset()
    first.stop()
    with blocking.connect(url) as client:
        client.subscribe("x >= 0", durable="forgotten").close(forget=True)
    second = reader(url, "forgotten")
    with pytest.raises(SubscriptionEnded, match="not the one that this checkpoint has read"):
        second.latestOffset(start, ReadAllAvailable())
    second.stop()


def test_two_queries_with_one_name(url: str) -> None:
    first, second = reader(url, "shared"), reader(url, "shared")
    start = first.initialOffset()
    assert second.initialOffset() == start
    with pytest.raises(SubscriptionEnded, match="taken it over"):
        first._open().wait_for(1)
    first.stop()
    second.stop()


def test_available_now_ends_with_what_is_there(url: str) -> None:
    first = reader(url, "now")
    start = first.initialOffset()
    first.stop()
    publish(url, *range(20))
    second = reader(url, "now", maxMessages="6")
    second.prepareForTriggerAvailableNow()
    publish(url, 99)
    found: list[int] = []
    while (end := second.latestOffset(start, ReadMaxRows(6))) != start:
        found += read(second, start, end)
        second.commit(end)
        start = end
    assert found == list(range(20))
    second.stop()


def test_best_effort_messages_are_left_out(url: str) -> None:
    stream = reader(url, "kept only")
    start = stream.initialOffset()
    with blocking.connect(url) as client:
        client.publish({"x": 1}, durable=False)
        client.publish({"x": 2})
    assert read(stream, start, arrived(stream, start)) == [2]
    stream.stop()


def test_sentences_of_brokers(url: str) -> None:
    with pytest.raises(Unreachable, match=r"no broker at palio://127\.0\.0\.1:9 "):
        reader("palio://127.0.0.1:9", "x", timeout="0.1").initialOffset()
    taken = reader(url, "other predicate")
    taken.initialOffset()
    taken.stop()
    with pytest.raises(RefusedByBroker, match="has the predicate"):
        reader(url, "other predicate", predicate="x < 5").initialOffset()
    with pytest.raises(InvalidValue):
        read_options({"url": "palio://"}, WRITE, "w")
