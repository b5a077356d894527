"""From the shape of a SQL expression to a template: sqlglot parses, we normalise.

sqlglot's tree is walked once. Negation is pushed down on the way, under three-valued logic: the
negation of a constraint is the opposite constraint, and neither selects a missing attribute. Every
node that is not understood, or has an argument that is not, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp

from palio.model.dnf import Tree, dnf, join
from palio.model.literals import BadLiteral
from palio.model.operators import OPPOSITE, Op
from palio.model.predicate import Constraint, trusted_constraint
from palio.model.templates import (
    CASTS,
    Leaf,
    Literals,
    MembersReader,
    OperandReader,
    Template,
    cast,
    constraint_leaf,
    fixed,
    like_leaf,
    literal,
    member,
    members,
    picker,
    set_leaf,
)
from palio.model.values import Type, Value


class Unsupported(Exception):
    """Something that the language does not have; `position` is an offset in the shape."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason, self.position = reason, position


def template(shape: str, literals: Literals, limit: int) -> Template:
    """Parse a shape. `literals` decide only comparisons of two literals, such as 1 = 1."""
    # In parentheses no word at the start can be taken for a statement.
    parsed: Any = sqlglot.parse_one(f"({shape}\n)", into=exp.Condition, dialect="spark")
    builder = _Builder(literals)
    tree = builder.tree(parsed, False)
    conjunctions = dnf(tree, limit)
    filters = tuple(picker(leaves, builder.plain) for leaves in conjunctions)
    return Template(tuple(builder.leaves), filters, builder.reusable)


_OPS: dict[type, Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
_CALLS: dict[type, Op] = {
    exp.StartsWith: Op.PREFIX,
    exp.EndsWith: Op.SUFFIX,
    exp.Contains: Op.CONTAINS,
}
_FLIPPED = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}
_TYPES = {
    "bool": Type.BOOL,
    "boolean": Type.BOOL,
    "int": Type.INT,
    "bigint": Type.INT,
    "float": Type.FLOAT,
    "double": Type.FLOAT,
    "string": Type.STRING,
    "time": Type.TIME,
    "timestamp": Type.TIME,
}
SUPPORTED = (
    "a predicate compares attributes with literals (= != < <= > >= <=>, IN, BETWEEN, LIKE, "
    "IS [NOT] NULL, startswith, endswith, contains) and joins them with AND, OR, NOT"
)


