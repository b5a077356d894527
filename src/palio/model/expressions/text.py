"""Expressions as SQL: the canonical text, which the parser reads back to the same expression.

    Call greater                                         (price * 2) > abs(`limit`)
    ├── Call multiply ── AttributeOf price, Constant 2
    └── Call abs ── AttributeOf limit

Equal expressions have equal texts, so the text is the name of the attribute that they compute. An
operator inside another one stands in parentheses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from itertools import count

from palio.model.expressions.decimals import Exact
from palio.model.expressions.evaluation import OVER_ELEMENTS
from palio.model.expressions.foreign import SYNTAX, syntax_sql
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.tree import (
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    Variable,
)
from palio.model.sql_text import name_sql, value_sql
from palio.model.values import format_instant

TEXT_MAX = 100_000
"""Characters of an expression."""
_CAST = "cast as "
_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "mod": "%", "div": "DIV",
    "equal": "=", "not_equal": "!=", "less": "<", "less_or_equal": "<=", "greater": ">",
    "greater_or_equal": ">=", "same": "<=>", "and": "AND", "or": "OR",
    "bit_and": "&", "bit_or": "|", "bit_xor": "^",
}  # fmt: skip


def sql_of(expression: Expression) -> str:
    """An expression as SQL.

    >>> sql_of(Call("less", (AttributeOf("x"), Call("add", (AttributeOf("y"), Constant(1))))))
    'x < (y + 1)'
    """
    if isinstance(expression, AttributeOf):
        return name_sql(expression.name)
    if isinstance(expression, Constant):
        return _constant(expression.value)
    assert isinstance(expression, Call), "a slot is filled first, and a lambda is an argument"
    write = _WRITERS.get(expression.function)
    if write is not None:
        return write(expression)
    if expression.function.startswith(_CAST):
        return (
            f"CAST({sql_of(expression.arguments[0])} AS {expression.function.removeprefix(_CAST)})"
        )
    if expression.function.startswith(SYNTAX):
        parts = [_argument(one, operand_sql) for one in expression.arguments]
        return syntax_sql(expression.function, parts)
    arguments = [_argument(one, sql_of) for one in expression.arguments]
    return f"{expression.function}({', '.join(arguments)})"


def _argument(expression: Expression, write: Callable[[Expression], str]) -> str:
    return _lambda(expression) if isinstance(expression, Lambda) else write(expression)


def is_operator(expression: Expression) -> bool:
    """Does its text need parentheses beside another operator?"""
    if not isinstance(expression, Call):
        return False
    return expression.function in _OPERATORS or expression.function.startswith(SYNTAX)


def operand_sql(expression: Expression) -> str:
    """The text of an expression as an operand."""
    text = sql_of(expression)
    return f"({text})" if is_operator(expression) else text


def _constant(value: Computed | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Exact):
        return f"{value.value:f}" if value.scale else f"{value.value:f}BD"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}D"
    if isinstance(value, float):
        return f"CAST('{value_name(value)}' AS DOUBLE)"
    if isinstance(value, datetime):
        return f"CAST('{format_instant(value)}' AS TIMESTAMP)"
    assert not isinstance(value, tuple | dict), "an array is written as a call"
    return value_sql(value if isinstance(value, bool | str) else int(value))


def value_name(value: float) -> str:
    """NaN, Infinity or -Infinity."""
    return "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"


def _infix(call: Call) -> str:
    return f" {_INFIX[call.function]} ".join(map(operand_sql, call.arguments))


def _rlike(call: Call) -> str:
    """s RLIKE 'a+'; the parser takes RLIKE (...) for a call."""
    if is_operator(call.arguments[1]):
        return f"rlike({', '.join(map(sql_of, call.arguments))})"
    return " RLIKE ".join(map(operand_sql, call.arguments))


def _case(call: Call) -> str:
    *choices, otherwise = map(operand_sql, call.arguments)
    branches = [
        f"WHEN {condition} THEN {chosen}"
        for condition, chosen in zip(choices[::2], choices[1::2], strict=True)
    ]
    return f"CASE {' '.join(branches)} ELSE {otherwise} END"


def _trim(call: Call) -> str:
    text, *characters = map(operand_sql, call.arguments)
    if not characters:
        return f"{call.function}({text})"
    side = {"ltrim": "LEADING", "rtrim": "TRAILING"}.get(call.function, "BOTH")
    return f"trim({side} {characters[0]} FROM {text})"


def _case_of(call: Call) -> str:
    subject, *choices, otherwise = map(operand_sql, call.arguments)
    branches = [
        f"WHEN {value} THEN {chosen}"
        for value, chosen in zip(choices[::2], choices[1::2], strict=True)
    ]
    return f"CASE {subject} {' '.join(branches)} ELSE {otherwise} END"


def _like(call: Call) -> str:
    return " ESCAPE ".join(
        [" LIKE ".join(map(operand_sql, call.arguments[:2])), *map(operand_sql, call.arguments[2:])]
    )


def _with_unit(call: Call) -> str:
    """timestampadd(HOUR, 1, at)"""
    unit, *others = call.arguments
    assert isinstance(unit, Constant)
    return f"{call.function}({unit.value}, {', '.join(map(sql_of, others))})"


def _bracket(call: Call) -> str:
    """tags[0] and items[0]['name']"""
    inner, index = call.arguments
    return f"{operand_sql(inner)}[{sql_of(index)}]"


def _listed(call: Call) -> str:
    """x IN (...), x LIKE ANY (...)"""
    subject, *members = map(operand_sql, call.arguments)
    return f"{subject} {call.function.upper()} ({', '.join(members)})"


def _between(call: Call) -> str:
    subject, low, high = map(operand_sql, call.arguments)
    return f"{subject} BETWEEN {low} AND {high}"


def _over_elements(call: Call) -> str:
    """exists(tags, each -> each = 'x')"""
    array, body = call.arguments
    assert isinstance(body, Lambda)
    return f"{call.function}({sql_of(array)}, {_lambda(body)})"


def _lambda(found: Lambda) -> str:
    """Its variables have names that no attribute of its body has; one of several is a lambda of lambdas."""
    levels, body = [found.level], found.body
    while isinstance(body, Lambda):
        levels.append(body.level)
        body = body.body
    taken, numbers, names = _first_names(body), count(), []
    for level in levels:
        name = next(name for i in numbers if (name := f"each{i or ''}") not in taken)
        body = _replaced(body, Variable(level), AttributeOf(name))
        names.append(name)
    shown = names[0] if len(names) == 1 else f"({', '.join(names)})"
    return f"{shown} -> {sql_of(body)}"


def _first_names(expression: Expression) -> set[str]:
    if isinstance(expression, AttributeOf):
        return {expression.name.partition(".")[0]}
    parts = expression.arguments if isinstance(expression, Call) else ()
    if isinstance(expression, Lambda):
        parts = (expression.body,)
    return {name for part in parts for name in _first_names(part)}


def _replaced(expression: Expression, variable: Variable, other: Expression) -> Expression:
    if expression == variable:
        return other
    if isinstance(expression, Call):
        parts = tuple(_replaced(part, variable, other) for part in expression.arguments)
        return Call(expression.function, parts)
    if isinstance(expression, Lambda):
        return Lambda(expression.level, _replaced(expression.body, variable, other))
    return expression


_UNARY: dict[str, Callable[[Call], str]] = {
    "not": lambda call: f"NOT {operand_sql(call.arguments[0])}",
    "negative": lambda call: f"-{operand_sql(call.arguments[0])}",
    "bit_not": lambda call: f"~{operand_sql(call.arguments[0])}",
    "is null": lambda call: f"{operand_sql(call.arguments[0])} IS NULL",
}
_LISTS = ("in", "like any", "like all")
_OPERATORS = frozenset([*_INFIX, *_UNARY, *_LISTS, "like", "like escape", "rlike", "between"])
_WRITERS: dict[str, Callable[[Call], str]] = {
    **dict.fromkeys(_INFIX, _infix),
    **_UNARY,
    "case": _case,
    "case of": _case_of,
    "rlike": _rlike,
    "like": _like,
    "like escape": _like,
    "timestampadd": _with_unit,
    "timestampdiff": _with_unit,
    "between": _between,
    **dict.fromkeys(_LISTS, _listed),
    **dict.fromkeys(OVER_ELEMENTS, _over_elements),
    "trim": _trim,
    "ltrim": _trim,
    "rtrim": _trim,
    "element": _bracket,
    "field": _bracket,
}
