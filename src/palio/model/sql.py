"""From the shape of a SQL expression to a template: sqlglot parses, we normalise.

sqlglot's tree is walked once. Negation is pushed down on the way, under three-valued logic: the
negation of a constraint is the opposite constraint, and neither selects a missing attribute. Every
node that is not understood, or has an argument that is not, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp

from palio.model.dnf import Tree, dnf, join
from palio.model.literals import BadLiteral
from palio.model.operators import OPPOSITE, Op
from palio.model.predicate import trusted_constraint
from palio.model.sql_nodes import (
    Unsupported,
    attribute_of,
    bare,
    chain,
    constant_expression,
    first_operand,
    members_of,
    name_of,
    only,
    operand_of,
    position_of,
    refused,
)
from palio.model.templates import (
    Leaf,
    Literals,
    OperandReader,
    Template,
    constant,
    constraint_leaf,
    fixed,
    like_leaf,
    picker,
    set_leaf,
)
from palio.model.values import Type, Value


def template(shape: str, literals: Literals, limit: int) -> Template:
    """Parse a shape. `literals` decide only comparisons of two literals, such as 1 = 1."""
    # In parentheses no word at the start can be taken for a statement.
    written = _XOR.sub(lambda found: found[0] if found[0][0] == "`" else ":= ", shape)
    parsed: Any = sqlglot.parse_one(f"({written}\n)", into=exp.Condition, dialect="spark")
    builder = _Builder(literals)
    tree = builder.tree(parsed, False)
    conjunctions = dnf(tree, limit)
    filters = tuple(picker(leaves, builder.plain) for leaves in conjunctions)
    return Template(tuple(builder.leaves), filters, builder.reusable)


_XOR = re.compile(r"`(?:[^`]|``)*`|\bXOR\b", re.IGNORECASE)
"""Spark SQL has none. The parser reads it as an assignment, which binds more loosely than OR; whoever
writes XOR beside OR is asked for parentheses."""
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
            parts = [self.tree(part, negated) for part in chain(node, kind)]
            return join((kind is exp.And) is not negated, parts, position_of(first_operand(node)))
        if kind is exp.Boolean:
            return bool(node.this) is not negated
        if kind is exp.Null:
            return False
        if kind in _OPS:
            return self.comparison(node, _OPS[kind], negated)
        visit = _VISITS.get(kind)
        if visit is not None:
            return visit(self, node, negated)
        name = name_of(node)
        if name is not None:  # a boolean attribute stands alone
            return self.fixed(name, Op.EQ, not negated, Type.BOOL)
        return self.constant(node, negated)

    def comparison(self, node: Any, op: Op, negated: bool) -> Tree:
        only(node, "this", "expression")
        left, right = bare(node.this), bare(node.expression)
        if isinstance(left, exp.Typeof):
            return self.typed(left, op, right, negated)
        name = name_of(left)
        if name is None and name_of(right) is not None:
            left, right, op = right, left, _FLIPPED.get(op, op)
            name = name_of(left)
        if name is not None:
            if name_of(right) is not None:
                raise Unsupported(
                    f"{name!r} is compared with another attribute, {name_of(right)!r}; "
                    "a constraint compares with a literal (strings take single quotes)",
                    position_of(right),
                )
            if isinstance(right, exp.Null):
                return False
            return self.leaf(name, OPPOSITE[op] if negated else op, operand_of(right))
        return self.constant(node, negated)

    def constant(self, node: Any, negated: bool) -> bool:
        """Literals alone: 1 = 1. The truth depends on them, so the shape cannot be kept."""
        found = constant_expression(node)
        self.reusable = False
        return constant(found).read(self.literals) is (not negated)

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
        name = attribute_of(call.this)
        if op not in (Op.EQ, Op.NE) or not isinstance(right, exp.Literal):
            raise Unsupported("typeof(x) is compared by = or != with a type", position_of(call))
        self.reusable = False
        operand = operand_of(right)
        wanted = _TYPES.get(str(operand.read(self.literals)).lower())
        if wanted is None:
            raise BadLiteral(f"no such type; there are {', '.join(Type)}", operand.slot)
        if (op is Op.EQ) is not negated:
            return self.fixed(name, Op.ANY, None, wanted)
        others = [self.fixed(name, Op.ANY, None, type) for type in Type if type is not wanted]
        return join(False, others, position_of(call))

    def null_safe(self, node: Any, negated: bool) -> Tree:
        """x <=> 5 is never NULL: its negation selects a missing attribute too."""
        only(node, "this", "expression")
        same = isinstance(node, exp.NullSafeEQ) is not negated
        left, right = bare(node.this), bare(node.expression)
        if name_of(left) is None:
            left, right = right, left
        name = attribute_of(left)
        if isinstance(right, exp.Null):
            return self.fixed(name, Op.ABSENT if same else Op.ANY, None, None)
        operand = operand_of(right)
        if same:
            return self.leaf(name, Op.EQ, operand)
        parts = [self.leaf(name, Op.NE, operand), self.fixed(name, Op.ABSENT, None, None)]
        return join(False, parts, position_of(node))

    def is_(self, node: Any, negated: bool) -> Tree:
        only(node, "this", "expression")
        name, right = attribute_of(bare(node.this)), bare(node.expression)
        if isinstance(right, exp.Null):
            return self.fixed(name, Op.ANY if negated else Op.ABSENT, None, None)
        if not isinstance(right, exp.Boolean):
            raise refused(node)
        truth = bool(right.this)
        if not negated:
            return self.fixed(name, Op.EQ, truth, Type.BOOL)
        parts: list[Tree] = [
            self.fixed(name, Op.EQ, not truth, Type.BOOL),
            self.fixed(name, Op.ABSENT, None, None),
        ]
        return join(False, parts, position_of(node))

    def between(self, node: Any, negated: bool) -> Tree:
        only(node, "this", "low", "high")
        name = attribute_of(bare(node.this))
        low, high = bare(node.args["low"]), bare(node.args["high"])
        parts: list[Tree] = []
        for op, bound in ((Op.GE, low), (Op.LE, high)):
            null = isinstance(bound, exp.Null)
            parts.append(
                False
                if null
                else self.leaf(name, OPPOSITE[op] if negated else op, operand_of(bound))
            )
        return join(not negated, parts, position_of(node))

    def in_(self, node: Any, negated: bool) -> Tree:
        only(node, "this", "expressions")
        if isinstance(node.this, exp.Tuple):
            return self.tuples(node, negated)
        name = attribute_of(bare(node.this))
        members = [bare(member) for member in node.expressions]
        known = [member for member in members if not isinstance(member, exp.Null)]
        if not members:
            raise Unsupported("IN needs a list of literals", position_of(node))
        if not known or (negated and len(known) < len(members)):
            return False
        operands = [members_of(member) for member in known]
        self.plain = self.plain and not negated
        return self.add(set_leaf(name, operands, negated))

    def like(self, node: Any, negated: bool) -> Tree:
        escape = fixed("\\")
        if isinstance(node, exp.Escape):
            only(node, "this", "expression")
            escape = operand_of(node.expression)
            node = node.this
            if not isinstance(node, exp.Like):
                raise refused(node)
        only(node, "this", "expression", "negate")
        is_opposite = bool(node.args.get("negate"))
        name, right = attribute_of(bare(node.this)), bare(node.expression)
        if isinstance(right, exp.Any | exp.All):
            listed = bare(right.this)
            patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
            parts = [
                self.pattern(name, one, escape, is_opposite is not negated) for one in patterns
            ]
            return join(isinstance(right, exp.All) is not negated, parts, position_of(node))
        return self.pattern(name, right, escape, is_opposite is not negated)

    def pattern(self, name: str, node: Any, escape: OperandReader, negated: bool) -> Tree:
        if isinstance(node, exp.Null):
            return False
        return self.add(like_leaf(name, operand_of(node), escape, negated))

    def xor(self, node: Any, negated: bool) -> Tree:
        """One of the two, and not both."""
        sides = [node.this, node.expression]
        if any(isinstance(side, exp.Or) for side in sides):
            raise Unsupported("XOR beside OR needs parentheses", position_of(first_operand(node)))
        a, b = [exp.Column(this=one) if isinstance(one, exp.Identifier) else one for one in sides]
        parts = [
            join(
                True,
                [self.tree(a, False), self.tree(b, not negated)],
                position_of(first_operand(a)),
            ),
            join(True, [self.tree(a, True), self.tree(b, negated)], position_of(first_operand(a))),
        ]
        return join(False, parts, position_of(first_operand(node)))

    def null_test(self, node: Any, negated: bool) -> Tree:
        """isnull(x) and isnotnull(x)."""
        called = str(node.this).lower()
        if called not in ("isnull", "isnotnull") or len(node.expressions) != 1:
            return self.constant(node, negated)
        name = name_of(bare(node.expressions[0]))
        if name is None:
            return self.constant(node, negated)
        is_absent = (called == "isnull") is not negated
        return self.fixed(name, Op.ABSENT if is_absent else Op.ANY, None, None)

    def tuples(self, node: Any, negated: bool) -> Tree:
        """(a, b) IN ((1, 2), (3, 4))."""
        names = [bare(one) for one in node.this.expressions]
        parts = []
        for member in node.expressions:
            values = member.expressions if isinstance(member, exp.Tuple) else []
            if len(values) != len(names):
                raise Unsupported(
                    f"each member of this list has {len(names)} values", position_of(node)
                )
            pairs = [
                self.comparison(exp.EQ(this=one, expression=value), Op.EQ, negated)
                for one, value in zip(names, values, strict=True)
            ]
            parts.append(join(not negated, pairs, position_of(node)))
        return join(negated, parts, position_of(node))

    def call(self, node: Any, negated: bool) -> Tree:
        only(node, "this", "expression")
        op = _CALLS[type(node)]
        if name_of(bare(node.this)) is None:
            return self.constant(node, negated)
        name, right = attribute_of(bare(node.this)), bare(node.expression)
        if isinstance(right, exp.Null):
            return False
        return self.leaf(name, OPPOSITE[op] if negated else op, operand_of(right))


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
    exp.PropertyEQ: _Builder.xor,
    exp.Anonymous: _Builder.null_test,
}
