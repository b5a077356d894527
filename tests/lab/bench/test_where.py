"""The benchmark of rules with expressions: its JSON fields are a public contract; its times are no promise."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from rich.console import Console
from typer.testing import CliRunner

from palio.cli import app
from palio.errors import InvalidValue, PalioError
from palio.lab.bench import where
from palio.matching.table import ForwardingTable

SIZES = "--rules 300 --rows 50 --repeats 1".split()


def test_the_command_prints_one_object() -> None:
    run = CliRunner().invoke(app, ["bench", "where", *SIZES, "--loop-rules", "0", "--json"])
    assert run.exit_code == 0, run.output
    (row,) = [json.loads(line) for line in run.stdout.splitlines()]
    assert row.keys() == {field.name for field in fields(where.WhereResult)}
    assert (row["rules"], row["rows"], row["checked"]) == (300, 50, 300 * 50)
    assert row["ratio"] == pytest.approx(row["us_per_message"] / row["plain_us_per_message"])
    assert row["residuals"] > 0 < row["shared"]
    assert row["loop_us_per_message"] is row["times_loop"] is None
    assert row["verdict"].endswith("no loop was timed")


@pytest.mark.parametrize(
    ("ratio", "times_loop", "expected"),
    [
        (2.0, 200.0, "goals met"),
        (2.01, 199.0, "missed: 2.01 times the plain rules and 199 times the loop"),
        (1.0, 20.0, "missed: 20 times the loop"),
        (1.0, None, "goals met; no loop was timed"),
    ],
)
def test_the_verdict(ratio: float, times_loop: float | None, expected: str) -> None:
    assert where.verdict(ratio, times_loop) == expected


def test_the_table_shows_it() -> None:
    console = Console(record=True, width=200)
    where.show(console, list(where.run(100, 20, loop_rules=0, repeats=1)))
    assert "no loop was timed" in console.export_text()


def test_other_answers_than_the_naive_engine_gives_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(where.where_rules, "draw", _unlike)
    with pytest.raises(PalioError, match="other answers than those of the naive engine"):
        list(where.run(100, 20, loop_rules=0, repeats=1))


def _unlike(*_arguments: object) -> where.where_rules.WhereRules:
    """Rules of which the naive engine is given others."""

    class Unlike(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            return "FALSE"

    rules = Unlike({"a": "distance > 0"})
    assert isinstance(ForwardingTable.compile(rules), ForwardingTable)
    return where.where_rules.WhereRules(rules, {"a": "distance > 0"})


@pytest.mark.parametrize("sizes", [(0, 10, 1), (10, 0, 1), (10, 10, 0)])
def test_a_run_that_makes_no_sense(sizes: tuple[int, int, int]) -> None:
    rules, rows, repeats = sizes
    with pytest.raises(InvalidValue, match="at least a rule, a row and a repeat"):
        list(where.run(rules, rows, repeats=repeats))
