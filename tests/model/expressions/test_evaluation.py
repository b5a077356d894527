"""Computing expressions over the attributes of a message."""

from __future__ import annotations

from palio.model.expressions.evaluation import value
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression

X, Y = AttributeOf("x"), AttributeOf("y")


def computed(expression: Expression, **attributes: int) -> tuple[object, list[str]]:
    errors: list[str] = []
    return value(expression, attributes, errors.append), errors


def test_null_goes_through() -> None:
    assert computed(Call("add", (X, Y)), x=1) == (None, [])
    assert computed(Call("add", (X, Y)), x=1, y=2) == (3, [])


def test_what_fails_is_null_and_told() -> None:
    assert computed(Call("div", (X, Y)), x=1, y=0) == (None, ["div: division by zero"])
    assert computed(Call("coalesce", (Call("div", (X, Y)), Constant(7))), x=1, y=0)[0] == 7


def test_what_is_not_chosen_is_not_computed() -> None:
    guarded = Call("case", (Call("not_equal", (Y, Constant(0))), Call("div", (X, Y)), Constant(-1)))
    assert computed(guarded, x=6, y=3) == (2, [])
    assert computed(guarded, x=6, y=0) == (-1, [])
    either = Call("or", (Call("equal", (X, Constant(1))), Call("equal", (Call("div", (X, Y)), X))))
    assert computed(either, x=1, y=0) == (True, [])


def test_logic_has_three_values() -> None:
    absent, no, yes = Call("equal", (X, Constant(1))), Constant(False), Constant(True)
    assert computed(Call("and", (absent, no)))[0] is False
    assert computed(Call("and", (absent, yes)))[0] is None
    assert computed(Call("or", (absent, yes)))[0] is True
    assert computed(Call("or", (absent, no)))[0] is None
    assert computed(Call("not", (absent,)))[0] is None


def test_types_are_not_mixed() -> None:
    assert computed(Call("equal", (X, Constant("1"))), x=1) == (None, [])
    assert computed(Call("lower", (X,)), x=1) == (None, ["lower: a string is needed, not 1"])


def test_bytes_are_there_and_nothing_else() -> None:
    for function in ("equal", "less", "lower", "add", "cast as STRING", "least"):
        arguments = (X,) if function in ("lower", "cast as STRING") else (X, Constant(1))
        assert value(Call(function, arguments), {"x": b"ab"}, str) is None
    assert value(Call("is null", (X,)), {"x": b"ab"}, str) is False
