"""Many processes that start at once with an empty kernel cache all get right answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import palio
table = palio.ForwardingTable.compile({"ann": "x < 5 AND s LIKE 'a%'", "bob": "x = 3"})
assert table.forward({"x": 3, "s": "abc"}) == ["ann", "bob"]
assert table.forward({"x": 4, "s": "b"}) == []
"""


@pytest.mark.slow
def test_eight_processes_from_a_cold_cache(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CODE], env=environment, stderr=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    for process in started:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    again = subprocess.run([sys.executable, "-c", CODE], env=environment, check=False, timeout=60)
    assert again.returncode == 0
