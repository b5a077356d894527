"""The benchmark of forwarding: its JSON fields are a public contract; its times are no promise."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from palio.cli import app
from palio.errors import InvalidValue
from palio.lab.bench import forward

CONTRACT = (
    "engine filters constraints interfaces messages us_per_message matches_per_message build_s "
    "table_bytes"
).split()


def test_the_command_prints_the_fields_of_the_contract() -> None:
    command = "bench forward --filters 500 --messages 20 --repeats 1 --json".split()
    run = CliRunner().invoke(app, [*command, "--engine", "pivot", "--engine", "counting"])
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert [row["engine"] for row in rows] == ["pivot", "counting"]
    for row in rows:
        assert row.keys() >= set(CONTRACT)
        assert (row["filters"], row["interfaces"], row["messages"]) == (500, 500, 20)
    assert rows[0]["rows_us"] > 0 < rows[0]["single_us"]
    assert rows[1]["rows_us"] is rows[1]["single_us"] is None


def test_all_engines_find_the_same_matches() -> None:
    names = list(forward.ENGINES)
    results = list(forward.run("sigcomm03", 300, 7, names, messages=20, repeats=1))
    assert [r.engine for r in results] == names
    assert len({r.matches_per_message for r in results}) == 1
    assert results[0].matches_per_message > 0


def test_options_of_the_workload() -> None:
    command = "bench forward --filters 400 --interfaces 20 --messages 20 --repeats 1 --json".split()
    run = CliRunner().invoke(app, [*command, "--uneven", "--strict", "--large-dictionary"])
    (row,) = [json.loads(line) for line in run.stdout.splitlines()]
    assert row["interfaces"] == 20
    assert row["filters"] != 400
    assert row["constraints"] > 6 * row["filters"]  # 5 of a filter, and the types of half of them


def test_a_run_that_makes_no_sense() -> None:
    with pytest.raises(InvalidValue, match="no workload 'x'; there are sigcomm03"):
        list(forward.run("x", 10, "all", ["pivot"]))
    with pytest.raises(InvalidValue, match="no engine 'fast'; there are pivot"):
        list(forward.run("sigcomm03", 10, "all", ["fast"]))
