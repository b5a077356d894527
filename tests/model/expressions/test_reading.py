"""What is read as an expression, and what is said of the rest."""

from __future__ import annotations

import pytest

from palio.errors import ParseError
from palio.model.expressions.parsing import expression_of_text
from palio.model.expressions.tree import AttributeOf, Call, Constant, Lambda, Variable


def test_a_key_in_brackets_is_part_of_a_name() -> None:
    assert expression_of_text("m['k']['z']") == AttributeOf("m.k.z")
    assert expression_of_text("m['k'].z") == AttributeOf("m.k.z")
    element = Call("element", (AttributeOf("items"), Constant(0)))
    assert expression_of_text("items[0].z") == Call("field", (element, Constant("z")))


def test_variables_have_levels() -> None:
    inner = Lambda(1, Call("less", (Variable(0), Variable(1))))
    outer = Lambda(0, Call("exists", (AttributeOf("b"), inner)))
    wanted = Call("exists", (AttributeOf("a"), outer))
    assert expression_of_text("exists(a, x -> exists(b, y -> x < y))") == wanted


def test_a_variable_hides_an_attribute() -> None:
    body = Lambda(0, Call("equal", (Variable(0), AttributeOf("y"))))
    assert expression_of_text("exists(x, x -> x = y)") == Call("exists", (AttributeOf("x"), body))


def test_lists_of_literals_are_spread() -> None:
    found = expression_of_text("coalesce(x IN (-1, 2, 3), FALSE)")
    members = (Constant(-1), Constant(2), Constant(3))
    assert found == Call("coalesce", (Call("in", (AttributeOf("x"), *members)), Constant(False)))


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("exists(a, (x, i) -> x = i)", "takes one variable", 0),
        ("exists(a, b)", "takes an array and a lambda", 0),
        ("a[1, 2]", "one index", 0),
        ("x RLIKE '(?=a)'", "RE2 does not read", 8),
        ("lower(x) LIKE 'a\\\\b'", "escape character", 14),
        ("get_json_object(x, 'a.b')", "a path of JSON", 19),
        ("a + x LIKE ANY (1) ESCAPE '#'", "ESCAPE", 0),
        ("1 + -'a'", "minus sign", 5),
        ("due - x > INTERVAL 1 MONTH", "no fixed length", 0),
        ("due > INTERVAL 1 DAY", "difference of times", 0),
        ("due + INTERVAL 1 FORTNIGHT", "no unit", 15),
        ("x | y & 3", "parentheses", 0),
        ("timestampadd(foo, 1, due)", "a unit stands first", 0),
        ("extract(CENTURY FROM due)", "has no 'CENTURY'", 0),
        ("from_utc_timestamp(due, 'Nowhere')", "no time zone", 24),
        ("exists(a, a -> " * 9 + "a" + ")" * 9, "more than 8 deep", 120),
    ],
)
def test_refusals_point_at_the_place(text: str, reason: str, at: int) -> None:
    with pytest.raises(ParseError, match=reason) as caught:
        expression_of_text(text)
    assert caught.value.position == at
