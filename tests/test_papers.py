"""docs/papers.md leads somewhere: its modules, tests and experiments exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from palio.lab.reproduce.catalogue import experiments

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
HEADINGS = ["section", "what it says", "module", "test", "experiment"]
PAPERS = ("2000", "2001", "2003", "2006")
MISSING = "not implemented"
NOTHING = "-"


class PaperRow(NamedTuple):
    line: int  # of the page
    paper: str
    section: str
    says: str
    module: str
    test: str
    experiment: str

    @property
    def place(self) -> str:
        return f"docs/papers.md:{self.line} ({self.paper}, {self.section})"


def _rows() -> list[PaperRow]:
    rows, paper = [], ""
    for number, line in enumerate(PAGE.read_text("utf-8").splitlines(), 1):
        if line.startswith("## "):
            paper = line[3:7]
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells != HEADINGS and set(cells) != {"---"}:
            assert len(cells) == len(HEADINGS), f"docs/papers.md:{number}: {len(cells)} cells"
            rows.append(PaperRow(number, paper, *cells))
    return rows


ROWS = _rows()
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.line}-{row.paper}")


def _quoted(cell: str) -> list[str]:
    """The names between backticks, which are all that the cell holds."""
    names = re.findall(r"`([^`]+)`", cell)
    assert re.sub(r"`[^`]+`", "", cell).strip(", ") == "", f"{cell!r} is more than a list of names"
    return names


@cache
def _functions(path: Path) -> set[str]:
    """The tests of a file: `name`, or `Class::name`."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_has_a_table(paper: str) -> None:
    assert len([row for row in ROWS if row.paper == paper]) > 5


@each_row
def test_modules_exist(row: PaperRow) -> None:
    if row.module in (MISSING, NOTHING):
        return
    modules = _quoted(row.module)
    assert modules, f"{row.place}: a module, `{MISSING}` or `{NOTHING}` is needed"
    gone = [name for name in modules if not (ROOT / name).is_file()]
    assert not gone, f"{row.place}: no such module: {', '.join(gone)}"


@each_row
def test_tests_exist(row: PaperRow) -> None:
    if row.test == NOTHING:
        assert row.module in (MISSING, NOTHING), f"{row.place}: what is implemented has a test"
        return
    for name in _quoted(row.test):
        file, _, test = name.partition("::")
        path = ROOT / file
        assert path.is_file(), f"{row.place}: no such file: {file}"
        assert test in _functions(path), f"{row.place}: {file} has no {test}"


@each_row
def test_experiments_exist(row: PaperRow) -> None:
    if row.experiment != NOTHING:
        unknown = [id for id in _quoted(row.experiment) if id not in experiments()]
        assert not unknown, f"{row.place}: no such experiment: {', '.join(unknown)}"


def test_every_experiment_on_a_paper_is_on_the_page() -> None:
    named = {id for row in ROWS if row.experiment != NOTHING for id in _quoted(row.experiment)}
    missing = [id for id in experiments() if id not in named]
    assert not missing, f"docs/papers.md names no section for {', '.join(missing)}"
