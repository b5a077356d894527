"""Experiments against something simpler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from palio.lab.reproduce.catalogue import experiment
from palio.lab.reproduce.drawing import png


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


def test_both_reductions_are_drawn() -> None:
    """2006, 4.2: the paper's rules, and ours, which knows more."""
    module: Any = experiment("2006-fig7")
    (row,) = module.run({"names": 50, "zipf": False, "predicates": 300}, 5)
    assert row["palio_constraints"] < row["reduced_constraints"] < row["constraints"]
    assert row["palio_alpha"] < row["alpha"] == row["reduced_constraints"] / row["constraints"]
    rows = [{**row, "names": names, "predicates": 300} for names in (50, 500)]
    assert png(module.plot, rows).startswith(b"\x89PNG")


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


def test_indexes_of_strings_find_the_same_and_steps_tell_them_apart() -> None:
    """2003, 4.2: comparing grows with the constraints; searching a tree or hashing pieces hardly does."""
    module: Any = experiment("2003-strings")
    few, many = (
        {row["index"]: row for row in module.run({"constraints": n, "orders": orders}, 3)}
        for n, orders in ((200, False), (2_000, False))
    )
    assert list(many) == list(module.INDEXES)
    for rows in (few, many):
        assert len({row["found_per_lookup"] for row in rows.values()}) == 1
        assert all(row["lookups_per_s"] > 0 and row["build_s"] > 0 for row in rows.values())
        assert rows["pool"]["ratio"] == 1.0
    steps = {name: row["steps_per_lookup"] for name, row in many.items()}
    assert steps["scan"] > 8 * few["scan"]["steps_per_lookup"]
    assert steps["tst"] < 3 * few["tst"]["steps_per_lookup"]
    assert steps["tst"] < steps["operators"] < steps["scan"]


def test_steps_of_hashed_pieces_are_those_of_all_pieces() -> None:
    """Brute force: which pieces of a text have a length that some operand has?"""
    from palio.model.predicate import Op

    module: Any = experiment("2003-strings")
    constraints = [(Op.PREFIX, "ab"), (Op.PREFIX, "xyz"), (Op.SUFFIX, "c"), (Op.CONTAINS, "bc")]
    text = "abcd"
    pieces = [text[:2], text[:3], text[-1:], *(text[i : i + 2] for i in range(3)), text]
    assert module.STEPS["pool"](None, constraints, [text, text]) == len(pieces)
