"""The benchmark of posets runs and tells the truth about the poset; its times are no promise."""

from __future__ import annotations

import json

import pytest
from tests.routing.naive_poset import NaivePoset, remembered
from typer.testing import CliRunner

import palio
from palio.cli import app
from palio.errors import InvalidValue
from palio.lab.bench import poset as bench_poset
from palio.lab.data.workloads import disjunction_2006
from palio.routing.poset import SUBSCRIPTIONS, Poset


def test_figures_of_a_small_run() -> None:
    said: list[str] = []
    results = list(
        bench_poset.run(
            1_200, names=300, zipf=False, progress=lambda text, _share: said.append(text)
        )
    )
    assert [r.filters for r in results] == [1_000, 1_200]
    assert all(r.insert_us > 0 and r.remove_us > 0 for r in results)
    assert results[0].total_cpu_s < results[1].total_cpu_s
    assert said[0] == "drawing 1,200 filters"


def test_the_poset_is_the_naive_one() -> None:
    (result,) = bench_poset.run(150, names=10)
    naive = NaivePoset(remembered())
    for item in disjunction_2006(150, names=10).filters:
        naive.insert(item)
    assert result.items == len(naive)
    assert result.roots == len(naive.roots())
    assert result.edges == sum(len(naive.successors(item)) for item in naive)


def test_depth_is_that_of_the_longest_chain() -> None:
    poset = Poset(SUBSCRIPTIONS)
    assert bench_poset.depth(poset) == 0
    for text in ("x < 9", "y = 1", "x < 3", "x < 3 AND y = 1", "x < 2 AND y = 1"):
        poset.insert(palio.parse(text).filters[0])
    assert bench_poset.depth(poset) == 4


def test_the_command_prints_an_object_a_line() -> None:
    run = CliRunner().invoke(app, ["bench", "poset", "--filters", "1100", "--uniform", "--json"])
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert [(row["filters"], row["distribution"]) for row in rows] == [
        (1_000, "uniform"),
        (1_100, "uniform"),
    ]


def test_a_run_that_makes_no_sense() -> None:
    with pytest.raises(InvalidValue, match="at least 10 filters"):
        list(bench_poset.run(3))
