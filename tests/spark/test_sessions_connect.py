"""The same on Spark Connect, where there is no SparkContext: see connect_run.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.spark import encodings
from tests.spark_network.brokers import brokers

from palio.net import blocking

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.cluster, pytest.mark.spark]  # a server and a minute: `make cluster`


def test_everything_on_connect(
    folder: Path,
    case: encodings.Case,
    expected: list[list[str]],
    expected_by_encoding: dict[str, list[list[str]]],
    tmp_path: Path,
) -> None:
    (tmp_path / "messages").symlink_to(folder)
    (tmp_path / "predicates.json").write_text(json.dumps(case.texts))
    run("connect_run.py", tmp_path)
    found = json.loads((tmp_path / "answers.json").read_text())
    assert "connect" in found["session"]
    assert found["interfaces"] == list(case.predicates)
    assert found["tasks"]
    assert all(0 <= done <= known for done, known in found["tasks"])
    batch, stream = (
        encodings.answers(pq.read_table(tmp_path / name, partitioning=None))
        for name in ("batch.parquet", "stream")
    )
    for encoding in encodings.ENCODINGS:
        assert batch[encoding] == expected_by_encoding[encoding], encoding
        assert stream[encoding] == expected_by_encoding[encoding], encoding
    few = expected[: encodings.FEW]
    assert found["shipped"] == found["sql"] == found["routed"] == found["partitioned"] == few
    assert found["progress"] == [[1, sum(map(len, few))]]
    wanted = [[number, name] for number, names in enumerate(few) for name in names]
    assert found["pairs"] == sorted(wanted)


def test_the_network_on_connect(tmp_path: Path) -> None:
    """A stream from one broker to another, and a replay of what it published."""
    pytest.importorskip("pyspark.sql.streaming.datasource")
    with (
        brokers(tmp_path, "milan", "rome") as (milan, rome),
        blocking.connect(milan) as here,
        blocking.connect(rome) as there,
    ):
        here.subscribe("x >= 0", durable="spark job").close()
        copies = there.subscribe("copy >= 0", durable="copies", credit=10_000)
        there.publish_many(({"x": x}, b"%d" % x) for x in range(400))
        run("connect_network_run.py", milan, rome, tmp_path)
        notes = [copies.next(timeout=20) for _ in range(400)]
    assert sorted(note.attributes["copy"] for note in notes) == list(range(400))  # type: ignore[type-var]
    assert all(note.body == b"%d" % note.attributes["copy"] for note in notes)
    found = json.loads((tmp_path / "copies.json").read_text())
    assert "connect" in found["session"]
    assert found["copies"] == list(range(300))


def run(script: str, *arguments: object) -> None:
    """A script beside this one; one process cannot mix Connect with the classic sessions."""
    paths = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,  # on a busy machine
    )
    assert done.returncode == 0, done.stderr[-4000:]
