"""The kernels of this folder, compiled ahead by using each."""

from __future__ import annotations

from palio.matching.computed.batches import attribute_columns, with_columns
from palio.matching.computed.columns import column_of
from palio.matching.computed.vectors import compute
from palio.matching.encode.messages import encode_messages
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression, Slot

_MANY = 300
"""Distinct strings: fewer would be left to Python."""


def warm_expressions() -> None:
    """Use every kernel of numbers, strings and columns once."""
    names = {"s": 0, "x": 1, "=c": 2}
    batch = encode_messages(names, [{"s": f"s{i}", "x": i / 2} for i in range(_MANY)])
    columns = attribute_columns(batch, names, ["s", "x"])
    slots = [column_of(["s%_"] * _MANY)]
    for function, arguments in _CALLS.items():
        found = compute(Call(function, arguments), columns, _MANY, slots)
        with_columns(batch, [(2, found)])


_S: Expression = AttributeOf("s")
_CALLS: dict[str, tuple[Expression, ...]] = {
    "power": (AttributeOf("x"), Constant(2.0)),
    "lower": (_S,),
    "concat": (_S, Constant("-")),
    "less": (_S, Slot(0)),
    "contains": (_S, Constant("1")),
    "like": (_S, Slot(0)),
}
