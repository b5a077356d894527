"""Reading single nodes of sqlglot's tree: names, literals, constants, and where they stand."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from palio.model.expressions.reading import (
    NotAnExpression,
    has_attributes,
    read_expression,
)
from palio.model.expressions.tree import Expression
from palio.model.templates import (
    CASTS,
    MembersReader,
    OperandReader,
    cast,
    constant,
    fixed,
    literal,
    member,
    members,
)


class Unsupported(Exception):
    """Something that the language does not have; `position` is an offset in the shape."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason, self.position = reason, position


SUPPORTED = (
    "a predicate compares attributes with literals (= != < <= > >= <=>, IN, BETWEEN, LIKE, "
    "IS [NOT] NULL, startswith, endswith, contains) and joins them with AND, OR, NOT"
)


def operand_of(node: Any) -> OperandReader:
    """How to read a literal: plain, negative, or cast to a type."""
    node = bare(node)
    if isinstance(node, exp.Boolean):
        return fixed(bool(node.this))
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return cast_literal(node)
    inner, negative = unsigned(node)
    if isinstance(inner, exp.Literal):
        return literal(slot(inner), negative)
    if isinstance(inner, exp.Null):
        raise Unsupported("NULL cannot stand here", position_of(inner))
    return constant(constant_expression(node))


def constant_expression(node: Any) -> Expression:
    """What literals alone compute: 2 + 3, lower('ABC')."""
    found = expression_of(node)
    if has_attributes(found):
        computed = next((one for one in node.walk() if _is_computed(one)), node)
        raise Unsupported(
            f"{described(computed)} is applied to an attribute; only literals can be computed: compare "
            "the attribute itself, or publish what is computed as an attribute",
            position_of(computed),
        )
    return found


def _is_computed(node: Any) -> bool:
    """A function or an operator, of an attribute."""
    if not isinstance(node, exp.Func | exp.Binary | exp.Unary | exp.Case):
        return False
    if isinstance(node, exp.Paren | exp.Predicate | exp.Connector | exp.Not):
        return False
    return any(name_of(one) is not None for one in node.walk())


def expression_of(node: Any) -> Expression:
    try:
        return read_expression(node, name_of)
    except NotAnExpression as error:
        if error.reason:
            raise Unsupported(error.reason, position_of(error.node)) from None
        raise refused(error.node) from None


def slot(node: Any) -> int:
    """The slot that a literal of the shape stands for; nothing else may look like one."""
    text = node.this
    if text.isascii() and text.isdigit():
        return int(text)
    raise Unsupported("this cannot be read", position_of(node))


def unsigned(node: Any) -> tuple[Any, bool]:
    negative = False
    while isinstance(node, exp.Neg):
        node, negative = bare(node.this), not negative
    return node, negative


def cast_literal(node: Any) -> OperandReader:
    only(node, "this", "to", "_type")
    wanted = node.args["to"].this.name
    if wanted not in CASTS:
        raise Unsupported(
            f"literals of type {wanted} are not supported; there are TIMESTAMP, DATE, DOUBLE, "
            "BIGINT and STRING",
            position_of(node),
        )
    return cast(slot(node.this), wanted)


def members_of(node: Any) -> MembersReader:
    """A member of an IN list; its slot may hold many."""
    inner, negative = unsigned(node)
    if isinstance(inner, exp.Literal):
        return members(slot(inner), negative)
    return member(operand_of(node))


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
    if isinstance(node, (exp.Column, exp.Dot)):
        parts = node.parts
    else:
        return None
    if not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    return ".".join(part.this for part in parts)


def attribute_of(node: Any) -> str:
    name = name_of(node)
    if name is None:
        raise refused(node)
    if not name:
        raise Unsupported("the name of the attribute is empty", position_of(node))
    return name


def only(node: Any, *allowed: str) -> None:
    """Refuse a node with arguments that we would otherwise ignore."""
    if any(value for key, value in node.args.items() if key not in allowed):
        raise refused(node)


def refused(node: Any) -> Unsupported:
    return Unsupported(f"{described(node)} cannot stand here: {SUPPORTED}", position_of(node))


def described(node: Any) -> str:
    """A node in the words of SQL."""
    if isinstance(node, exp.Anonymous):
        return f"the function {node.this}"
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
