"""Reading what only Spark computes: calls of functions that the table has not, and other syntax.

sqlglot writes such syntax in Spark's words. Where it would write something else than it has read (TIME as
TIMESTAMP, N'...' as a plain string), the syntax is refused: what is written must be read as the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from palio.model.expressions.foreign import SYNTAX
from palio.model.expressions.refusals import is_refused
from palio.model.expressions.tree import Call, Expression
from palio.model.expressions.words import FUNCTION_WORDS, called, unhidden
from palio.model.sql_text import name_sql

_ZERO = "\0"
_DIGITS = re.compile(r"[0-9A-Fa-f]*")
_PLACE = re.compile(r"(?:[`']palio |\b7734)(\d+)(?:[`']|\b)")
_REFUSED = (
    exp.Query, exp.Subquery, exp.Window, exp.Star, exp.Placeholder, exp.Parameter, exp.Lambda,
    exp.Command, exp.Table, exp.AggFunc, exp.Tuple, exp.Literal, exp.Identifier, exp.Alias, exp.PropertyEQ,
    exp.Typeof, exp.Distinct, exp.Filter, exp.Column, exp.SessionParameter, exp.Ordered,
    exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentUser, exp.Rand, exp.Any, exp.All,
)  # fmt: skip


_ARGUMENTS_MAX = 256
"""Replacing one among many takes time that grows with their number."""


def foreign_call(node: Any, read: Callable[[Any], Expression]) -> Expression | None:
    """What a node says that is not in the table of functions; None: nothing that one message has. `read`
    reads arguments, lambdas too."""
    if isinstance(node, exp.Anonymous):
        return _named_call(node, read)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Anonymous):
        return _qualified_call(node, read)
    if isinstance(node, exp.HexString):
        return _bytes(str(node.this))
    if isinstance(node, _REFUSED) or node.find(*_REFUSED[:4], exp.AggFunc):
        return None
    if len(list(node.iter_expressions())) > _ARGUMENTS_MAX:
        return None
    arguments: list[Expression] = []
    placed = _with_places(node.copy(), node, read, arguments)
    text = placed.sql(dialect="spark")
    order = [int(found) for found in _PLACE.findall(text)]
    if sorted(order) != list(range(len(arguments))) or not _is_read_as(text, placed):
        return None
    pieces = _PLACE.split(unhidden(text))[::2]
    return _syntax(pieces, [arguments[place] for place in order])


def _syntax(pieces: list[str], arguments: list[Expression]) -> Expression | None:
    if any(_ZERO in piece for piece in pieces):
        return None
    return Call(SYNTAX + _ZERO.join(pieces), tuple(arguments))


def _is_read_as(text: str, node: Any) -> bool:
    """Is the text of a node read as that node?"""
    try:
        found = sqlglot.parse_one(f"({text})", into=exp.Condition, dialect="spark").this
    except (SqlglotError, RecursionError):
        return False
    return bool(_plain(found) == _plain(node))


def _plain(node: Any) -> Any:
    """Without what the parser adds: x::INT and TRY_CAST are CAST where nothing fails."""
    found = node.copy()
    for cast in list(found.find_all(exp.Cast)):
        plain = exp.Cast(this=cast.this, to=cast.args["to"])
        found = plain if cast is found else (cast.replace(plain), found)[1]
    return found


def _bytes(digits: str) -> Expression | None:
    """X'FF'"""
    return Call(f"{SYNTAX}X'{digits.upper()}'", ()) if _DIGITS.fullmatch(digits) else None


def _named_call(node: Any, read: Callable[[Any], Expression]) -> Expression | None:
    name, given = called(str(node.this)).lower(), node.expressions
    if is_refused(name):
        return None
    if name == "struct" and any(isinstance(one, exp.Alias) for one in given):
        fields = [f" AS {name_sql(one.alias)}" if one.alias else "" for one in given]
        inner = [one.this if isinstance(one, exp.Alias) else one for one in given]
        pieces = [f"{before}, " for before in fields]
        pieces = ["struct(", *pieces[:-1], f"{fields[-1]})"]
        return _syntax(pieces, list(map(read, inner)))
    if name.upper() in FUNCTION_WORDS:  # with other arguments than the table's: floor(x, 2)
        name = f"{SYNTAX}{name}({', '.join(_ZERO * len(given))})"
    return Call(name, tuple(map(read, given)))


def _qualified_call(node: Any, read: Callable[[Any], Expression]) -> Expression | None:
    """own.function(x), a function of a schema."""
    schema: list[Any] = []
    left = node.this
    while isinstance(left, exp.Dot):
        schema.insert(0, left.expression)
        left = left.this
    schema.insert(0, left)
    if not all(isinstance(part, exp.Identifier) for part in schema):
        return None
    given = node.expression.expressions
    name = ".".join([*(name_sql(part.this) for part in schema), called(str(node.expression.this))])
    places = ", ".join(_ZERO * len(given))
    return _syntax(f"{name}({places})".split(_ZERO), list(map(read, given)))


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
        own.replace(_place(original, len(arguments) - 1))
    return copy


def _place(original: Any, number: int) -> Any:
    """What stands for an argument: something that may stand where it stands."""
    if isinstance(original.parent, exp.DataTypeParam):
        return exp.Literal.number(f"7734{number}")
    if isinstance(original, exp.Literal):  # what it must be in an interval
        return exp.Literal.string(f"palio {number}")
    return exp.column(exp.to_identifier(f"palio {number}", quoted=True))
