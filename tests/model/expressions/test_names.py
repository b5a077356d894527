"""The attributes that expressions compute."""

from __future__ import annotations

import pytest

from palio.errors import InvalidPredicate
from palio.model.expressions.names import (
    attributes_of,
    canonical,
    computed_name,
    expression_of,
    value_of,
)
from palio.model.expressions.tree import AttributeOf, Call
from palio.model.language import parse
from palio.model.predicate import Constraint


def test_a_name_says_its_expression() -> None:
    lower = Call("lower", (AttributeOf("name"),))
    assert computed_name(lower) == "=lower(name)"
    assert expression_of("=lower(name)") == lower
    assert computed_name(AttributeOf("name")) == "name"
    assert canonical("=LOWER( name )") == "=lower(name)"
    assert attributes_of(expression_of("=x < (y + x)")) == {"x", "y"}


def test_a_constraint_takes_the_canonical_name() -> None:
    assert Constraint("=LOWER(x)", "=", "a") == Constraint("=lower(x)", "=", "a")


@pytest.mark.parametrize("name", ["=", "=x", "=lower(", "=lower(x", "=now(x)", "=(x)"])
def test_what_is_no_expression_is_refused(name: str) -> None:
    with pytest.raises(InvalidPredicate, match="names no expression"):
        Constraint(name, "=", 1)


def test_values_are_computed_and_never_taken_from_a_message() -> None:
    message = {"x": 1, "=x + 1": 7}
    assert value_of("=x + 1", message) == 2
    assert parse("x + 1 = 2").matches(message)
    assert not parse("x + 1 = 7").matches(message)


def test_what_cannot_be_computed_is_not_there() -> None:
    reasons: list[str] = []
    assert value_of("=1 / x", {"x": 0}, reasons.append) is None
    assert reasons == ["divide: division by zero"]
    assert not parse("1 / x > 0").matches({"x": 0})
    assert not parse("NOT (1 / x > 0)").matches({"x": 0})
    assert parse("1 / x IS NULL").matches({"x": 0})


def test_an_explanation_shows_the_values_of_expressions() -> None:
    shown = str(parse("price * qty > 100").explain({"price": 30, "qty": 3}))
    assert "no   price * qty > 100   (price * qty is 90)" in shown
