"""Streams against the naive engine: crashes, new versions, repeated batches, files by interface."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.spark import streams
from tests.spark.streams import AVAILABLE

import palio
import palio.spark
from palio.lab.data import flights
from palio.spark.batches import BatchRecords
from palio.spark.failures import sentence
from palio.spark.progress import StreamProgress

WIDE = {"columns": flights.SCHEMA.names}

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def tables(tmp_path: Path) -> palio.spark.TableDirectory:
    made = palio.spark.TableDirectory(tmp_path / "tables")
    made.publish(palio.ForwardingTable.compile(streams.PREDICATES))
    return made


def wait_until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.1)


def finished(query: Any) -> None:
    assert query.awaitTermination(120)
    assert query.exception() is None


def test_files_hold_the_batch_answer_and_progress_is_told(
    spark: Any, tmp_path: Path, tables: palio.spark.TableDirectory
) -> None:
    streams.write(tmp_path / "in", 3)
    told: list[StreamProgress] = []
    out = tmp_path / "out"
    source = streams.source(spark, tmp_path / "in")
    finished(
        palio.spark.route_stream(source, tables, out, progress=told.append, **WIDE, **AVAILABLE)
    )
    assert streams.pairs(spark, out) == streams.expected()
    assert streams.pairs(spark, out, table_version=1, batch=0) == [
        p for p in streams.expected() if p[0] < streams.ROWS // 3
    ]
    wait_until(lambda: len(told) == 3)
    assert [p.batch for p in told] == [0, 1, 2]
    assert {p.version for p in told} == {1}
    assert told[-1].messages_total == sum(p.messages for p in told) == streams.ROWS
    assert told[-1].matches_total == sum(p.matches or 0 for p in told) == len(streams.expected())
    assert all(p.messages_per_s > 0 and p.lag_s > 0 for p in told)
    # The same again finds nothing to do; more files are routed, the earlier ones are not.
    finished(palio.spark.route_stream(source, tables, out, **WIDE, **AVAILABLE))
    assert streams.pairs(spark, out) == streams.expected()
    streams.write(tmp_path / "in", 1, first=3)
    finished(palio.spark.route_stream(source, tables, out, **WIDE, **AVAILABLE))
    assert streams.pairs(spark, out) == sorted(streams.expected() * 2)


@pytest.mark.slow
def test_kill_and_restart_lose_and_double_nothing(spark: Any, killed: Path) -> None:
    """Killed twice: between batches somewhere, and with a batch whole but not in the checkpoint."""
    out, tables = killed / "out", killed / "tables"
    done = len(list(out.glob("batch=*")))
    assert done < streams.KILLED_FILES
    assert {r.version for r in BatchRecords(out / "_palio/batches").all()} == {1}
    # As if it had died a moment earlier: Spark has not noted the last batch, and repeats it.
    (out / "_palio/checkpoint/commits" / str(done - 1)).unlink(missing_ok=True)
    (out / "_palio/checkpoint/commits" / f".{done - 1}.crc").unlink(missing_ok=True)
    source = streams.source(spark, killed / "in")
    finished(palio.spark.route_stream(source, tables, out, **WIDE, **AVAILABLE))
    assert streams.pairs(spark, out) == streams.expected()
    assert len(list(out.glob("batch=*"))) == streams.KILLED_FILES
    last = BatchRecords(out / "_palio/batches").last()
    assert last is not None
    assert (last.messages_total, last.matches_total) == (streams.ROWS, len(streams.expected()))


def test_a_new_version_is_used_within_two_batches(
    spark: Any, tmp_path: Path, tables: palio.spark.TableDirectory
) -> None:
    streams.write(tmp_path / "in", 1)
    out = tmp_path / "out"
    newer = {**streams.PREDICATES, "none": "flight > 0"}
    source = streams.source(spark, tmp_path / "in")
    query = palio.spark.route_stream(source, tables, out, **WIDE)
    try:
        wait_until(lambda: (out / "batch=000000").exists())
        assert tables.publish(palio.ForwardingTable.compile(newer)) == 2
        for i in (1, 2):
            streams.write(tmp_path / "in", 1, first=i)
            wait_until(lambda i=i: (out / f"batch={i:06d}").exists())
    finally:
        query.stop()
    assert streams.pairs(spark, out, batch=0, table_version=1) == streams.expected()
    assert streams.pairs(spark, out, batch=2, table_version=2) == streams.expected(newer)
    rows = spark.read.parquet(str(out)).select("batch", "table_version").distinct().collect()
    assert len(rows) == 3  # one version for each batch


def test_a_repeated_batch_is_routed_by_its_own_version(
    spark: Any, tmp_path: Path, tables: palio.spark.TableDirectory
) -> None:
    streams.write(tmp_path / "in", 2)
    out = tmp_path / "out"
    source = streams.source(spark, tmp_path / "in")
    seen: list[tuple[int, int, int]] = []

    def failing(rows: Any, batch: int, version: int) -> None:
        seen.append((batch, version, rows.count()))
        if len(seen) == 2:
            raise RuntimeError("the sink is down")

    sink = {"checkpoint": tmp_path / "checkpoint", **WIDE, **AVAILABLE}
    query = palio.spark.route_stream(source, tables, failing, **sink)
    with pytest.raises(Exception, match="the sink is down"):
        query.awaitTermination(120)
    tables.publish(palio.ForwardingTable.compile({"none": "flight < 0"}))
    finished(palio.spark.route_stream(source, tables, failing, **sink))
    assert [s[:2] for s in seen] == [(0, 1), (1, 1), (1, 1)]
    assert seen[2] == seen[1]
    assert seen[0][2] + seen[1][2] == len(streams.expected())
    # Into files: a batch that was begun, and whose version is gone, is an error and not a guess.
    record = out / "_palio/batches/000000.json"
    record.parent.mkdir(parents=True)
    known = json.loads((tmp_path / "checkpoint/batches/000000.json").read_text())
    record.write_text(json.dumps(known))
    tables.prune(keep=1)
    query = palio.spark.route_stream(source, tables, out, **WIDE, **AVAILABLE)
    with pytest.raises(Exception) as raised:
        query.awaitTermination(120)
    assert "batch 0 is routed by version 1 of the table, and that was removed" in sentence(
        raised.value
    )
    assert "\n" not in sentence(raised.value)
    assert list(out.glob("batch=*")) == []


@pytest.mark.parametrize("made", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_partitioned_table(
    spark: Any, tmp_path: Path, tables: palio.spark.TableDirectory, made: bool
) -> None:
    """In shards already, as version 0; or each version split on the driver."""
    streams.write(tmp_path / "in", 2)
    out = tmp_path / "out"
    source = streams.source(spark, tmp_path / "in")
    told: list[StreamProgress] = []
    table = palio.ForwardingTable.compile(streams.PREDICATES)
    parts = palio.spark.partition(table, tmp_path / "parts", shards=2) if made else tables
    options: dict[str, Any] = {} if made else {"strategy": "partitioned"}
    route = palio.spark.route_stream
    finished(route(source, parts, out, progress=told.append, **options, **WIDE, **AVAILABLE))
    version = 0 if made else 1
    assert streams.pairs(spark, out, table_version=version) == streams.expected()
    wait_until(lambda: len(told) == 2)
    assert [p.version for p in told] == [version] * 2
    assert told[-1].matches_total == len(streams.expected())
    with pytest.raises(palio.PalioError, match="no column 'gone'"):
        route(source, parts, tmp_path / "other", columns=["gone"], **options)


@pytest.mark.slow
def test_files_by_interface_and_by_group(
    spark: Any, tmp_path: Path, tables: palio.spark.TableDirectory
) -> None:
    streams.write(tmp_path / "in", 2)
    source = streams.source(spark, tmp_path / "in")
    groups = {"late": "board", "ua": "airline", "jfk": "board"}
    for name, partition_by in (
        ("interface", "interface"),
        ("mapping", groups),
        ("function", lambda interface: groups.get(interface, "rest")),
    ):
        sink = palio.spark.FileSink(tmp_path / name, partition_by=partition_by)
        finished(palio.spark.route_stream(source, tables, sink, **WIDE, **AVAILABLE))
        assert streams.pairs(spark, tmp_path / name) == streams.expected()
    own = str(tmp_path / "interface" / "batch=*" / "interface=late")
    numbers = sorted(row["number"] for row in spark.read.parquet(own).collect())
    assert numbers == [n for n, interface in streams.expected() if interface == "late"]
    for name in ("mapping", "function"):
        board = spark.read.parquet(str(tmp_path / name / "batch=*" / "group=board"))
        assert {row["interface"] for row in board.collect()} == {"late", "jfk"}


def test_bad_input_is_a_sentence_at_the_start(spark: Any, tmp_path: Path) -> None:
    streams.write(tmp_path / "in", 1)
    source = streams.source(spark, tmp_path / "in")
    route = palio.spark.route_stream
    with pytest.raises(palio.PalioError, match="no table was published here"):
        route(source, tmp_path / "empty", tmp_path / "out", **WIDE)
    tables = palio.spark.TableDirectory(tmp_path / "tables")
    tables.publish(palio.ForwardingTable.compile(streams.PREDICATES))
    batch = spark.read.parquet(str(tmp_path / "in"))
    with pytest.raises(palio.PalioError, match="takes a streaming DataFrame"):
        route(batch, tables, tmp_path / "out")
    with pytest.raises(palio.PalioError, match="needs a directory for its checkpoint"):
        route(source, tables, print, **WIDE)
    with pytest.raises(palio.PalioError, match="no output 'flag'"):
        route(source, tables, tmp_path / "out", output="flag", **WIDE)
    with pytest.raises(palio.PalioError, match="needs a path that is mounted"):
        route(source, tables, "s3://bucket/out", **WIDE)
    with pytest.raises(palio.PalioError, match="has a column 'batch'"):
        route(source.withColumnRenamed("number", "batch"), tables, tmp_path / "out", **WIDE)
    (tmp_path / "old" / "batch=000000").mkdir(parents=True)
    with pytest.raises(palio.PalioError, match="batches of an earlier run and no checkpoint"):
        route(source, tables, tmp_path / "old", **WIDE)
    (tmp_path / "file").touch()
    with pytest.raises(palio.PalioError, match="the output cannot be written"):
        route(source, tables, tmp_path / "file", **WIDE)
    path = tables.current()[1]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(palio.PalioError, match=path.name):
        route(source, tables, tmp_path / "out", **WIDE)
