"""The paper's reduction keeps the meaning, does what its two rules say, and ours is never larger."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import palio
from palio import Filter, Message, Predicate
from palio.lab.data.workloads import disjunction_2006
from palio.model.pairwise_reduction import implies, reduce_pairwise, without_implied
from palio.model.valuesets import is_subset, selected
from tests.model import brute
from tests.seeds import sizes
from tests.strategies import constraints_on, filters_of, messages, predicates, predicates_of

ON_FEW_NAMES = predicates_of(filters_of(constraints_on(st.sampled_from("xy")), max_size=5))


@settings(max_examples=200)
@given(predicates, messages)
def test_it_keeps_the_meaning(p: Predicate, message: Message) -> None:
    assert reduce_pairwise(p).matches(message) == p.matches(message)


def drawn(pick: random.Random) -> Predicate:
    pools = [
        brute.number_constraints(n) + brute.string_constraints(n) + brute.other_constraints(n)
        for n in "xy"
    ]
    return Predicate(
        tuple(
            Filter(tuple(pick.choice(pick.choice(pools)) for _ in range(pick.randint(0, 4))))
            for _ in range(pick.randint(0, 6))
        )
    )


def test_it_keeps_the_meaning_over_a_small_domain() -> None:
    pick = random.Random(8)
    values = [None, True, 0, 1, 2.5, "", "a", "ab", "ba"]
    for _ in range(150):
        p = drawn(pick)
        reduced = reduce_pairwise(p)
        for message in brute.messages(["x", "y"], values):
            assert reduced.matches(message) == p.matches(message), (p, reduced, message)


def test_what_is_implied_is_true() -> None:
    """Every implication between single constraints is one between the sets that they select."""
    pool = brute.number_constraints("x") + brute.string_constraints("x")
    pool += brute.other_constraints("x")
    found = [(a, b) for a in pool for b in pool if implies(a, b)]
    assert len(found) > len(pool)
    for a, b in found:
        assert is_subset(selected(a), selected(b), exact=True), (a, b)


@given(ON_FEW_NAMES)
@example(palio.parse("x = 3 AND x >= 3 AND x <= 3"))
@example(palio.parse("x >= 3 AND x <= 3 AND x = 3"))
@example(palio.parse("x >= 3 AND x > 3 AND x != 3"))
@example(palio.parse("x >= 3 AND x <= 3 OR x = 3"))
@settings(max_examples=300)
def test_ours_is_never_larger(p: Predicate) -> None:
    assert palio.reduce(p).size <= reduce_pairwise(p).size <= p.size


@sizes(250, 5_000)
def test_ours_is_never_larger_over_a_small_domain(size: int) -> None:
    pick = random.Random(9)
    for _ in range(size):
        p = drawn(pick)
        assert palio.reduce(p).size <= reduce_pairwise(p).size, p


@pytest.mark.parametrize(("names", "zipf"), [(20, True), (50, False)])
def test_the_index_finds_what_all_pairs_find(names: int, zipf: bool) -> None:
    p = disjunction_2006(400, names=names, zipf=zipf, seed=3)
    reduced = reduce_pairwise(p)
    assert palio.reduce(p).size < reduced.size < p.size
    for i, a in enumerate(reduced):
        for j, b in enumerate(reduced):
            assert i == j or not all(any(implies(c, w) for c in b) for w in a)


def test_what_only_ours_knows() -> None:
    for text in (
        "x > 3 AND x < 3",  # a contradiction
        "s LIKE 'ab%' AND s >= 'a'",  # a prefix is a range
        "x > 3 OR x <= 3 AND x > 2",  # nothing: neither covers the other
    ):
        assert reduce_pairwise(text) == palio.parse(text)
    together = "x >= 3 AND x <= 3 OR x = 3"
    assert palio.reduce(together).size == 2
    assert reduce_pairwise(together) == palio.parse("x >= 3 AND x <= 3")
    assert reduce_pairwise("x = 3 OR x >= 3 AND x <= 3") == palio.parse("x >= 3 AND x <= 3")
    assert palio.reduce("x = 3 OR x >= 3 AND x <= 3") == palio.parse("x = 3")


def test_within_a_conjunction() -> None:
    (found,) = palio.parse("x != 5 AND x > 3 AND s LIKE '%b%' AND x > 7 AND s LIKE 'ab%'")
    assert Predicate((without_implied(found),)) == palio.parse("x > 7 AND s LIKE 'ab%'")
