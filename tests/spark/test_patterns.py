"""Patterns on Spark against the local monitor: batches, streams, a restart in between."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.routing.patterns import Monitor
from palio.spark.patterns import _PROVIDER, ROCKSDB, match_patterns

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PATTERN = (
    "([what = 'a'] and [what = 'b' and level > 2]) then [what = 'c'] within 40 seconds same host"
)
WITHOUT = PATTERN.removesuffix(" same host")
START = datetime(2024, 5, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", tz="UTC")),
        ("host", pa.string()),
        ("what", pa.string()),
        ("level", pa.int64()),
        ("load", pa.float64()),
        ("day", pa.date32()),
    ]
)
MODIFIED = time.time() - 60
Rows = list[dict[str, Any]]


@pytest.fixture
def rocksdb(spark: Any) -> Iterator[Any]:
    """One partition of state: the test's time is mostly what a micro-batch costs."""
    chosen = {_PROVIDER: ROCKSDB, "spark.sql.shuffle.partitions": "1"}
    before = {name: spark.conf.get(name) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def draw(seed: int, count: int = 300) -> Rows:
    """Rows in the order of time, some at the same; hosts are few, and may be missing."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(0, count) for _ in range(count))
    return [
        {
            "time": START + timedelta(seconds=t),
            "host": rng.choice(["h1", "h2", "h3", None]),
            "what": rng.choice("abcx"),
            "level": rng.choice([1, 3, 2**53 + 1, None]),
            "load": rng.choice([0.5, float("nan"), None]),
            "day": START.date(),
        }
        for t in times
    ]


def expected(rows: Rows, pattern: str = PATTERN) -> list[tuple[Any, ...]]:
    """What one local monitor finds; rows of equal time in the order that Spark's have."""
    monitor = Monitor(pattern)
    found = []
    for row in sorted(rows, key=lambda r: (r["time"], _digest(r))):
        micros = (row["time"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        found += monitor.feed((row, micros))
    return sorted(
        (*c.key, c.start, c.end, tuple(m.message.to_json() for m in c.messages)) for c in found
    )


def _digest(row: dict[str, Any]) -> str:
    import hashlib

    return hashlib.blake2b(Message(row).to_json().encode(), digest_size=8).hexdigest()


def collected(found: Any) -> list[tuple[Any, ...]]:
    rows = found.selectExpr(
        *(f"`{name}`" for name in found.columns if name not in ("start", "end", "messages")),
        "unix_micros(start) AS s",
        "unix_micros(end) AS e",
        "messages",
    ).collect()
    return sorted((*row[:-1], tuple(row[-1])) for row in rows)


def write(rows: Rows, folder: Path, number: int) -> None:
    """A stream takes files by the time of their change; of two in one millisecond, either."""
    folder.mkdir(exist_ok=True, parents=True)
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    pq.write_table(table, folder / f".{number:03d}", coerce_timestamps="us")
    os.utime(folder / f".{number:03d}", (MODIFIED + number, MODIFIED + number))
    (folder / f".{number:03d}").rename(folder / f"{number:03d}.parquet")


def test_batch_equals_the_local_monitor(spark: Any, tmp_path: Path) -> None:
    rows = draw(1)
    shuffled = random.Random(2).sample(rows, len(rows))
    write(shuffled[:100], tmp_path / "in", 0)
    write(shuffled[100:], tmp_path / "in", 1)
    df = spark.read.parquet(str(tmp_path / "in"))
    found = match_patterns(df, PATTERN)
    assert found.columns == ["host", "start", "end", "messages"]
    assert len(expected(rows)) > 8
    assert collected(found) == expected(rows)
    assert collected(match_patterns(df, WITHOUT)) == expected(rows, WITHOUT)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_the_zone_of_the_session(spark: Any, zone: str) -> None:
    """The texts of a pattern mean what the same texts mean to `forward`, and behind WHERE."""
    first = "time = TIMESTAMP '2024-05-01 10:00:00'"
    second = "hour(time) = 11 AND time < TIMESTAMP '2024-05-01 11:30:00'"
    hours = [START + timedelta(minutes=20 * i) for i in range(72)]
    df = spark.createDataFrame([(at, "a") for at in hours], "time timestamp, what string")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        wanted = [df.where(text).agg({"time": "min"}).collect()[0][0] for text in (first, second)]
        rows = match_patterns(df, f"[{first}] then [{second}]").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    [found] = rows
    assert [found["start"], found["end"]] == wanted
    micros = [int(at.timestamp() * 1_000_000) for at in hours]
    monitor = Monitor(f"[{first}] then [{second}]", zone=zone)
    local = [
        c for at, m in zip(hours, micros, strict=True) for c in monitor.feed(({"time": at}, m))
    ]
    assert [(c.start, c.end) for c in local] == [
        tuple(int(at.timestamp() * 1_000_000) for at in wanted)
    ]


EXPRESSIONS = [
    "[lower(what) = 'a'] then [what LIKE 'c%d_'] same host",
    "[array_contains(tags, 'x') AND size(tags) > 1] then [tags[0] = 'y']",
    "[tags = array('x')] then [exists(tags, t -> t = 'z')] within 30 seconds",
    "[level * 2 > 4 OR price + 0.2 = 0.3] and [coalesce(level, 0) = 0]",
    "[m['k'] = 5] then [year(time) = 2024 AND what RLIKE '^[Cc]']",
]


def test_expressions_and_arrays(spark: Any) -> None:
    rng = random.Random(5)
    rows = [
        {
            "time": START + timedelta(seconds=i),
            "host": rng.choice(["h1", "h2"]),
            "what": rng.choice(["a", "A", "c1d2", "Cd", "x"]),
            "level": rng.choice([1, 3, None]),
            "price": rng.choice([Decimal("0.10"), Decimal("0.20"), None]),
            "tags": rng.choice([["x"], ["x", "z"], ["y"], [], None]),
            "m": rng.choice([{"k": 5}, {"j": 5}, None]),
        }
        for i in range(120)
    ]
    schema = (
        "time timestamp, host string, what string, level bigint, price decimal(10, 2), "
        "tags array<string>, m map<string, bigint>"
    )
    df = spark.createDataFrame(rows, schema)
    for pattern in EXPRESSIONS:
        found = match_patterns(df, pattern).selectExpr("unix_micros(start) s", "unix_micros(end) e")
        local = []
        monitor = Monitor(pattern)
        for row in rows:
            local += monitor.feed((row, int(row["time"].timestamp() * 1_000_000)))
        assert len(local) > 1, pattern
        assert sorted(map(tuple, found.collect())) == sorted((c.start, c.end) for c in local)


@pytest.mark.slow
def test_stream_equals_the_local_monitor_across_a_restart(rocksdb: Any, tmp_path: Path) -> None:
    """Three files, out of order within the watermark's delay; the query stops after the first."""
    rows = draw(3)
    rng = random.Random(4)
    arrivals = sorted(rows, key=lambda r: r["time"] + timedelta(seconds=rng.uniform(0, 15)))
    end = {**dict.fromkeys(SCHEMA.names), "time": START + timedelta(days=1), "host": "end"}
    schema = rocksdb.createDataFrame(
        [], "time timestamp, host string, what string, level bigint, load double, day date"
    ).schema

    def run() -> None:
        source = (
            rocksdb.readStream.schema(schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(tmp_path / "in"))
            .withWatermark("time", "20 seconds")
        )
        query = (
            match_patterns(source, WITHOUT, key=["host"])
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        assert query.awaitTermination(120)
        assert query.exception() is None

    for number in range(3):
        write(arrivals[number * 100 : number * 100 + 100], tmp_path / "in", number)
        if number == 0:
            run()
    write([end], tmp_path / "in", 3)
    run()
    assert len(expected(rows)) > 8
    assert collected(rocksdb.read.parquet(str(tmp_path / "out"))) == expected(rows)


def test_mistakes_are_named(spark: Any, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, "a", "b")], "time int, what string, host string")
    with pytest.raises(InvalidValue, match="no column 'node'"):
        match_patterns(df, "[what = 'a'] then [what = 'b'] same node")
    with pytest.raises(InvalidValue, match="time of a message is a timestamp"):
        match_patterns(df, "[what = 'a'] then [what = 'b']")
    write(draw(1, 2), tmp_path / "in", 0)
    stream = spark.readStream.schema("time timestamp, what string").parquet(str(tmp_path / "in"))
    with pytest.raises(InvalidValue, match="RocksDB"):
        match_patterns(stream, "[what = 'a'] then [what = 'b']")
