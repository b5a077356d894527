"""Reduction keeps the meaning, leaves nothing redundant, and scales."""

from __future__ import annotations

import random

from hypothesis import given, settings

import palio
from palio import Filter, Message, Predicate, covers
from palio.lab.data.workloads import disjunction_2006
from palio.model.boxes import box, box_covers
from tests.model import brute
from tests.seeds import sizes
from tests.strategies import messages, predicates


@settings(max_examples=200)
@given(predicates, messages)
def test_reduction_keeps_the_meaning(p: Predicate, message: Message) -> None:
    assert palio.reduce(p).matches(message) == p.matches(message)


def test_reduction_over_a_small_domain() -> None:
    """On two attributes, every message decides the same before and after."""
    pick = random.Random(21)
    values = [None, True, 0, 1, 2.5, "", "a", "ab", "ba"]
    pools = [
        brute.number_constraints(n) + brute.string_constraints(n) + brute.other_constraints(n)
        for n in "xy"
    ]
    for _ in range(150):
        p = Predicate(
            tuple(
                Filter(tuple(pick.choice(pick.choice(pools)) for _ in range(pick.randint(0, 4))))
                for _ in range(pick.randint(0, 6))
            )
        )
        reduced = palio.reduce(p)
        assert reduced.size <= p.size
        for message in brute.messages(["x", "y"], values):
            assert reduced.matches(message) == p.matches(message), (p, reduced, message)


def test_nothing_redundant_is_left() -> None:
    """The index finds every pair that a comparison of all pairs finds (2006 workload)."""
    for names, zipf in ((20, True), (50, False)):
        p = disjunction_2006(400, names=names, zipf=zipf, seed=3)
        boxes = [box(f) for f in palio.reduce(p).filters]
        for i, a in enumerate(boxes):
            for j, b in enumerate(boxes):
                assert i == j or not box_covers(a, b)


@sizes(1_000, 3_000)
def test_a_large_disjunction_equals_its_reduction(size: int) -> None:
    p = disjunction_2006(size, names=50, zipf=False, seed=4)
    reduced = palio.reduce(p)
    assert reduced.size < p.size / 2
    assert covers(p, reduced)
    pick = random.Random(5)
    survivors = set(reduced.filters)
    for f in pick.sample(p.filters, 200):
        assert f in survivors or covers(reduced, f)


def test_examples_of_the_paper() -> None:
    """2006, 4.2: redundant constraints and redundant conjunctions."""
    assert palio.reduce("x > 10 AND y = 100 OR y > 0") == palio.parse("y > 0")
    assert palio.reduce("severity > 2 OR severity > 3") == palio.parse("severity > 2")
    assert palio.reduce("x > 10 AND x > 20") == palio.parse("x > 20")


def test_contradictions_and_repeats_go() -> None:
    assert palio.reduce("x = 1 AND x = 2") == palio.parse("FALSE")
    assert palio.reduce("x = 1 OR x = 1 OR TRUE") == palio.parse("TRUE")
    assert palio.reduce("x = 1 AND x = 1") == palio.parse("x = 1")
    twice = palio.reduce("x > 3 AND x < 5 OR x = 4", schema={"x": "int"})
    assert twice == palio.parse("x > 3 AND x < 5")
    assert palio.reduce("s LIKE 'a%' AND s >= 'a'") == palio.parse("s LIKE 'a%'")


def test_many_constraints_on_one_attribute() -> None:
    p = Predicate.of(*(palio.Constraint("x", "!=", i) for i in range(2_000)))
    assert palio.reduce(p) == p
    many = Predicate.of(*(palio.Constraint("x", "<", i) for i in range(2_000)))
    assert palio.reduce(many) == palio.parse("x < 0")
