"""The rules of the house that a machine can check. Ruff, mypy and import-linter check the rest."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src" / "palio").rglob("*.py"))

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 80
LAZY = ("numba", "pyspark", "pandas", "sqlglot", "pyarrow", "asyncio", "uvloop")
VAGUE_NAMES = {"utils", "misc", "helpers", "common"}
REGISTRY = re.compile(
    r"https?://|^\s*(-i|-f|--(extra-)?index-url|--find-links|--trusted-host)\b"
    r"|pypi\.org|pythonhosted\.org",
    re.MULTILINE,
)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_source = pytest.mark.parametrize("path", SOURCES, ids=relative)


def test_import_palio_is_light() -> None:
    script = f"import palio, json, sys; print(json.dumps([m for m in {LAZY} if m in sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [], "`import palio` loads these; import them where needed"


@each_source
def test_file_is_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= FILE_LINES_MAX


@each_source
def test_functions_are_short(path: Path) -> None:
    lengths = {f"{name} (line {line})": length for name, line, length in functions(path)}
    long = {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX}
    assert long == {}


def functions(path: Path) -> Iterator[tuple[str, int, int]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


@each_source
def test_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), "begin with a docstring"


@each_source
def test_module_has_a_name_that_says_something(path: Path) -> None:
    parts = (part.strip("_") for part in path.relative_to(ROOT).with_suffix("").parts)
    assert VAGUE_NAMES.isdisjoint(parts)


def test_requirements_name_no_registry() -> None:
    text = (ROOT / "requirements.txt").read_text("utf-8")
    assert [match.group() for match in REGISTRY.finditer(text)] == []


def test_every_requirement_is_pinned_with_a_hash() -> None:
    text = (ROOT / "requirements.txt").read_text("utf-8").replace("\\\n", " ")
    requirements = [
        line for line in text.splitlines() if line and not line.lstrip().startswith("#")
    ]
    assert requirements
    assert [r for r in requirements if "==" not in r or "--hash=sha256:" not in r] == []


def test_ci_checks_and_tests() -> None:
    path = ROOT / ".ci" / "run"
    assert os.access(path, os.X_OK)
    lines = path.read_text("utf-8").splitlines()
    assert "set -euo pipefail" in lines
    assert lines.index("make check") < lines.index("make test")
