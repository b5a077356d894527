"""Constraints as SQL that `parse` reads back to the same.

Spark SQL reads it with the same meaning, but for `typeof(x) = 'int'` (an `any` of one type): there
a column has its type even where it is NULL, and other names for it.
"""

from __future__ import annotations

from typing import Any, cast

from palio.model.expressions.names import computed_operand, is_computed, is_junction
from palio.model.operands import Operand
from palio.model.operators import STRING_OPS, Op
from palio.model.sql_text import name_sql, value_sql
from palio.model.values import Type

_FUNCTIONS = {Op.PREFIX: "startswith", Op.SUFFIX: "endswith", Op.CONTAINS: "contains"}
_POSITIVE = {
    Op.NOT_PREFIX: Op.PREFIX,
    Op.NOT_SUFFIX: Op.SUFFIX,
    Op.NOT_CONTAINS: Op.CONTAINS,
}


def constraint_sql(name: str, op: Op, operand: Operand, type: Type | None) -> str:
    """A constraint as SQL.

    >>> constraint_sql("y z", Op.IN, (1, 3), Type.INT)
    '`y z` IN (1, 3)'
    """
    value = cast(Any, operand)
    if is_computed(name) and type is Type.BOOL and op is Op.EQ:
        return _condition(name, value)
    shown = _subject(name)
    if op is Op.IN:
        return f"{shown} IN ({', '.join(map(value_sql, value))})"
    if op is Op.ABSENT:
        return f"{shown} IS NULL"
    if op is Op.ANY:
        return f"{shown} IS NOT NULL" if type is None else f"typeof({shown}) = '{type}'"
    if op in STRING_OPS:
        return _string_test(shown, op, value)
    return f"{shown} {op} {value_sql(value)}"


def _subject(name: str) -> str:
    return computed_operand(name) if is_computed(name) else name_sql(name)


def _condition(name: str, holds: bool) -> str:
    """An expression that stands alone."""
    if not holds:
        return f"NOT ({name[1:]})"
    return f"({name[1:]})" if is_junction(name) else name[1:]


def _string_test(name: str, op: Op, text: str) -> str:
    positive = _POSITIVE.get(op, op)
    negated = positive is not op
    if not text or any(char in text for char in "%_\\"):
        call = f"{_FUNCTIONS[positive]}({name}, {value_sql(text)})"
        return f"NOT {call}" if negated else call
    pattern = ("" if positive is Op.PREFIX else "%") + text + ("" if positive is Op.SUFFIX else "%")
    return f"{name} {'NOT ' * negated}LIKE {value_sql(pattern)}"
