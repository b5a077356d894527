r"""What only Spark computes, as expressions: calls of its functions, and the rest of its syntax.

    levenshtein(a, lower(b))       Call levenshtein ── AttributeOf a, Call lower
    x & 1                          Call "sql:\0 & \0" ── AttributeOf x, Constant 1
    ts + INTERVAL 1 DAY            Call add ── AttributeOf ts, Call "sql:INTERVAL \0 DAY" ── Constant 1

The name of such syntax is its text with a zero character for each argument. Nothing here is computed
outside Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.tree import Call, Expression, Lambda

SYNTAX = "sql:"
SPARK_TAKES = "palio.spark.compile and palio.spark.forward take it, for messages in wide columns"
_FORMS = frozenset({"and", "or", "not", "is null", "coalesce", "case", "case of"})
_OVER_ELEMENTS = frozenset({"exists", "forall", "filter", "transform"})
_BEFORE_FILLING = frozenset({"interval", "plus interval", "minus interval"})
"""What an expression has instead of other calls until its slots are filled; see `simplifying`."""


def is_foreign(expression: Expression) -> bool:
    """Does only Spark compute it?"""
    return foreign_function(expression) is not None


def foreign_function(expression: Expression) -> str | None:
    """What of it only Spark computes, in words; None: nothing."""
    return next(_foreign_functions(expression), None)


def is_unknown(function: str) -> bool:
    """Is it none of the table of functions?"""
    known = (FUNCTIONS, _FORMS, _OVER_ELEMENTS, _BEFORE_FILLING)
    return not any(function in some for some in known)


def _foreign_functions(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Lambda):
        yield from _foreign_functions(expression.body)
    if not isinstance(expression, Call):
        return
    name = expression.function
    if name.startswith(SYNTAX):
        shown = name.removeprefix(SYNTAX).replace("\0", "...")
        yield f"{shown!r}"
    elif is_unknown(name):
        yield f"the function {name}"
    for argument in expression.arguments:
        yield from _foreign_functions(argument)


def syntax_sql(function: str, arguments: list[str]) -> str:
    """The text of syntax with its arguments."""
    first, *pieces = function.removeprefix(SYNTAX).split("\0")
    return first + "".join(
        argument + piece for argument, piece in zip(arguments, pieces, strict=True)
    )
