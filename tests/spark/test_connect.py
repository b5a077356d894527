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
    paths = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("connect_run.py")), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,  # on a busy machine
    )
    assert done.returncode == 0, done.stderr[-4000:]
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
