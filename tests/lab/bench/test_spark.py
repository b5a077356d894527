"""The benchmark of Spark runs, small; it checks its own answers against the oracle."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from palio.errors import MissingSoftware


@pytest.mark.slow
def test_the_command_prints_every_case() -> None:
    """In a process of its own: it stops its session."""
    sessions = pytest.importorskip("palio.spark.sessions")
    try:
        sessions.require_java()
    except MissingSoftware as error:
        pytest.skip(str(error))
    sizes = ["--rows", "300", "--filters", "200", "--repeats", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "palio.cli", "bench", "spark", *sizes, "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["case"] for row in rows] == [
        *(
            "wide",
            "wide-fields",
            "json",
            "json-sparse",
            "map",
            "map",
            "json-join",
            "json-join",
            "shared",
        )
    ]
    for row in rows[:-1]:
        assert row["ratio"] == pytest.approx(row["rows_per_s"] / row["against_rows_per_s"])
    shared = rows[-1]
    assert shared["workers"] == 2
    assert shared["pss_bytes"] < 0.6 * shared["rss_bytes"]
