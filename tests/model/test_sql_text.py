"""Printing a predicate as SQL and reading it again gives the same predicate."""

from typing import Any

import pytest
from hypothesis import example, given, settings

import palio
from palio.model.predicate import Constraint, Filter, Predicate
from palio.model.sql_text import RESERVED
from palio.model.values import Value
from tests.strategies import (
    TRICKY_FLOATS,
    TRICKY_INTS,
    TRICKY_NAMES,
    TRICKY_STRINGS,
    TRICKY_TIMES,
    constraints,
    filters_of,
    predicates_of,
)

LITERALS = (*TRICKY_STRINGS, *TRICKY_INTS, *TRICKY_FLOATS, *TRICKY_TIMES, False, True)


def returns(predicate: Predicate) -> bool:
    return palio.parse(str(predicate)) == predicate


@settings(max_examples=400, deadline=None)
@given(predicates_of(filters_of(constraints, min_size=1)))
@example(Predicate(()))
@example(Predicate((Filter(()),)))
def test_parse_reads_what_str_prints(predicate: Predicate) -> None:
    assert returns(predicate)


@pytest.mark.parametrize("name", [*TRICKY_NAMES, *sorted(RESERVED)], ids=repr)
def test_every_name_comes_back(name: str) -> None:
    every: list[tuple[str, Any]]
    every = [("=", 1), ("prefix", "a"), ("contains", "%"), ("in", [1, 2]), ("absent", None)]
    assert returns(Predicate.of(*(Constraint(name, op, value) for op, value in every)))
    assert returns(Predicate.of(Constraint(name, "any"), Constraint(name, "any", type="int")))


@pytest.mark.parametrize("value", LITERALS, ids=repr)
def test_every_value_comes_back(value: Value) -> None:
    again = palio.parse(str(Predicate.of(Constraint("x", "=", value))))
    assert again == Predicate.of(Constraint("x", "=", value))
    (constraint,) = again.filters[0]
    assert type(constraint.value) is type(value)


@pytest.mark.parametrize("text", TRICKY_STRINGS, ids=repr)
@pytest.mark.parametrize("op", ["prefix", "suffix", "contains", "not prefix", "not contains"])
def test_every_string_comes_back_behind_every_operator(op: str, text: str) -> None:
    assert returns(Predicate.of(Constraint("x", op, text)))
