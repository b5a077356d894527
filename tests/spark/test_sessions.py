"""A missing or too old Java, or PySpark, is one sentence; our sessions recover from a stall."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from palio.errors import MissingSoftware
from palio.spark.sessions import require_java


def fake_java(folder: Path, says: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return path.parent


@pytest.mark.parametrize(
    ("says", "found"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2"', 11)]
)
def test_old_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, found: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, says).parent))
    with pytest.raises(
        MissingSoftware, match=rf"Java 17 or newer, and .* is Java {found}; install"
    ):
        require_java()


def test_java_by_path_and_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingSoftware, match="none is on PATH; install Java 17"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(MissingSoftware, match="which JAVA_HOME names, does not run"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "odd", "hello").parent))
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    with pytest.raises(MissingSoftware, match="does not say its version"):
        require_java()
    new = fake_java(tmp_path / "new", 'openjdk version "25"')
    monkeypatch.setenv("JAVA_HOME", str(new.parent))
    require_java()


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_without_pyspark() -> None:
    script = """
import sys
sys.modules["pyspark"] = None
try:
    import palio.spark
except ImportError as error:
    print(type(error).__name__, error)
"""
    assert run(script).strip() == (
        "MissingSoftware palio.spark needs PySpark 4.1 or newer: pip install 'palio[spark]'"
    )


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_session(killed: Path) -> None:
    """In a process of its own. Workers run this interpreter, warm, and tasks are tried again."""
    found = json.loads((killed / "session.json").read_text())
    worker = f"{sys.executable} True"
    expected = ["local[2,4]", "3", "UTC", "180", "true", "palio.spark.daemon", worker]
    assert list(found.values()) == expected
