"""The framework of experiments: points, seeds, storing, and every experiment in this process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.errors import InvalidFile, InvalidValue
from palio.lab import manifest, timing
from palio.lab.experiments import (
    Point,
    all_points,
    experiment,
    experiments,
    path_of,
    seed_of,
    sizes,
    stored,
    work,
)

POINT = Point("2006-fig6", (("names", 500), ("zipf", True), ("predicates", 30)), 2)


@given(st.integers(1, 10**4), st.integers(1, 10**6), st.sampled_from([1.7, 4.0, 10.0, 200.0]))
def test_sizes_ascend_from_first_to_last(first: int, more: int, factor: float) -> None:
    found = sizes(first, first + more, factor)
    assert found[-1] == first + more
    assert found == sorted(found)
    assert len(found) == 1 or found[0] == first
    for before, after in pairwise(found):
        assert after / before <= factor**1.5 * 1.5


@pytest.mark.parametrize("id", list(experiments()))
def test_points_grow_with_the_scale_and_have_names_of_their_own(id: str) -> None:
    few, many = all_points(id, 0.02), all_points(id, 1)
    assert 0 < len(few) <= len(many)
    for points in (few, many):
        assert len({path_of("x", point) for point in points}) == len(points)
        assert all(len(path_of("x", point).name) < 200 for point in points)


def test_an_unknown_experiment_or_scale_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no experiment 'fig6'; there are 2001-fig9"):
        experiment("fig6")
    with pytest.raises(InvalidValue, match="a scale is above 0"):
        all_points("2006-fig6", 0)


def test_seeds_differ_by_values_unless_points_are_paired() -> None:
    free, paired = all_points("2006-fig6", 0.02), all_points("traffic", 0.1)
    assert len({seed_of(p, 1) for p in free}) == len(free)
    assert len({seed_of(p, 1) for p in paired}) == len({p.repetition for p in paired}) > 1
    assert seed_of(POINT, 1) != seed_of(POINT, 2)


def test_work_stores_the_rows_with_values_and_seed(tmp_path: Path) -> None:
    assert work(tmp_path, POINT, 1) == 1
    (row,) = stored(tmp_path, "2006-fig6", [POINT])
    assert {"names": 500, "zipf": True, "predicates": 30, "repetition": 2}.items() <= row.items()
    assert row["seed"] == seed_of(POINT, 1)
    again = experiment("2006-fig6").run(dict(POINT.values), row["seed"])
    assert [{key: row[key] for key in again[0]}] == again
    assert [path.name for path in (tmp_path / "2006-fig6").iterdir()] == [f"{POINT.name}.parquet"]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    work(tmp_path, POINT, 1)
    path_of(tmp_path, POINT).write_bytes(b"PAR1 and no more")
    with pytest.raises(InvalidFile, match=r"#2\.parquet is not the Parquet file .* delete it"):
        stored(tmp_path, "2006-fig6", [POINT])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 2}, "results of seed 2, and this run has seed 1"),
        ({"scale": 0.5}, "results of scale 0.5"),
        ({"version": "0.0.9"}, "results of version 0.0.9"),
    ],
)
def test_results_of_another_run_do_not_mix(
    tmp_path: Path, change: Mapping[str, Any], words: str
) -> None:
    values: dict[str, Any] = {"seed": 1, "scale": 0.1} | dict(change)
    manifest.write(tmp_path, manifest.Manifest(**values))
    with pytest.raises(InvalidValue, match=words):
        manifest.opened(tmp_path, seed=1, scale=0.1)


def test_a_manifest_reads_back_and_foreign_directories_are_refused(tmp_path: Path) -> None:
    made = manifest.opened(tmp_path / "new", seed=3, scale=0.1)
    longer = made.with_run("local[2]", ["traffic"], 6, 1, 2.5)
    manifest.write(tmp_path / "new", longer)
    assert manifest.read(tmp_path / "new") == longer
    assert longer.runs[0]["seconds"] == 2.5
    with pytest.raises(InvalidValue, match="is not empty and has no manifest"):
        manifest.opened(tmp_path, seed=1, scale=0.1)
    with pytest.raises(InvalidFile, match="is no directory of results"):
        manifest.read(tmp_path)
    (tmp_path / "new" / manifest.NAME).write_text("{")
    with pytest.raises(InvalidFile, match="is damaged"):
        manifest.read(tmp_path / "new")


# ---- experiments against something simpler


@pytest.mark.parametrize("draw", ["uniform", "zipf", "zipf, repeating"])
def test_unions_are_those_of_sets(draw: str) -> None:
    """The same stream of numbers through Python's sets."""
    module: Any = experiment("2006-fig5")
    universe, one_in, seed = 1_000, 100, 7
    rows = module.run({"universe": universe, "one_in": one_in, "draw": draw}, seed)
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, universe + 1)
    cumulative = np.cumsum(weights) / weights.sum()
    union: set[int] = set()
    alphas = {}
    for count in range(1, 501):
        if draw == "uniform":
            chosen = set(rng.choice(universe, 10, replace=False, shuffle=False).tolist())
        else:
            chosen = set()
            while len(chosen) < 10:
                batch = 10 if draw != "zipf" else 20
                for number in np.searchsorted(cumulative, rng.random(batch), side="right"):
                    if len(chosen) < 10:
                        chosen.add(int(number))
                if draw != "zipf":
                    break
        union |= chosen
        alphas[count] = len(union) / (10 * count)
    assert {row["predicates"]: row["alpha"] for row in rows}.items() <= alphas.items()


