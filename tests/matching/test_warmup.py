"""The cache of kernels: it is kept true, its absence is told, and it need not be there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from palio.matching import jit, warmup

PYTHON = f"py{sys.version_info.major}{sys.version_info.minor}"


def a_kernel() -> None:
    """Stands for one that numba compiled."""


def kept_in(folder: Path | None) -> Any:
    path = None if folder is None else str(folder)
    return SimpleNamespace(stats=SimpleNamespace(cache_path=path), py_func=a_kernel)


def test_a_kernel_is_kept_when_its_index_is_there(tmp_path: Path) -> None:
    assert not jit.is_kept(kept_in(None))
    assert not jit.is_kept(kept_in(tmp_path))
    (tmp_path / f"test_warmup.another-7.{PYTHON}.nbi").touch()
    (tmp_path / "test_warmup.a_kernel-7.py27.nbi").touch()
    assert not jit.is_kept(kept_in(tmp_path))
    (tmp_path / f"test_warmup.a_kernel-7.{PYTHON}.nbi").touch()
    assert jit.is_kept(kept_in(tmp_path))


def test_what_is_older_than_the_sources_is_removed(tmp_path: Path) -> None:
    old, new = tmp_path / "a_kernels.f-1.py311.nbi", tmp_path / "a_kernels.g-2.py311.nbi"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    jit.discard_stale(tmp_path)
    assert list(tmp_path.iterdir()) == [new]


def test_a_source_in_any_folder_makes_kernels_stale() -> None:
    sources = list(Path(jit.__file__).parent.rglob("*kernels.py"))
    assert {path.parent.name for path in sources} == {
        *("computed", "counting", "encode", "file", "pivot", "versions"),
    }
    sources += (Path(jit.__file__).parents[1] / "protocol").rglob("*kernels.py")
    assert {"wire", "mqtt"} <= {path.parent.name for path in sources}
    assert jit.newest_source() >= max(path.stat().st_mtime for path in sources)


def test_waiting_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def told(kernel: Any) -> str | None:
        monkeypatch.setattr(warmup, "forward_kernels", SimpleNamespace(forward=kernel))
        return warmup.waiting()

    assert told(kept_in(tmp_path)) == "compiling kernels, once: about half a minute"
    without = told(kept_in(None))
    assert without is not None
    assert "NUMBA_CACHE_DIR" in without
    (tmp_path / f"test_warmup.a_kernel-7.{PYTHON}.nbi").touch()
    assert told(kept_in(tmp_path)) is None


NOWHERE = """
import numba.core.caching as caching

def refuse(self):
    raise OSError(30, "Read-only file system")

caching._CacheLocator.ensure_cache_path = refuse
from palio.matching import warmup
from palio.matching.encode import text_kernels
import numpy as np
assert text_kernels.hash_bytes(np.frombuffer(b"a", np.uint8), 0, 1) == 98
print(warmup.waiting())
"""


def test_kernels_work_where_nothing_can_be_written() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOWHERE], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compiling kernels: about half a minute each time")


@pytest.mark.slow
def test_warm_says_so_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-m", "palio.cli", "warm"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        for _ in range(2)
    ]
    assert [run.stdout for run in said] == ["", ""]
    assert said[0].stderr == "palio: compiling kernels, once: about half a minute\n"
    assert said[1].stderr == ""
