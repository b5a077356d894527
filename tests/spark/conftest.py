"""Messages, predicates on them, and what Spark SQL selects: made once, since the oracle is slow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.spark import encodings, streams

import palio
import palio.spark

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def case() -> encodings.Case:
    return encodings.draw(2003)


@pytest.fixture(scope="session")
def folder(case: encodings.Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("messages")
    for i in range(2):
        half = case.messages.slice(i * encodings.ROWS // 2, encodings.ROWS // 2)
        pq.write_table(half, folder / f"{i}.parquet")
    return folder


@pytest.fixture(scope="session")
def frame(spark: Any, folder: Path) -> Any:
    return encodings.with_variant(spark.read.parquet(str(folder)))


@pytest.fixture(scope="session")
def expected(frame: Any, case: encodings.Case) -> list[list[str]]:
    """What WHERE selects by the predicates over every column."""
    return _selected(frame, case.predicates)


@pytest.fixture(scope="session")
def expected_by_encoding(
    frame: Any, case: encodings.Case, expected: list[list[str]]
) -> dict[str, list[list[str]]]:
    strings = _selected(frame, case.strings)
    return {name: strings if name == "map" else expected for name in encodings.ENCODINGS}


def _selected(frame: Any, predicates: dict[str, str]) -> list[list[str]]:
    found = encodings.selected(frame, predicates)
    assert len(found) == encodings.ROWS
    assert 0.05 < sum(map(len, found)) / (encodings.ROWS * len(predicates)) < 0.6
    return found


@pytest.fixture(scope="session")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a process of its own, killed while it routed a stream: see streams.py."""
    folder = tmp_path_factory.mktemp("killed")
    streams.write(folder / "in", streams.KILLED_FILES)
    tables = palio.spark.TableDirectory(folder / "tables")
    tables.publish(palio.ForwardingTable.compile(streams.PREDICATES))
    process = subprocess.Popen(
        [sys.executable, str(Path(streams.__file__)), str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 180
        while len(list((folder / "out").glob("batch=*"))) < 2:
            assert process.poll() is None, "it ended by itself"
            assert time.monotonic() < until, "it takes too long"
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # Java too: nothing gets to tidy up
        process.wait()
    return folder
