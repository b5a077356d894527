"""Nodes of sqlglot's tree: what they name, where they stand, and what they are called in errors."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from palio.model.expressions.near_forms import near_form
from palio.model.expressions.refusals import NO_QUERY
from palio.model.expressions.words import PATH_MARK, called
from palio.model.shapes import SUPPORTED, Unsupported


def chain(node: Any, kind: Any) -> list[Any]:
    """The operands of a chain of one operator: a AND b AND c, however long."""
    parts: list[Any] = []
    while type(node) is kind:
        parts.append(node.expression)
        node = node.this
    parts.append(node)
    return parts[::-1]


def first_operand(node: Any) -> Any:
    """The operand of a tree of ANDs and ORs that stands first: its position is that of the tree."""
    while isinstance(node, (exp.And, exp.Or, exp.Paren, exp.Not)):
        node = node.this
    return node


def bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def name_of(node: Any) -> str | None:
    """The attribute that a node names; its parts are joined by dots."""
    parts = _parts(node)
    name = None if parts is None else ".".join(parts)
    return None if name is None or PATH_MARK in name else name  # body:a.b is no name


def _parts(node: Any) -> list[str] | None:
    """a.b.c, which sqlglot has as a column with a table, and fields behind it."""
    if isinstance(node, exp.Column):
        found = node.parts
    elif isinstance(node, exp.Dot):
        before = _parts(node.this)
        if before is None or not isinstance(node.expression, exp.Identifier):
            return None
        return [*before, node.expression.this]
    else:
        return None
    if not all(isinstance(part, exp.Identifier) for part in found):
        return None
    return [part.this for part in found]


def depends(node: Any) -> bool:
    """Does a node name an attribute?"""
    return any(isinstance(one, exp.Column) for one in node.walk())


def only(node: Any, *allowed: str) -> None:
    """Refuse a node with arguments that we would otherwise ignore."""
    if any(value for key, value in node.args.items() if key not in allowed):
        raise refused(node)


def refused(node: Any) -> Unsupported:
    if node.find(exp.Query):
        return Unsupported(NO_QUERY, position_of(node))
    if near := near_form(node):
        return Unsupported(near, position_of(node))
    return Unsupported(f"{described(node)} cannot stand here: {SUPPORTED}", position_of(node))


def described(node: Any) -> str:
    """A node in the words of SQL."""
    if isinstance(node, exp.Anonymous):
        return f"the function {called(str(node.this))}"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}"
    if isinstance(node, exp.Literal):
        return "a literal"
    return _DESCRIBED.get(type(node), "this")


_DESCRIBED: dict[type, str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "DIV",
    exp.Neg: "a minus sign", exp.DPipe: "||", exp.Tuple: "a list", exp.Subquery: "a query",
    exp.Select: "a query", exp.Interval: "an interval", exp.Bracket: "an element in brackets",
    exp.ILike: "ILIKE", exp.RegexpLike: "RLIKE", exp.Lambda: "a lambda",
}  # fmt: skip


def position_of(node: Any) -> int:
    """The first character of a node that sqlglot remembers; our own parenthesis is not counted."""
    best: int | None = None
    for part in node.walk():
        start = part.meta.get("start")
        if start is not None and (best is None or start < best):
            best = start
    return max(0, (best or 0) - 1)
