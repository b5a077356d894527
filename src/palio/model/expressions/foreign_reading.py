"""Reading what only Spark computes: calls of functions that the table has not, and other syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from palio.model.expressions.foreign import SYNTAX
from palio.model.expressions.tree import Call, Expression
from palio.model.expressions.words import FUNCTION_WORDS, called, unhidden

_ZERO = "\0"
_PLACE = re.compile(r"[`'](?:palio (\d+))[`']")
_REFUSED = (
    exp.Query, exp.Subquery, exp.Window, exp.Star, exp.Placeholder, exp.Parameter, exp.Lambda,
    exp.Command, exp.Table, exp.AggFunc, exp.Tuple, exp.Literal, exp.Identifier, exp.Alias, exp.PropertyEQ,
    exp.Typeof, exp.Distinct, exp.Filter, exp.Column, exp.SessionParameter, exp.Ordered, exp.Collate,
    exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentUser, exp.Rand, exp.Any, exp.All,
)  # fmt: skip


_ARGUMENTS_MAX = 256
"""Replacing one among many takes time that grows with their number."""


def foreign_call(node: Any, read: Callable[[Any], Expression]) -> Expression | None:
    """What a node says that is not in the table of functions; None: nothing that one message has. `read`
    reads arguments, lambdas too."""
    if isinstance(node, exp.Anonymous):
        name, given = called(str(node.this)).lower(), node.expressions
        if (
            name.upper() in FUNCTION_WORDS
        ):  # with other arguments than those of the table: floor(x, 2)
            name = f"{SYNTAX}{name}({', '.join(_ZERO * len(given))})"
        return Call(name, tuple(map(read, given)))
    if isinstance(node, _REFUSED) or node.find(*_REFUSED[:4], exp.AggFunc):
        return None
    if len(list(node.iter_expressions())) > _ARGUMENTS_MAX:
        return None
    arguments: list[Expression] = []
    text = unhidden(_with_places(node.copy(), node, read, arguments).sql(dialect="spark"))
    order = [int(found) for found in _PLACE.findall(text)]
    if sorted(order) != list(range(len(arguments))):
        return None
    pieces = _PLACE.split(text)[::2]
    return Call(SYNTAX + "\0".join(pieces), tuple(arguments[place] for place in order))


def _with_places(
    copy: Any, node: Any, read: Callable[[Any], Expression], arguments: list[Expression]
) -> Any:
    """The copy of a node with numbered places where values stand, which are read."""
    pairs = zip(list(copy.iter_expressions()), list(node.iter_expressions()), strict=True)
    for own, original in pairs:
        if isinstance(original, exp.DataType | exp.DataTypeParam | exp.Var | exp.Identifier):
            _with_places(own, original, read, arguments)
            continue
        arguments.append(read(original))
        place: Any = exp.to_identifier(f"palio {len(arguments) - 1}", quoted=True)
        if isinstance(original, exp.Literal):  # what it must be in an interval
            place = exp.Literal.string(place.this)
        own.replace(place)
    return copy
