"""A replay as Spark calls it, against real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark.sql.types import LongType, StructType

from palio.net import blocking
from palio.spark_network.options import BATCH_READ, read_options
from palio.spark_network.replay import Replay
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


def publish(url: str, *numbers: int) -> None:
    with blocking.connect(url) as client:
        client.publish_many({"x": x} for x in numbers)


def test_a_busy_broker_is_not_the_end(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk is slow once: it stores nothing for longer than `quiet`."""
    publish(url, *range(100))
    given = {"url": url, "predicate": "x < 100", "quiet": "0.3"}
    replay = Replay(read_options(given, BATCH_READ, "a batch that is read"), SCHEMA)
    (span,) = replay.partitions()
    stored_after = [1.0, 0.0]
    answer_s = replay._answer_s
    monkeypatch.setattr(
        replay, "_answer_s", lambda *given: max(stored_after.pop(0), answer_s(*given))
    )
    assert sum(len(batch) for batch in replay.read(span)) == 100
    assert not stored_after, "it was asked again"


def test_a_replay_ends_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with brokers(tmp_path, "milan", "rome") as (milan, rome):
        for i, place in enumerate((milan, rome)):
            publish(place, *range(i, 5000, 2))
        given = {"url": milan, "predicate": "x < 4900", "quiet": "2"}
        replay = Replay(read_options(given, BATCH_READ, "a batch that is read"), SCHEMA)
        (span,) = replay.partitions()
        publish(milan, 1)  # after the query was planned
        for _attempt in range(2):
            rows = [x for batch in replay.read(span) for x in batch["x"].to_pylist()]
            assert sorted(rows) == list(range(4900))
        with blocking.connect(milan) as client:
            assert [place.durable for place in client.topology()] == [0, 0]
