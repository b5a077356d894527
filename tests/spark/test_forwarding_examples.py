"""The examples for Spark give what they say; Kafka's runs where a broker and the jar can be had."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import palio

ROOT = Path(__file__).parents[2]
SERVERS = os.environ.get("PALIO_KAFKA", "localhost:9092")

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_batch(spark: Any) -> None:
    found = {row["id"]: row["interfaces"] for row in example("spark_batch").routed(spark).collect()}
    assert found == {1: ["ann", "bob"], 2: ["cy"], 3: [], 4: ["bob", "audit"], 5: ["bob"]}


def test_records_of_kafka(spark: Any) -> None:
    """What the stream does with records, on a DataFrame of the connector's schema."""
    kafka = example("kafka_stream")
    table = palio.ForwardingTable.compile(kafka.SUBSCRIPTIONS)
    values = ['{"dest": "MXP", "price": 450, "airline": "UA"}', '{"price": 500}', "no JSON", None]
    records = spark.createDataFrame(
        [(bytes([i]), v and v.encode()) for i, v in enumerate(values)], "key binary, value binary"
    )
    found = [tuple(row) for row in kafka.routed(records, table, "to-").collect()]
    keys = [(bytes(key), value, topic) for key, value, topic in found]
    assert sorted(keys) == [
        (b"\0", values[0], "to-ann"),
        (b"\0", values[0], "to-bob"),
        (b"\1", values[1], "to-desk"),
    ]


def test_kafka(tmp_path: Path) -> None:
    """From topic to topics through a real broker, written and read back by the connector."""
    host, _, port = SERVERS.partition(":")
    try:
        socket.create_connection((host, int(port)), 2).close()
    except OSError as error:
        pytest.skip(f"no Kafka broker at {SERVERS} ({error}); PALIO_KAFKA names another")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("kafka_run.py")), SERVERS, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if "unresolved dependency" in done.stderr + done.stdout:
        pytest.skip("Spark's connector for Kafka cannot be fetched from Maven here")
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / "found.txt").read_text().split() == ["a-ann", "a-bob", "b-desk"]
