"""Clients in other languages, fetched from their package indexes into build/clients, and kept there.

A test that needs one is skipped, with the reason, where a runtime is missing or the package is not to be had.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "build" / "clients"
FETCH_S_MAX = 240


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def npm_package(name: str) -> Path:
    """The folder node_modules that has a package, such as `mqtt@5`."""
    folder = FOLDER / name.replace("/", "-")
    modules = folder / "node_modules"
    if not (modules / name.partition("@")[0]).exists():
        folder.mkdir(parents=True, exist_ok=True)
        quiet = ("--no-audit", "--no-fund", "--silent")
        _fetch(name, folder, program("npm"), "install", *quiet, "--prefix", str(folder), name)
    return modules


def maven_jar(group: str, artifact: str, version: str) -> Path:
    jar = FOLDER / f"{artifact}-{version}.jar"
    if not jar.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        _fetch(
            artifact, FOLDER, program("mvn"), "-B", "-q", "dependency:copy",
            f"-Dartifact={group}:{artifact}:{version}", f"-DoutputDirectory={FOLDER}",
        )  # fmt: skip
    return jar


def go_program(folder: Path) -> Path:
    """The program in a folder, which has its modules in go.mod."""
    made = folder / "program"
    _fetch("the modules of Go", folder, program("go"), "build", "-mod=mod", "-o", str(made), ".")
    return made


def _fetch(what: str, folder: Path, *command: str) -> None:
    try:
        said = subprocess.run(
            command, cwd=folder, timeout=FETCH_S_MAX, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} did not come within {FETCH_S_MAX} s")
    if said.returncode != 0:
        pytest.skip(f"{what} is not to be had: {said.stdout[-300:]}")
