"""The benchmark of Spark runs, small; it checks its own answers against the oracle."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from palio.errors import MissingSoftware
from palio.lab.shared_memory import mapped


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


def test_mappings_of_a_file_are_added_up() -> None:
    smaps = (
        "7f00-7f10 r--s 0 00:01 7 /t/a.palio\nRss: 8 kB\nPss: 4 kB\nPrivate_Dirty: 0 kB\n"
        "7f10-7f20 rw-p 0 00:00 0\nRss: 64 kB\nPss: 64 kB\nPrivate_Dirty: 64 kB\n"
        "7f20-7f30 r--s 0 00:01 7 /t/a.palio\nRss: 4 kB\nPss: 1 kB\nPrivate_Dirty: 1 kB\n"
    )
    assert mapped("/t/a.palio", smaps) == {"Rss": 12, "Pss": 5, "Private_Dirty": 1}
