"""$expr: conditions that compare fields with each other and with what is computed from them.

Values of one type compare; a field that is not there, or one of another type, satisfies no comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from palio.model.dialects.documents import RefusedRule, literal, within
from palio.model.dialects.mongo_values import value_of
from palio.model.dialects.paths import attribute_at, segments_of
from palio.model.dialects.translation import (
    TRUE,
    Binding,
    Sql,
    all_of,
    any_of,
    called,
    comparison,
    complement,
)

_SIGNS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def expression_condition(expression: Any) -> Sql:
    """Where an expression is true."""
    if isinstance(expression, bool):
        return TRUE if expression else complement(TRUE)
    if isinstance(expression, str) and expression.startswith("$"):
        return comparison(_path(expression), "=", TRUE)
    operator, arguments = _parts(expression)
    with within(operator):
        if operator in _SIGNS:
            return comparison(*_two(arguments, _SIGNS[operator]))
        if operator == "$ne":
            return complement(comparison(*_two(arguments, "=")))
        if operator in _CONDITIONS:
            return _CONDITIONS[operator](_all_read(arguments, expression_condition))
        if operator == "$in":
            return _among(arguments)
    raise RefusedRule(
        f"{operator} is no condition of $expr; there are {', '.join([*_SIGNS, '$ne', '$in', *_CONDITIONS])}"
    )


def _not(conditions: list[Sql]) -> Sql:
    if len(conditions) != 1:
        raise RefusedRule("$not takes one condition")
    return complement(conditions[0])


_CONDITIONS: dict[str, Callable[[list[Sql]], Sql]] = {"$and": all_of, "$or": any_of, "$not": _not}


def _parts(expression: Any) -> tuple[str, list[Any]]:
    if not isinstance(expression, dict) or len(expression) != 1:
        raise RefusedRule("an expression is an object with one operator")
    ((operator, arguments),) = expression.items()
    return operator, list(arguments) if isinstance(arguments, list | tuple) else [arguments]


def _all_read(arguments: Sequence[Any], read: Callable[[Any], Sql]) -> list[Sql]:
    found = []
    for at, one in enumerate(arguments):
        with within(at):
            found.append(read(one))
    return found


def _two(arguments: list[Any], sign: str) -> tuple[Sql, str, Sql]:
    if len(arguments) != 2:
        raise RefusedRule("a comparison takes two expressions")
    left, right = _all_read(arguments, _value)
    return left, sign, right


def _among(arguments: list[Any]) -> Sql:
    if len(arguments) != 2 or not isinstance(arguments[1], list):
        raise RefusedRule("$in of $expr takes an expression and an array of expressions")
    with within(0):
        left = _value(arguments[0])
    with within(1):
        return any_of(comparison(left, "=", one) for one in _all_read(arguments[1], _value))


# ---- values


def _path(text: str) -> Sql:
    path = text[1:].removeprefix("$ROOT.").removeprefix("$CURRENT.")
    if path.startswith("$"):
        raise RefusedRule(f"the variable {text[:40]} is not supported")
    return attribute_at(segments_of(path))


def _value(expression: Any) -> Sql:
    if isinstance(expression, str) and expression.startswith("$"):
        return _path(expression)
    plain = value_of(expression)
    if not isinstance(plain, dict):
        return _literal(plain)
    operator, arguments = _parts(plain)
    with within(operator):
        if operator == "$literal":
            return _literal(value_of(plain["$literal"]))
        if operator == "$cond":
            return _conditional(plain["$cond"])
        if operator in _ARITHMETIC:
            return _ARITHMETIC[operator](_all_read(arguments, _value))
        if operator in _FUNCTIONS:
            name, least, most = _FUNCTIONS[operator]
            if not least <= len(arguments) <= most:
                raise RefusedRule(f"{operator} takes {least} or more expressions")
            return called(name, *_all_read(arguments, _value))
    raise RefusedRule(
        f"{operator} is not supported in $expr; there are "
        f"{', '.join(['$literal', '$cond', *_ARITHMETIC, *_FUNCTIONS])}"
    )


def _literal(value: Any) -> Sql:
    if value is None:
        raise RefusedRule('null equals nothing in $expr; write {"field": null} outside of it')
    if not isinstance(value, bool | int | float | str) and not hasattr(value, "tzinfo"):
        raise RefusedRule("a plain value is needed here")
    return literal(value)


def _conditional(operand: Any) -> Sql:
    if isinstance(operand, dict):
        operand = [operand.get(key) for key in ("if", "then", "else")]
    if not isinstance(operand, list) or len(operand) != 3:
        raise RefusedRule("$cond takes a condition and two expressions")
    condition = expression_condition(operand[0])
    chosen, other = _value(operand[1]), _value(operand[2])
    return Sql(f"CASE WHEN {condition.text} THEN {chosen.text} ELSE {other.text} END")


def _chain(sign: str, binding: Binding, most: int) -> Callable[[list[Sql]], Sql]:
    def applied(operands: list[Sql]) -> Sql:
        if not 2 <= len(operands) <= most:
            raise RefusedRule(f"it takes {'two' if most == 2 else 'two or more'} expressions")
        first, *rest = operands
        tighter = Binding(binding + 1)
        texts = [first.within(binding), *(one.within(tighter) for one in rest)]
        return Sql(f" {sign} ".join(texts), binding)

    return applied


_MANY = 100
_ARITHMETIC: dict[str, Callable[[list[Sql]], Sql]] = {
    "$add": _chain("+", Binding.SUM, _MANY),
    "$subtract": _chain("-", Binding.SUM, 2),
    "$multiply": _chain("*", Binding.PRODUCT, _MANY),
    "$divide": _chain("/", Binding.PRODUCT, 2),
    "$mod": _chain("%", Binding.PRODUCT, 2),
}
_FUNCTIONS = {
    "$abs": ("abs", 1, 1),
    "$ceil": ("ceil", 1, 1),
    "$floor": ("floor", 1, 1),
    "$concat": ("concat", 1, _MANY),
    "$toLower": ("lower", 1, 1),
    "$toUpper": ("upper", 1, 1),
    "$strLenCP": ("length", 1, 1),
    "$size": ("size", 1, 1),
    "$ifNull": ("coalesce", 2, _MANY),
    "$min": ("least", 2, _MANY),
    "$max": ("greatest", 2, _MANY),
}