class _Builder:
    """Walks sqlglot's tree once and collects leaves."""

    def __init__(self, literals: Literals) -> None:
        self.literals = literals
        self.leaves: list[Leaf] = []
        self.reusable = True
        self.plain = True  # each leaf makes one constraint

    def tree(self, node: Any, negated: bool) -> Tree:
        """The tree of a boolean expression, or of its negation."""
        kind = type(node)
        if kind is exp.Paren:
            return self.tree(node.this, negated)
        if kind is exp.Not:
            return self.tree(node.this, not negated)
        if kind is exp.And or kind is exp.Or:
            parts = [self.tree(part, negated) for part in _chain(node, kind)]
            return join((kind is exp.And) is not negated, parts, _position(_first(node)))
        if kind is exp.Boolean:
            return bool(node.this) is not negated
        if kind is exp.Null:
            return False
        if kind in _OPS:
            return self.comparison(node, _OPS[kind], negated)
        visit = _VISITS.get(kind)
        if visit is not None:
            return visit(self, node, negated)
        name = _name(node)
        if name is not None:  # a boolean attribute stands alone
            return self.fixed(name, Op.EQ, not negated, Type.BOOL)
        raise _refused(node)

    def comparison(self, node: Any, op: Op, negated: bool) -> Tree:
        _only(node, "this", "expression")
        left, right = _bare(node.this), _bare(node.expression)
        if isinstance(left, exp.Typeof):
            return self.typed(left, op, right, negated)
        name = _name(left)
        if name is None and _name(right) is not None:
            left, right, op = right, left, _FLIPPED.get(op, op)
            name = _name(left)
        if name is not None:
            if _name(right) is not None:
                raise Unsupported(
                    f"{name!r} is compared with another attribute, {_name(right)!r}; "
                    "a constraint compares with a literal (strings take single quotes)",
                    _position(right),
                )
            if isinstance(right, exp.Null):
                return False
            return self.leaf(name, OPPOSITE[op] if negated else op, _operand(right))
        if isinstance(left, exp.Null) or isinstance(right, exp.Null):
            return False
        return self.constant(_operand(left), op, _operand(right)) is not negated

    def constant(self, left: OperandReader, op: Op, right: OperandReader) -> bool:
        """Two literals: 1 = 1. Its truth depends on them, so the shape cannot be kept."""
        self.reusable = False
        value = left.read(self.literals)
        made = constraint_leaf("literal", op, right)(self.literals)
        return isinstance(made, Constraint) and made.matches(value)

    def leaf(self, name: str, op: Op, operand: OperandReader) -> Tree:
        return self.add(constraint_leaf(name, op, operand))

    def fixed(self, name: str, op: Op, value: Value | None, type: Type | None) -> Tree:
        """A leaf without a literal."""
        made = trusted_constraint(name, op, value, type)
        return self.add(lambda _literals: made)

    def add(self, leaf: Leaf) -> Tree:
        self.leaves.append(leaf)
        return len(self.leaves) - 1

    def typed(self, call: Any, op: Op, right: Any, negated: bool) -> Tree:
        """typeof(x) = 'string': the attribute is there and of this type."""
        name = _attribute(call.this)
        if op not in (Op.EQ, Op.NE) or not isinstance(right, exp.Literal):
            raise Unsupported("typeof(x) is compared by = or != with a type", _position(call))
        self.reusable = False
        operand = _operand(right)
        wanted = _TYPES.get(str(operand.read(self.literals)).lower())
        if wanted is None:
            raise BadLiteral(f"no such type; there are {', '.join(Type)}", operand.slot)
        if (op is Op.EQ) is not negated:
            return self.fixed(name, Op.ANY, None, wanted)
        others = [self.fixed(name, Op.ANY, None, type) for type in Type if type is not wanted]
        return join(False, others, _position(call))

    def null_safe(self, node: Any, negated: bool) -> Tree:
        """x <=> 5 is never NULL: its negation selects a missing attribute too."""
        _only(node, "this", "expression")
        same = isinstance(node, exp.NullSafeEQ) is not negated
        left, right = _bare(node.this), _bare(node.expression)
        if _name(left) is None:
            left, right = right, left
        name = _attribute(left)
        if isinstance(right, exp.Null):
            return self.fixed(name, Op.ABSENT if same else Op.ANY, None, None)
        operand = _operand(right)
        if same:
            return self.leaf(name, Op.EQ, operand)
        parts = [self.leaf(name, Op.NE, operand), self.fixed(name, Op.ABSENT, None, None)]
        return join(False, parts, _position(node))

    def is_(self, node: Any, negated: bool) -> Tree:
        _only(node, "this", "expression")
        name, right = _attribute(_bare(node.this)), _bare(node.expression)
        if isinstance(right, exp.Null):
            return self.fixed(name, Op.ANY if negated else Op.ABSENT, None, None)
        if not isinstance(right, exp.Boolean):
            raise _refused(node)
        truth = bool(right.this)
        if not negated:
            return self.fixed(name, Op.EQ, truth, Type.BOOL)
        parts: list[Tree] = [
            self.fixed(name, Op.EQ, not truth, Type.BOOL),
            self.fixed(name, Op.ABSENT, None, None),
        ]
        return join(False, parts, _position(node))

    def between(self, node: Any, negated: bool) -> Tree:
        _only(node, "this", "low", "high")
        name = _attribute(_bare(node.this))
        low, high = _bare(node.args["low"]), _bare(node.args["high"])
        parts: list[Tree] = []
        for op, bound in ((Op.GE, low), (Op.LE, high)):
            null = isinstance(bound, exp.Null)
            parts.append(
                False if null else self.leaf(name, OPPOSITE[op] if negated else op, _operand(bound))
            )
        return join(not negated, parts, _position(node))

    def in_(self, node: Any, negated: bool) -> Tree:
        _only(node, "this", "expressions")
        name = _attribute(_bare(node.this))
        members = [_bare(member) for member in node.expressions]
        known = [member for member in members if not isinstance(member, exp.Null)]
        if not members:
            raise Unsupported("IN needs a list of literals", _position(node))
        if not known or (negated and len(known) < len(members)):
            return False
        operands = [_members(member) for member in known]
        self.plain = self.plain and not negated
        return self.add(set_leaf(name, operands, negated))

    def like(self, node: Any, negated: bool) -> Tree:
        escape = fixed("\\")
        if isinstance(node, exp.Escape):
            _only(node, "this", "expression")
            escape = _operand(node.expression)
            node = node.this
            if not isinstance(node, exp.Like):
                raise _refused(node)
        _only(node, "this", "expression", "negate")
        negated = negated is not bool(node.args.get("negate"))
        name, right = _attribute(_bare(node.this)), _bare(node.expression)
        if isinstance(right, exp.Null):
            return False
        return self.add(like_leaf(name, _operand(right), escape, negated))

    def call(self, node: Any, negated: bool) -> Tree:
        _only(node, "this", "expression")
        op = _CALLS[type(node)]
        name, right = _attribute(_bare(node.this)), _bare(node.expression)
        if isinstance(right, exp.Null):
            return False
        return self.leaf(name, OPPOSITE[op] if negated else op, _operand(right))


