"""palio sim-brokers as a user runs it: verdicts, totals, traces, and how to see a failure again."""

from __future__ import annotations

import json

import pytest
from tests.cli.commands import palio
from typer.testing import CliRunner

from palio.cli import app
from palio.protocol.durability.deposit import Deposit

SMALL = ["sim-brokers", "--brokers", "3", "--operations", "20"]


def test_a_verdict_a_seed_and_totals() -> None:
    done = palio(*SMALL, "--seeds", "2", "--json")
    assert done.returncode == 0, done.stderr
    *rows, total = map(json.loads, done.stdout.splitlines())
    assert [(row["seed"], row["verdict"]) for row in rows] == [(0, "ok"), (1, "ok")]
    assert (total["seeds"], total["failed"]) == (2, [])
    for name in ("publications", "deliveries", "due", "pieces", "bytes"):
        assert total[name] == sum(row[name] for row in rows) > 0


def test_a_seed_is_told_whole() -> None:
    done = CliRunner().invoke(app, [*SMALL, "--seed", "1"])
    assert done.exit_code == 0
    *lines, verdict = done.stdout.splitlines()
    assert verdict.startswith("seed 1: ok, ")
    assert any(" publish {" in line for line in lines)


def test_a_failure_says_how_to_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(self: Deposit, *_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(Deposit, "publish", raises)
    done = CliRunner().invoke(app, [*SMALL, "--seeds", "1", "--faults", "crash", "--brief"])
    assert done.exit_code == 1
    assert "seed 0: broken" in done.stdout
    assert "1 seeds, 1 failed" in done.stdout
    command = done.stderr.split("`")[1]
    assert "--faults crash --seed 0" in command
    again = CliRunner().invoke(app, command.split()[1:])
    assert again.exit_code == 1
    assert "KeyError: 'a bug'" in again.stdout.splitlines()[-1]


def test_wrong_options_get_a_sentence() -> None:
    done = palio(*SMALL, "--faults", "fire")
    assert done.returncode == 2
    assert "there is no fault 'fire'" in done.stderr
