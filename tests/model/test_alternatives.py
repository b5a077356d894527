"""Filters with alternatives become several, and never multiply."""

from palio.model.alternatives import Alternatives, split
from palio.model.language import parse
from palio.model.predicate import Constraint


def _one(text: str) -> Constraint:
    return parse(text).filters[0].constraints[0]


_WHOLE = _one("x RLIKE 'a|b'")
_A, _B, _C = (_one(f"array_contains(tags, '{element}')") for element in "abc")
_X = _one("x = 1")


def test_the_fewest_alternatives_are_split() -> None:
    two, three = Alternatives(_WHOLE, (_A, _B)), Alternatives(_WHOLE, (_A, _B, _C))
    assert split([(three, _X, two)], 10) == [(_WHOLE, _X, _A), (_WHOLE, _X, _B)]


def test_one_alternative_stands_for_the_whole() -> None:
    assert split([(_X, Alternatives(_WHOLE, (_A,)))], 1) == [(_X, _A)]


def test_a_filter_that_asks_for_an_element_is_not_split() -> None:
    two = Alternatives(_WHOLE, (_A, _B))
    assert split([(_C, two)], 10) == [(_C, _WHOLE)]
    assert split([(two, Alternatives(_WHOLE, (_C,)))], 10) == [(_WHOLE, _C)]


def test_the_limit_holds() -> None:
    two, three = Alternatives(_WHOLE, (_A, _B)), Alternatives(_WHOLE, (_A, _B, _C))
    assert split([(three,), (two,), (_X,)], 4) == [(_WHOLE,), (_A,), (_B,), (_X,)]
