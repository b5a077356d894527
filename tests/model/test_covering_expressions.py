"""Covering, intersection and advertisements of subscriptions with expressions, by brute force."""

from __future__ import annotations

import itertools

import pytest

from palio.errors import InvalidPredicate
from palio.model.advertisement import Advertisement, parse_advertisement
from palio.model.covering import covers, intersects, uncovered, witness
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Constraint, Predicate
from palio.model.reduction import reduce

TEXTS = (
    "lower(x) = 'a'", "lower(x) != 'a'", "lower(x) IN ('a', 'ab')", "x < y", "NOT (x < y)", "x IS NULL",
    "lower(x) IS NULL", "coalesce(y, 1) = 1", "coalesce(y, 1) > 1", "x LIKE 'a%b_'", "x + y > 2",
    "NOT (x LIKE '_b%')", "y = 1", "y > 1 AND lower(x) = 'a'", "x < y OR y = 1", "size(t) = 1",
    "array_contains(t, 1)", "array_contains(t, 1) AND x = 'a'", "t IS NOT NULL", "NOT array_contains(t, 1)",
    "x < y AND NOT (x < y)", "abs(y - 1) < 1 AND y > 0", "abs(y - 1) < 1",
)  # fmt: skip
_X = (None, 0, 1, 1.5, "a", "A", "ab", "abbc", True)
_Y = (None, 0, 1, 2, "b")
_T = (None, (1,), (1, 2), ())
MESSAGES = [
    Message({n: v for n, v in zip("xyt", values, strict=True) if v is not None})
    for values in itertools.product(_X, _Y, _T)
]
PREDICATES = [*map(parse, TEXTS)]
SELECTED = [{i for i, m in enumerate(MESSAGES) if p.matches(m)} for p in PREDICATES]
OFFERS = [
    parse_advertisement(one)
    for one in (
        ["x IS NOT NULL", "y IS NOT NULL", "t IS NOT NULL"], ["x IS NOT NULL"], ["y > 0"],
        ["x = 'A'", "y IS NOT NULL"], ["t IS NOT NULL"], ["z = 1"],
    )
]  # fmt: skip


def test_covering_is_sound() -> None:
    pairs = list(itertools.product(range(len(TEXTS)), repeat=2))
    for a, b in pairs:
        for exact in (False, True):
            if covers(PREDICATES[a], PREDICATES[b], exact=exact):
                assert SELECTED[b] <= SELECTED[a], (TEXTS[a], TEXTS[b])
    assert all(covers(one, one) for one in PREDICATES)


def test_equal_expressions_are_equal_attributes() -> None:
    assert covers("dept = 'x'", "dept = 'x' AND lower(y) = 'z'")
    assert covers("LOWER( y ) IN ('z', 'w')", "dept = 'x' AND lower(y) = 'z'")
    assert covers("price * qty > 100", "price * qty > 200 AND a = 1")
    assert not covers("lower(y) = 'z'", "upper(y) = 'Z'")
    assert not intersects(parse("lower(y) = 'z'"), "lower(y) = 'w' AND a = 1")
    wide = uncovered("a = 1", "lower(y) = 'z'")
    assert wide is not None


def test_reduction_keeps_the_meaning() -> None:
    for a, b in itertools.combinations(range(len(TEXTS)), 2):
        both = Predicate(PREDICATES[a].filters + PREDICATES[b].filters)
        reduced = reduce(both)
        found = {i for i, message in enumerate(MESSAGES) if reduced.matches(message)}
        assert found == SELECTED[a] | SELECTED[b], (TEXTS[a], TEXTS[b])


def test_a_witness_is_one() -> None:
    for a, b in itertools.product(PREDICATES, repeat=2):
        found = witness(a, b)
        assert found is None or (b.matches(found) and not a.matches(found))


def test_predicates_intersect_where_a_message_is_in_both() -> None:
    for a, b in itertools.product(range(len(TEXTS)), repeat=2):
        if SELECTED[a] & SELECTED[b]:
            assert intersects(PREDICATES[a], PREDICATES[b]), (TEXTS[a], TEXTS[b])


@pytest.mark.parametrize("offer", OFFERS, ids=str)
def test_no_subscription_misses_an_advertised_message(offer: Advertisement) -> None:
    allowed = {i for i, message in enumerate(MESSAGES) if offer.matches(message)}
    for text, predicate, selected in zip(TEXTS, PREDICATES, SELECTED, strict=True):
        if selected & allowed:
            assert intersects(offer, predicate), text


def test_what_an_expression_needs_must_be_advertised() -> None:
    offer = parse_advertisement(["x IS NOT NULL", "y IS NOT NULL"])
    for text, meets in [
        ("x < y", True), ("x < z", False), ("lower(z) = 'a'", False), ("coalesce(z, 0) = 0", True),
        ("z + 1 IS NULL", True), ("lower(x) = 'a' AND z = 1", False), ("NOT (z > 1)", False),
    ]:  # fmt: skip
        assert intersects(offer, text) is meets, text


def test_an_advertisement_has_no_expressions() -> None:
    with pytest.raises(InvalidPredicate, match="not expressions of them"):
        parse_advertisement(["lower(x) = 'a'"])
    with pytest.raises(InvalidPredicate, match="x IS NOT NULL allows every x"):
        Advertisement((Constraint("=lower(x)", "=", "a"),))
