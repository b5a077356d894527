"""Constraints whose operand is a decimal that no double stands for: the comparison is an expression.

    price > 12345678901234567.88        (price > 12345678901234567.88) = TRUE

So a decimal is compared with what is written, and a double with the double nearest to it, as in a WHERE clause.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

from palio.model.expressions.decimals import Exact
from palio.model.expressions.names import computed_name, expression_of, is_computed
from palio.model.expressions.number_functions import IntLiteral
from palio.model.expressions.tree import AttributeOf, Call, Constant
from palio.model.long_decimals import LongDecimal, written
from palio.model.operators import Op
from palio.model.values import Type, Value

Parts: TypeAlias = tuple[str, Op, Any, Type | None]
"""Name, operator, operand and type of a constraint."""

_COMPARISONS = {
    Op.EQ: "equal", Op.NE: "not_equal", Op.LT: "less", Op.LE: "less_or_equal", Op.GT: "greater",
    Op.GE: "greater_or_equal", Op.IN: "in",
}  # fmt: skip


def is_long(value: object) -> bool:
    return isinstance(value, LongDecimal)


def exact_parts(name: str, op: Op, operands: Iterable[Value | LongDecimal]) -> Parts:
    """The constraint that compares an attribute, or an expression, with such decimals."""
    subject = expression_of(name) if is_computed(name) else AttributeOf(name)
    members = dict.fromkeys(map(_constant, operands))
    function = "equal" if op is Op.IN and len(members) == 1 else _COMPARISONS[op]
    return computed_name(Call(function, (subject, *members))), Op.EQ, True, Type.BOOL


def _constant(value: Value | LongDecimal) -> Constant:
    """As it is written."""
    if isinstance(value, float | LongDecimal):
        is_finite = is_long(value) or math.isfinite(value)
        decimal = value.value if isinstance(value, LongDecimal) else written(value)
        return Constant((Exact.of_decimal(decimal) if is_finite else None) or float(value))
    return Constant(IntLiteral(value)) if type(value) is int else Constant(value)
