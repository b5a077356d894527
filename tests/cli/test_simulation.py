"""palio sim as a user runs it: verdicts, totals, scenarios, and sentences."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import palio
from typer.testing import CliRunner

from palio.cli import app
from palio.cli.simulation_runs import is_interrupted
from palio.sim.routers.baselines import PlainRouter

SMALL = ["sim", "--routers", "5", "--operations", "20", "--routing", "plain"]


def test_a_verdict_a_seed_and_totals() -> None:
    done = palio(*SMALL, "--seeds", "3", "--json")
    assert done.returncode == 0, done.stderr
    *rows, total = map(json.loads, done.stdout.splitlines())
    assert [(row["seed"], row["verdict"]) for row in rows] == [(0, "ok"), (1, "ok"), (2, "ok")]
    assert (total["seeds"], total["failed"]) == (3, [])
    for name in ("publications", "deliveries", "messages", "subscriptions", "frames", "bytes"):
        assert total[name] == sum(row[name] for row in rows) > 0
    text = palio(*SMALL, "--seed", "1").stdout
    assert text.startswith("seed 1: ok, ")
    assert "1 seeds, 0 failed" in text
    assert palio(*SMALL, "--seeds", "2", "--brief").stdout.startswith("2 seeds, 0 failed")


def test_covering_says_what_it_saved() -> None:
    done = palio("sim", "--routers", "8", "--operations", "60", "--seeds", "2", "--json")
    total = json.loads(done.stdout.splitlines()[-1])
    assert total["saved_by_covering"] == total["plain_subscriptions"] - total["subscriptions"] > 0
    assert "covering saved" in palio("sim", "--routers", "8", "--seeds", "2").stdout


def test_patterns_say_what_delegation_saved() -> None:
    options = ["sim", "--patterns", "--routers", "8", "--faults", "none", "--seeds", "3"]
    done = palio(*options, "--json")
    assert done.returncode == 0, done.stderr
    total = json.loads(done.stdout.splitlines()[-1])
    assert total["compounds"] >= total["compounds_due"] > 0
    saved = total["undelegated_messages"] - total["messages"]
    assert total["saved_by_delegation"] == saved > 0
    at_home = json.loads(palio(*options, "--delegation", "off", "--json").stdout.splitlines()[-1])
    assert at_home["messages"] == total["undelegated_messages"]
    assert at_home["compounds_due"] == total["compounds_due"]
    assert f"delegation saved {saved:,} of the" in palio(*options, "--brief").stdout


def test_a_failure_is_shrunk_and_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainRouter, "_due", lambda self, peer: {})  # tells nobody anything
    runner = CliRunner()
    done = runner.invoke(app, [*SMALL, "--seeds", "2"])
    assert done.exit_code == 1
    assert "2 seeds, 2 failed" in done.stdout
    assert "the whole seed replays with the same options and `--seed 0`" in done.stdout
    text = done.stdout[done.stdout.index("\nseed 0\n") : done.stdout.index("This is what is left")]
    (tmp_path / "short.txt").write_text(text)
    replayed = runner.invoke(app, ["sim", "--scenario", str(tmp_path / "short.txt")])
    assert replayed.exit_code == 1
    assert "violation at " in replayed.stdout
    rows = runner.invoke(app, [*SMALL, "--seeds", "1", "--json"]).stdout.splitlines()
    scenario = next(row["scenario"] for row in map(json.loads, rows) if "scenario" in row)
    assert scenario.strip() == text.strip()


def test_a_scenario_of_the_tests_runs() -> None:
    path = Path(__file__).parents[1] / "sim" / "routers" / "scenarios" / "crash.txt"
    done = palio("sim", "--scenario", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == path.read_text().partition("\n----\n")[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--topology", "cube"], "no topology 'cube'; there are tree, line, star, hierarchy, ring"),
        (["--faults", "fire"], "no fault 'fire'; there are crash, partition"),
        (["--routing", "magic"], "no routing 'magic'; there are covering"),
        (["--routers", "0"], "1 to 1,000 routers"),
        (["--delegation", "maybe"], "--delegation is on or off, not 'maybe'"),
        (["--patterns", "--routing", "plain"], "only routing covering knows patterns"),
        (["--scenario", "gone.txt"], "gone.txt: No such file or directory"),
    ],
)
def test_bad_options_get_a_sentence(arguments: list[str], says: str) -> None:
    done = palio("sim", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("palio: ")
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_all_processes_and_counts_what_was_simulated() -> None:
    command = [sys.executable, "-m", "palio.cli", *SMALL, "--seeds", "100000", "--processes", "2"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    rest, errors = process.communicate(timeout=60)
    assert first.startswith("seed 0: ok")
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "palio: interrupted" in errors
    assert " seeds, 0 failed" in rest


def test_an_interrupt_while_an_outcome_is_printed_counts_what_was_taken() -> None:
    taken = []

    def take(outcome: int) -> None:
        taken.append(outcome)
        if outcome == 2:
            raise KeyboardInterrupt

    assert is_interrupted(iter([1, 2, 3]), 3, take)
    assert taken == [1, 2]
    assert not is_interrupted(iter([4]), 1, take)