_VISITS: dict[type, Callable[[_Builder, Any, bool], Tree]] = {
    exp.NullSafeEQ: _Builder.null_safe,
    exp.NullSafeNEQ: _Builder.null_safe,
    exp.Is: _Builder.is_,
    exp.Between: _Builder.between,
    exp.In: _Builder.in_,
    exp.Like: _Builder.like,
    exp.Escape: _Builder.like,
    exp.StartsWith: _Builder.call,
    exp.EndsWith: _Builder.call,
    exp.Contains: _Builder.call,
}


def _operand(node: Any) -> OperandReader:
    """How to read a literal: plain, negative, or cast to a type."""
    node = _bare(node)
    if isinstance(node, exp.Boolean):
        return fixed(bool(node.this))
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        return _cast(node)
    inner, negative = _unsigned(node)
    if isinstance(inner, exp.Literal):
        return literal(_slot(inner), negative)
    if isinstance(inner, exp.Null):
        raise Unsupported("NULL cannot stand here", _position(inner))
    raise _refused(node)


def _slot(node: Any) -> int:
    """The slot that a literal of the shape stands for; nothing else may look like one."""
    text = node.this
    if text.isascii() and text.isdigit():
        return int(text)
    raise Unsupported("this cannot be read", _position(node))


def _unsigned(node: Any) -> tuple[Any, bool]:
    negative = False
    while isinstance(node, exp.Neg):
        node, negative = _bare(node.this), not negative
    return node, negative


def _cast(node: Any) -> OperandReader:
    _only(node, "this", "to", "_type")
    wanted = node.args["to"].this.name
    if wanted not in CASTS:
        raise Unsupported(
            f"literals of type {wanted} are not supported; there are TIMESTAMP, DATE, DOUBLE, "
            "BIGINT and STRING",
            _position(node),
        )
    return cast(_slot(node.this), wanted)


def _members(node: Any) -> MembersReader:
    """A member of an IN list; its slot may hold many."""
    inner, negative = _unsigned(node)
    if isinstance(inner, exp.Literal):
        return members(_slot(inner), negative)
    return member(_operand(node))


def _chain(node: Any, kind: Any) -> list[Any]:
    """The operands of a chain of one operator: a AND b AND c, however long."""
    parts: list[Any] = []
    while type(node) is kind:
        parts.append(node.expression)
        node = node.this
    parts.append(node)
    return parts[::-1]


def _first(node: Any) -> Any:
    """The operand of a tree of ANDs and ORs that stands first: its position is that of the tree."""
    while isinstance(node, (exp.And, exp.Or, exp.Paren, exp.Not)):
        node = node.this
    return node


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _name(node: Any) -> str | None:
    """The attribute that a node names; its parts are joined by dots."""
    if isinstance(node, (exp.Column, exp.Dot)):
        parts = node.parts
    else:
        return None
    if not all(isinstance(part, exp.Identifier) for part in parts):
        return None
    return ".".join(part.this for part in parts)


def _attribute(node: Any) -> str:
    name = _name(node)
    if name is None:
        raise _refused(node)
    if not name:
        raise Unsupported("the name of the attribute is empty", _position(node))
    return name


def _only(node: Any, *allowed: str) -> None:
    """Refuse a node with arguments that we would otherwise ignore."""
    if any(value for key, value in node.args.items() if key not in allowed):
        raise _refused(node)


def _refused(node: Any) -> Unsupported:
    return Unsupported(f"{type(node).__name__} cannot stand here: {SUPPORTED}", _position(node))


def _position(node: Any) -> int:
    """The first character of a node that sqlglot remembers; our own parenthesis is not counted."""
    best: int | None = None
    for part in node.walk():
        start = part.meta.get("start")
        if start is not None and (best is None or start < best):
            best = start
    return max(0, (best or 0) - 1)
