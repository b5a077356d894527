"""Experiments against something simpler."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from palio.lab.reproduce.catalogue import experiment
from palio.lab.reproduce.drawing import png
from palio.routing import Topology


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


def test_deliveries_are_judged_and_drp_is_tried_exhaustively_in_small_networks() -> None:
    """2006, 3: PSF is inside PIF, iPS is PSF; a ring of four with ties is not ideal for DRP."""
    module: Any = experiment("2006-deliveries")
    rows = {row["scheme"]: row for row in module.run({"nodes": 6, "ties": True}, 3)}
    assert tuple(rows) == module.VARIANTS
    for row in rows.values():
        assert row["correct"] == row["latency"] == row["deliveries"] == module.MESSAGES
        assert row["psf_inside_pif"] == row["ips_as_psf"] == module.MESSAGES
        assert row["bridge_pairs"] == row["bridge_pairs_alike"]
    assert rows["PIF"]["packets"] >= rows["PSF"]["packets"]
    ring = Topology.from_edges([(1, 2), (2, 3), (3, 4), (1, 4)])
    assert module.exhaustive(ring, Random(1)) == (False, False)
    line = Topology.from_edges([(1, 2), (2, 3)])
    assert module.exhaustive(line, Random(1)) == (True, True)


def test_memory_without_advantage_is_the_formula_of_psf() -> None:
    module: Any = experiment("2006-memory")
    values = {"nodes": 25, "family": "tree", "interests": "apart"}
    rows = {row["scheme"]: row for row in module.run(values, 3)}
    assert rows["PSF"]["bits"] == pytest.approx(rows["PSF"]["formula_bits"], rel=0.02)
    assert rows["iPS"]["bits"] < rows["PSF"]["bits"]
    assert module.average_distance(Topology.from_edges([(1, 2), (2, 3)])) == pytest.approx(8 / 9)


def test_chung_lu_degrees_are_as_expected() -> None:
    module: Any = experiment("2006-distances")
    pairs = module.chung_lu(2_000, 2.5, np.random.default_rng(3))
    degrees = np.bincount(pairs.ravel(), minlength=2_000)
    assert degrees.mean() == pytest.approx(module.DEGREE, rel=0.1)
    assert degrees[:20].mean() > 5 * degrees[-200:].mean()
    assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs)
    (row,) = module.run({"nodes": 400, "graph": "attachment (3)"}, 3)
    assert row["n"] == 400
    assert 2 < row["d"] < 4


def test_tables_of_chains_and_flat_sets() -> None:
    """2000, 2.3 and 3.4: a chain leaves one entry a hop, a flat set all."""
    module: Any = experiment("2000-tables")
    rows = {s: module.run({"filters": 60, "shape": s}, 3)[0] for s in module.SHAPES}
    chain, flat = rows["chain"], rows["flat"]
    assert (chain["roots"], flat["roots"]) == (1, 60)
    assert chain["entries_stored"] <= module.HOPS
    assert flat["entries_stored"] == flat["entries"] == 60
    assert flat["sent"] == 2 * 60
    assert flat["compared"] == 60
    assert chain["sent"] < 40
    for row in rows.values():
        assert row["sent"] == row["sent_roots"]
        assert row["mixed_roots"] <= row["mixed_uncovered"] == row["mixed_sent"]


@pytest.mark.parametrize("where", ["together", "apart"])
def test_patterns_cross_the_trunk_assembled_only(where: str) -> None:
    """2000, 3.6, and without delegation all messages cross every link."""
    module: Any = experiment("2000-patterns")
    watched, plain = module.run({"length": 2, "sources": where}, 3)
    assert watched["trunk_single"] == 0
    assert watched["trunk_assembled"] == 2 * watched["received"] > 0
    assert plain["packets"] == (2 + 2) * module.MESSAGES
    assert plain["received"] == module.MESSAGES


@pytest.mark.parametrize(
    "relation", ["subscription and notification", "advertisement and notification"]
)
def test_matching_is_linear(relation: str) -> None:
    """2000, 3.7: O(n + m)."""
    module: Any = experiment("2000-relations")
    few, many = (module.run({"relation": relation, "size": size}, 1)[0] for size in (16, 128))
    assert few["holds"]
    assert many["holds"]
    assert many["lines"] < 10 * few["lines"]


def test_searches_touch_what_is_satisfied() -> None:
    """2001, 3."""
    module: Any = experiment("2001-search")
    for op in ("=", "<"):
        (row,) = module.run({"constraints": 500, "op": op}, 3)
        assert row["touched_per_message"] == row["expected_per_message"] > 0


def test_a_search_compares_few_keys() -> None:
    """2001, 3: at most one more for each doubling, and 16 at the end."""
    module: Any = experiment("2001-comparisons")
    for op in ("=", "<"):
        (row,) = module.run({"constraints": 1_000, "op": op}, 3)
        assert 10 <= row["compared_mean"] <= row["compared_max"] <= 6 + 16
    counted = module.CountedKeys([3, 5])
    assert (counted[1], counted[0], counted.reads) == (5, 3, 2)


TEXTS = ("abc", "ab", "xabx", "b", "")


@pytest.mark.parametrize("name", ["trees", "bisected", "scanned"])
def test_sub_indexes_find_what_constraints_say(name: str) -> None:
    """2003, 4.2: each operator by Python's own."""
    from palio.model.predicate import Op

    module: Any = experiment("2003-comparisons")
    holds = {
        Op.EQ: lambda text, operand: text == operand,
        Op.LT: lambda text, operand: text < operand,
        Op.GT: lambda text, operand: text > operand,
        Op.PREFIX: lambda text, operand: text.startswith(operand),
        Op.SUFFIX: lambda text, operand: text.endswith(operand),
        Op.CONTAINS: lambda text, operand: operand in text,
    }
    constraints = [(op, x) for op in holds for x in ("a", "ab", "abc", "b", "bx", "x", "xa")]
    index = module.apart(constraints)[name]
    for text in TEXTS:
        assert index.look_up(text) == {(op, x) for op, x in constraints if holds[op](text, x)}
    assert index.compared > 0


