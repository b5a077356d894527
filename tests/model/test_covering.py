"""Covering against brute force: sound always, complete where the design says so."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import Advertisement, Constraint, Filter, Predicate, covers, intersects
from palio.lab.data.workloads import disjunction_2006
from palio.model.boxes import box
from palio.model.boxes import is_contradiction as contradiction
from palio.model.covering import uncovered, witness
from tests.model import brute
from tests.strategies import filters, messages, predicates

ONE_ATTRIBUTE = brute.string_constraints() + brute.number_constraints() + brute.other_constraints()


def test_one_constraint_against_one_is_sound_and_complete() -> None:
    """All pairs of constraints on one attribute, against every value of the small domain."""
    selected = {c: brute.selects(Filter((c,))) for c in ONE_ATTRIBUTE}
    for a, b in itertools.product(ONE_ATTRIBUTE, repeat=2):
        expected = brute.inside(selected[b], selected[a])
        assert covers(Predicate.of(a), Predicate.of(b)) == expected, (a, b)


@pytest.mark.parametrize("exact", [False, True])
def test_conjunctions_on_one_attribute(exact: bool) -> None:
    """Numbers, times and bools are complete; strings are sound, and complete when exact."""
    pick = random.Random(11)
    strings = brute.string_constraints()
    others = brute.number_constraints() + brute.other_constraints()
    for pool in (strings, others):
        for _ in range(1500):
            a = Filter(tuple(pick.sample(pool, pick.randint(1, 2))))
            b = Filter(tuple(pick.sample(pool, pick.randint(1, 3))))
            expected = brute.inside(brute.selects(b), brute.selects(a))
            answer = covers(a, b, exact=exact)
            if exact or pool is others:
                assert answer == expected, (a, b)
            else:
                assert not answer or expected, (a, b)


def test_unions_of_numbers_are_complete() -> None:
    pick = random.Random(12)
    pool = brute.number_constraints() + brute.other_constraints()
    for _ in range(1500):
        a = Predicate(tuple(Filter((pick.choice(pool),)) for _ in range(pick.randint(1, 4))))
        b = Filter(tuple(pick.sample(pool, pick.randint(1, 2))))
        expected = brute.inside(brute.selects(b), brute.selects(a))
        assert covers(a, b) == expected, (a, b)


def test_unions_over_two_attributes_are_exact() -> None:
    pick = random.Random(13)
    values = [None, True, 0, 1, 2, 0.5, 1.5, "", "a", "b", "ab", "ba", "aab"]
    pools = {
        name: brute.number_constraints(name)
        + brute.other_constraints(name)
        + [c for c in brute.string_constraints(name) if len(str(c.value)) < 3]
        for name in "xy"
    }
    for _ in range(300):
        a = Predicate(
            tuple(
                Filter(tuple(pick.choice(pools[n]) for n in pick.sample("xy", pick.randint(1, 2))))
                for _ in range(pick.randint(1, 4))
            )
        )
        b = Filter(tuple(pick.choice(pools[n]) for n in pick.sample("xy", pick.randint(0, 2))))
        missed = [
            m for m in brute.messages(["x", "y"], values) if b.matches(m) and not a.matches(m)
        ]
        fast, exact = covers(a, b), covers(a, b, exact=True)
        assert not fast or not missed, (a, b, missed[:1])
        assert not exact or not missed, (a, b, missed[:1])
        assert exact or not fast, "exact finds all that the fast test finds"
        found = witness(a, b)
        assert (found is None) == exact, (a, b, found)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("x < 5 OR x > 3", "x = 4.5", True),
        ("x < 5 OR x >= 5", "typeof(x) = 'float'", True),
        ("x < 5 OR x >= 5", "x IS NOT NULL", False),
        ("x IS NULL OR x IS NOT NULL", "TRUE", True),
        ("x != 5 OR x = 5.0", "x > 1", True),
        ("x = 4", "x > 3 AND x < 5", False),  # {x: 4.5} is a message too
        ("x >= 4", "x = 3 AND x = 5", True),  # nothing matches b
        ("FALSE", "FALSE", True),
        ("FALSE", "TRUE", False),
        ("x > 9007199254740992", "x >= 9007199254740993", True),
        ("x > 9007199254740992.0", "x = 9007199254740993", True),
        ("x >= CAST('Infinity' AS DOUBLE)", "x > 1e308 AND x > 1.7976931348623157e308", True),
        ("s >= 'ab' AND s < 'ac'", "s LIKE 'ab%'", True),
        ("s LIKE 'ab%'", "s >= 'ab' AND s < 'ac'", True),
        ("s > ''", "s LIKE '%z'", True),
        ("s LIKE '%a%'", "s LIKE 'ba%'", True),
        ("b", "b IS NOT NULL AND NOT (b = FALSE) AND typeof(b) = 'bool'", True),
    ],
)
def test_examples(a: str, b: str, expected: bool) -> None:
    assert covers(palio.parse(a), palio.parse(b)) is expected
    assert covers(palio.parse(a), palio.parse(b), exact=True) is expected


def test_declared_ints_are_discrete() -> None:
    assert covers("x = 4", "x > 3 AND x < 5", schema={"x": "int"})
    assert covers("x >= 4", "x > 3.5", schema={"x": "int"})
    assert covers("x < 5 OR x >= 5", "x IS NOT NULL", schema={"x": "int"})
    assert not covers("x = 4", "x > 3 AND x < 6", schema={"x": "int"})
    with pytest.raises(palio.InvalidPredicate, match="integerish"):
        covers("x = 4", "x = 4", schema={"x": "integerish"})


def test_exact_strings_go_beyond_the_fast_test() -> None:
    a, b = (
        "s LIKE '%bcd%'",
        "s LIKE 'ab%' AND s LIKE '%cd' AND s IN ('abcd', 'abxcd') AND s != 'abxcd'",
    )
    assert covers(a, b)  # finitely many strings are enumerated
    a, b = "s LIKE '%ab%' OR s LIKE '%ba%'", "s LIKE 'a%' AND s LIKE '%b' AND s < 'ac' AND s > 'ab'"
    assert covers(a, b, exact=True)
    a = "s != 'ab'"
    b = "s LIKE 'a%' AND s LIKE '%b' AND s LIKE '%c%'"
    assert covers(a, b, exact=True)
    assert covers(a, b)


@settings(max_examples=150)
@given(filters, filters, messages)
def test_covering_agrees_with_matching(a: Filter, b: Filter, message: palio.Message) -> None:
    if covers(a, b) and b.matches(message):
        assert a.matches(message)


@settings(max_examples=100)
@given(predicates)
def test_covering_is_reflexive(p: Predicate) -> None:
    assert covers(p, p)


def test_covering_is_transitive() -> None:
    pick = random.Random(14)
    pool = ONE_ATTRIBUTE
    seen = 0
    while seen < 400:
        a, b, c = (Predicate.of(*pick.sample(pool, pick.randint(1, 2))) for _ in range(3))
        if covers(a, b, exact=True) and covers(b, c, exact=True):
            seen += 1
            assert covers(a, c, exact=True), (a, b, c)


@settings(max_examples=100)
@given(predicates, predicates, st.booleans())
def test_witness_is_a_counterexample(a: Predicate, b: Predicate, exact: bool) -> None:
    found = witness(a, b, exact=exact)
    if found is not None:
        assert b.matches(found)
        assert not a.matches(found)
        assert not covers(a, b)


def test_the_uncovered_part_is_a_box_of_b() -> None:
    left = uncovered("x < 3", "x < 5")
    assert left is not None
    assert not contradiction(left)
    assert uncovered("x < 5", "x < 3") is None
    assert contradiction(box(palio.parse("x > 3 AND x < 3").filters[0]))


def _allowed(advertisement: Advertisement) -> int:
    """Which values an advertisement on one attribute allows; a missing one always."""
    filters = tuple(Filter((c,)) for c in advertisement.constraints)
    return brute.selects(Predicate(filters)) | 1 << brute.VALUES.index(None)


def test_advertisements_cover_as_brute_force_says() -> None:
    pick = random.Random(15)
    pool = ONE_ATTRIBUTE
    for _ in range(1500):
        a = Advertisement(tuple(pick.sample(pool, pick.randint(0, 3))))
        b = Advertisement(tuple(pick.sample(pool, pick.randint(1, 2))))
        expected = brute.inside(_allowed(b), _allowed(a))
        assert covers(a, b, exact=True) == expected, (a, b)
        assert not covers(a, b) or expected, (a, b)


def test_intersection_agrees_with_brute_force() -> None:
    pick = random.Random(16)
    for _ in range(1500):
        ad = Advertisement(tuple(pick.sample(ONE_ATTRIBUTE, pick.randint(0, 3))))
        sub = Filter(tuple(pick.sample(ONE_ATTRIBUTE, pick.randint(1, 2))))
        both = _allowed(ad) & brute.selects(sub)
        assert intersects(ad, sub, exact=True) == bool(both), (ad, sub)
        assert intersects(ad, sub) or not both, (ad, sub)


def test_intersection_needs_every_attribute_to_be_allowed() -> None:
    ad = Advertisement((Constraint("what", "=", "alarm"), Constraint("level", "<", 5)))
    assert intersects(ad, "what = 'alarm'")
    assert intersects(ad, "level > 3 OR what = 'login'")
    assert not intersects(ad, "level > 5")
    assert not intersects(ad, "user = 'ann'")
    assert intersects(ad, "user IS NULL AND level > 4")
    assert intersects("x > 3", "x < 5")
    assert not intersects("x > 3", "x < 3")


def test_advertisements_and_subscriptions_do_not_mix() -> None:
    with pytest.raises(palio.InvalidPredicate, match="intersect"):
        covers(Advertisement(()), palio.parse("x = 1"))


def test_large_disjunctions_are_compared_through_an_index() -> None:
    large = disjunction_2006(3_000, names=30, zipf=True, seed=8)
    small = Predicate(large.filters[1_000:2_000])
    assert covers(large, small)
    assert not covers(small, large)
