"""format("palio") in a session of Spark: streams, batches and replays, and a job that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")

import palio.spark_network
from palio.net import blocking
from palio.spark.failures import sentence
from tests.spark_network import network_job
from tests.spark_network.brokers import brokers

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
ROOT = Path(__file__).parents[2]
NOW: dict[str, Any] = {"availableNow": True}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with brokers(tmp_path_factory.mktemp("broker"), "milan") as (url,):
        yield url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[blocking.Client]:
    with blocking.connect(url) as client:
        yield client


def reading(spark: Any, url: str, predicate: str, **options: str) -> Any:
    stream = spark.readStream.format("palio").option("url", url).option("predicate", predicate)
    return stream.options(**options)


def gathered(frame: Any, folder: Path) -> list[dict[str, Any]]:
    """The rows of a stream that ends with what is there."""
    rows: list[dict[str, Any]] = []

    def gather(batch: Any, _number: int) -> None:
        rows.extend(row.asDict() for row in batch.collect())

    query = frame.writeStream.foreachBatch(gather).trigger(**NOW)
    query.option("checkpointLocation", str(folder)).start().awaitTermination(120)
    return rows


@pytest.mark.slow
def test_a_stream_reads_what_is_published(
    spark: Any, url: str, client: blocking.Client, tmp_path: Path
) -> None:
    typed = reading(spark, url, "dest = 'MXP'", durable="typed")
    typed = typed.schema("price INT, dest STRING, _publisher STRING, body BINARY").load()
    plain = reading(spark, url, "dest = 'MXP'", durable="plain").load()
    for name in ("typed", "plain"):
        client.subscribe("dest = 'MXP'", durable=name).close()
    now = datetime.now(UTC)
    client.publish({"dest": "MXP", "price": 450}, b"a")
    client.publish({"dest": "JFK", "price": 450})
    client.publish({"dest": "MXP", "price": "much"}, b"b")
    publisher = f"{client.identity}/{client.name}"
    assert gathered(typed, tmp_path / "typed") == [
        {"price": 450, "dest": "MXP", "_publisher": publisher, "body": b"a"},
        {"price": None, "dest": "MXP", "_publisher": publisher, "body": b"b"},
    ]
    rows = gathered(plain, tmp_path / "plain")
    assert [json.loads(row["message"])["price"] for row in rows] == [450, "much"]
    assert all(abs((r["time"].replace(tzinfo=UTC) - now).total_seconds()) < 600 for r in rows)
    assert gathered(plain, tmp_path / "plain") == []  # it goes on from its checkpoint


def test_a_batch_is_written(spark: Any, url: str, client: blocking.Client) -> None:
    with client.subscribe("batch >= 0", durable="of a batch", timeout=2) as subscription:
        frame = spark.range(0, 300, 1, 2).withColumnRenamed("id", "batch")
        frame.write.format("palio").option("url", url).mode("append").save()
        found = Counter(note.attributes["batch"] for note in subscription)
    assert found == Counter(range(300))


@pytest.mark.slow
def test_a_log_is_replayed(spark: Any, url: str, client: blocking.Client) -> None:
    client.publish_many({"at": x, "side": "ask" if x % 2 else "bid"} for x in range(500))
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    palio.spark_network.register(session)
    for one in (spark, session):  # found by itself; and with filters that are pushed down
        log = one.read.format("palio").option("url", url).option("quiet", "1")
        frame = log.schema("at BIGINT, side STRING").option("predicate", "at IS NOT NULL").load()
        chosen = frame.where("at >= 100 AND at < 200 AND side LIKE 'a%' AND at % 3 = 0")
        assert sorted(row.at for row in chosen.collect()) == list(range(105, 200, 6))


def test_sentences(spark: Any, url: str, tmp_path: Path) -> None:
    def said(act: Any) -> str:
        with pytest.raises(Exception) as caught:
            act()
        return sentence(caught.value)

    read = spark.read.format("palio")
    assert "needs the broker" in said(lambda: read.load().count())
    nobody = reading(spark, "palio://127.0.0.1:9", "TRUE", durable="x", timeout="0.1").load()
    assert "no broker at palio://127.0.0.1:9" in said(lambda: gathered(nobody, tmp_path / "b"))
    frame = spark.range(1).write.format("palio").option("url", url)
    assert "cannot be taken back" in said(lambda: frame.mode("overwrite").save())


def run_until(source: str, sink: str, folder: Path, kept: Any, least: int) -> None:
    """The job in a process of its own, killed when so many messages have come out of it."""
    process = subprocess.Popen(
        [sys.executable, str(Path(network_job.__file__)), source, sink, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 180
        while len(kept()) < least:
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < until, "it takes too long"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # Java too: nothing gets to tidy up
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 4], ids=["short", "long"])
def test_a_job_between_two_brokers_is_killed(spark: Any, kills: int, tmp_path: Path) -> None:
    """Nothing is lost or doubled (issue 7, point 6)."""
    messages = 400 * kills
    with (
        brokers(tmp_path, "milan", "rome") as (milan, rome),
        blocking.connect(milan) as here,
        blocking.connect(rome) as there,
    ):
        copies = here.subscribe("copy >= 0", durable="copies", credit=100_000)
        here.subscribe("x >= 0", durable="spark job").close()
        there.publish_many(({"x": x}, b"%d" % x) for x in range(messages))
        kept: list[tuple[Any, bytes]] = []

        def taken(wait: float = 0.0) -> list[tuple[Any, bytes]]:
            try:
                while True:
                    note = copies.next(timeout=wait)
                    kept.append((note.attributes["copy"], note.body))
                    note.ack()
            except TimeoutError:
                return kept

        for kill in range(kills):
            run_until(milan, rome, tmp_path, taken, kill * 400 + 100)
            assert len(kept) < messages, "it was done before it was killed"
        query = network_job.start(spark, milan, rome, tmp_path, **NOW)
        query.awaitTermination(180)
        assert query.exception() is None
        assert Counter(taken(3.0)) == Counter((x, b"%d" % x) for x in range(messages))