def test_characters_that_are_compared() -> None:
    """By hand: a tree of ab, b and bx whose top is b; a scan, and a bisection."""
    from palio.model.predicate import Op

    module: Any = experiment("2003-comparisons")
    constraints = [(Op.PREFIX, operand) for operand in ("ab", "b", "bx")]

    def compared(name: str, text: str) -> int:
        index = module.apart(constraints)[name]
        index.look_up(text)
        return int(index.compared)

    assert compared("trees", "ab") == 3  # b, then left a, then b
    assert compared("trees", "by") == 2
    assert compared("scanned", "by") == 1 + 1 + 2
    assert compared("bisected", "c") == 2  # pieces of length 1: b, then bx


def test_one_tree_compares_less_than_a_tree_for_each_operator() -> None:
    module: Any = experiment("2003-comparisons")
    (row,) = module.run({"dictionary": "large", "constraints": 300}, 3)
    assert 0 < row["one_index"] < row["trees"] < row["bisected"]
    rows = [{"dictionary": d, "constraints": n, **row} for d in ("small", "large") for n in (1, 2)]
    assert png(module.plot, rows).startswith(b"\x89PNG")


def test_names_are_shared_as_far_as_asked_for() -> None:
    """2001, 4.1: renamed names match nothing; strict types ask for more; both dictionaries are drawn."""
    module: Any = experiment("overlap")
    found = {
        draw: module.run({"filters": 1_000, "paper": "2001", "draw": draw}, 3)
        for draw in module.DRAWS
    }
    for rows in found.values():
        every = {row["shared"]: row["increments_per_message"] for row in rows[:5]}
        assert list(every) == list(module.SHARES)
        assert every[0.0] == 0 < every[0.5] < every[1.0]
    plain, strict, large = (rows[0]["constraints"] for rows in found.values())
    assert plain == large < strict
    rows = [{"paper": p, "draw": "as printed", **row} for p in module.PAPERS for row in rows]
    assert png(module.plot, rows).startswith(b"\x89PNG")


@pytest.mark.parametrize(("scheme", "column"), [("PSF", "distances"), ("DRP", "pairs")])
def test_brokers_hold_what_the_links_say(scheme: str, column: str) -> None:
    """2006, 3.1 and 3.4: a ring of six, whose distances are 1, 1, 2, 2 and 3."""
    module: Any = experiment("2006-brokers")
    (row,) = module.run({"nodes": 6, "family": "ring", "scheme": scheme}, 3)
    assert (row["n"], row["distances"], row["pairs"]) == (6, 6 * 9, 6 * 5)
    assert row["held"] == row[column]


def test_tables_of_figure_9_differ_by_their_interfaces_alone() -> None:
    """2001, 4.2: fewer interfaces, fewer increments; the matches of I = F are filters."""
    module: Any = experiment("2001-fig9")
    rows = module.run({"filters": 2_000, "attributes": 100}, 3)
    work = {
        row["interfaces"]: row["increments_per_message"]
        for row in rows
        if row["engine"] == "counting 2001"
    }
    counts = [work[i] for i in module.INTERFACES]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert len({row["constraints"] for row in rows}) == 1
    for interfaces in module.INTERFACES:
        matches = {row["matches_per_message"] for row in rows if row["interfaces"] == interfaces}
        assert len(matches) == 1, "engines agree"


@pytest.mark.xdist_group("study")  # its kernels are compiled once
def test_the_study_says_which_to_choose() -> None:
    """Every way has its costs, and the table names the best by each of them."""
    module: Any = experiment("study")
    rows = [
        {"nodes": 100, "family": family, **row}
        for family in module.FAMILIES
        for row in module.run({"nodes": 100, "family": family}, 3)
    ]
    own = {row["way"]: row for row in rows if row["family"] == "random"}
    assert own["PSF"]["packets"] == own["DRP"]["packets"] < own["PIF"]["packets"]
    assert own["PIF"]["bits"] < own["iPS"]["bits"] < own["PSF"]["bits"]
    assert own["DRP"]["recovery"] == 0 < own["PIF"]["recovery"] < own["PSF"]["recovery"]
    assert own["one tree"]["stretch"] > 1 == own["PSF"]["stretch"]
    choice, figures = module.tables(rows)
    answers = {line[0]: line[1:] for line in choice[1]}
    need = "few table entries that change when a link fails"
    assert all(answer.startswith("DRP (") for answer in answers[need])
    assert answers["memory, and paths may be longer"][2].startswith("one tree (")
    assert len(figures[1]) == 3 * 6
    assert png(module.plot, rows).startswith(b"\x89PNG")