def test_traffic_is_what_the_tree_says() -> None:
    """Without covering a subscription crosses every link once, unless the same is there already."""
    module: Any = experiment("traffic")
    rows = {
        routing: module.run({"subscriptions": 120, "routing": routing}, 5)[0]
        for routing in ("covering", "plain", "flooding")
    }
    links = module.ROUTERS - 1
    assert 0.9 * 120 * links < rows["plain"]["subscriptions_forwarded"] <= 120 * links
    assert rows["covering"]["subscriptions_forwarded"] < rows["plain"]["subscriptions_forwarded"]
    assert rows["flooding"]["subscriptions_forwarded"] == 0
    assert rows["flooding"]["message_hops"] == module.MESSAGES * links
    assert len({row["deliveries"] for row in rows.values()}) == 1
    assert rows["covering"]["message_hops"] == rows["plain"]["message_hops"]
    assert 0 <= rows["plain"]["at_the_edge"] <= rows["covering"]["at_the_edge"] < 1


def test_on_a_tree_sources_are_told_apart_by_the_link_they_come_by() -> None:
    """2006, 3.2: the domain of F_u is N(u); here u itself counts as well. On a ring it is not so."""
    module: Any = experiment("ips-classes")
    (row,) = module.run({"nodes": 40, "family": "tree"}, 3)
    assert row["mean"] == pytest.approx(2 * row["links"] / row["n"] + 1)
    (ring,) = module.run({"nodes": 40, "family": "ring"}, 3)
    assert ring["mean"] > 10


def test_memory_is_that_of_the_schemes_and_grows_with_what_is_varied() -> None:
    module: Any = experiment("schemes-memory")
    base = {"vary": "senders", "family": "internet", **module.BASE}
    rows = {row["scheme"]: row for row in module.run(base, 3)}
    few = {row["scheme"]: row for row in module.run(base | {"senders": 0.1}, 3)}
    assert rows.keys() == {"PSF", "iPS", "PIF", "DRP"}
    assert rows["iPS"]["bits"] < rows["PSF"]["bits"] <= rows["PSF"]["formula_bits"]
    assert rows["iPS"]["formula_bits"] is None
    for name, row in few.items():
        assert row["bits"] < rows[name]["bits"]


@pytest.mark.parametrize("family", ["tree", "internet", "grid"])
def test_pif_costs_packets_and_no_time(family: str) -> None:
    """2006, 3.3: PIF's tree contains PSF's; on a tree they are the same."""
    module: Any = experiment("pif-stretch")
    (row,) = module.run({"nodes": 25, "family": family}, 3)
    assert row["stretch_max"] == 1.0
    assert (row["extra"] == 0) == (family == "tree")
    assert row["pif_packets"] >= row["psf_packets"] > 0


def test_the_shortest_turn_counts() -> None:
    """A call that is disturbed now and then is as fast as when it is not."""
    waits = iter([0.0, 0.0] + [0.02, 0.001] * 50)
    seconds = timing.shortest({"a": lambda: time.sleep(next(waits))}, turns=6, turn_s=0)
    assert 0.001 <= seconds["a"] < 0.02
