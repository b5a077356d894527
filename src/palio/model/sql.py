"""From sqlglot's tree of a SQL expression to a template: what each condition asks, in normal form.

The tree is walked once. Negation is pushed down on the way, under three-valued logic: the negation
of a constraint is the opposite constraint, and neither selects a missing attribute. A condition
that compares with literals becomes a constraint on an attribute or on an expression; any other
condition is an expression itself, which must be TRUE, or FALSE where it is negated. Every node that
is not understood, or has an argument that is not, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from palio.model.dnf import Tree, dnf, join
from palio.model.expressions.membership import MEMBER_CONDITIONS, may_ask_for_members
from palio.model.expressions.reading import is_interval
from palio.model.expressions.words import called
from palio.model.literals import BadLiteral
from palio.model.operators import OPPOSITE, Op
from palio.model.shapes import Unsupported
from palio.model.sql_nodes import TreeReader
from palio.model.sql_tree import (
    bare,
    chain,
    depends,
    first_operand,
    only,
    position_of,
    refused,
)
from palio.model.templates import (
    Leaf,
    Literals,
    OperandReader,
    Subject,
    Template,
    constraint_leaf,
    fixed,
    fixed_leaf,
    like_leaf,
    members_leaf,
    on,
    picker,
    set_leaf,
)
from palio.model.values import Type, Value


def template(
    tree: Any, literals: Literals, limit: int, nodes: TreeReader | None = None
) -> Template:
    """The template of a parsed shape. `literals` decide only comparisons of two literals: 1 = 1."""
    reader = nodes or TreeReader()
    reader.read.nodes_max = max(NODES_LEAST, limit * NODES_PER_FILTER)
    builder = _Builder(literals, reader)
    conjunctions = dnf(builder.tree(tree, False), limit)
    filters = tuple(picker(leaves, builder.plain) for leaves in conjunctions)
    return Template(
        tuple(builder.leaves), filters, builder.reusable, reader.read.repeated(), builder.can_split
    )


NODES_PER_FILTER = 64
"""Of the limit: how many parts the expressions have that are read. A list repeats what stands before it:
`x + y IN (a, b, c)` has x + y thrice."""
NODES_LEAST = 20_000
"""What a predicate may have, whatever the limit."""

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
    "bool": Type.BOOL, "boolean": Type.BOOL, "int": Type.INT, "bigint": Type.INT, "float": Type.FLOAT,
    "double": Type.FLOAT, "string": Type.STRING, "time": Type.TIME, "timestamp": Type.TIME,
}  # fmt: skip


class _Builder:
    """Walks sqlglot's tree once and collects leaves."""

    def __init__(self, literals: Literals, nodes: TreeReader) -> None:
        self.literals, self.nodes = literals, nodes
        self.leaves: list[Leaf] = []
        self.reusable = True
        self.known: dict[tuple[int, bool], Tree] = {}  # of XOR, which asks for each side twice
        self.plain = True  # each leaf makes one constraint
        self.can_split = False  # some leaf makes Alternatives

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
        if kind is not exp.PropertyEQ and self.nodes.is_collated(node):
            return self.condition(node, negated)
        if kind in _OPS:
            return self.comparison(node, _OPS[kind], negated)
        visit = _VISITS.get(kind)
        if visit is not None:
            return visit(self, node, negated)
        return self.condition(node, negated)

    def condition(self, node: Any, negated: bool) -> Tree:
        """An expression that stands alone: TRUE, or FALSE where it is negated."""
        if depends(node):
            subject = self.nodes.subject(node)
            if not negated and may_ask_for_members(subject):
                self.can_split = True
                return self.add(members_leaf(subject, self.nodes.zone))
            return self.fixed(subject, Op.EQ, not negated, Type.BOOL)
        self.reusable = False  # literals alone: the truth depends on them
        found = self.nodes.constant(node).read(self.literals)
        if found is not None and not isinstance(found, bool):
            raise Unsupported(
                "a condition is TRUE or FALSE, and this is a value", position_of(node)
            )
        return found is (not negated)

    def comparison(self, node: Any, op: Op, negated: bool) -> Tree:
        only(node, "this", "expression")
        left, right = bare(node.this), bare(node.expression)
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and op in _EQUALITY:
            listed = exp.In(this=left, expressions=[right])
            return self.tuples(listed, negated is (op is Op.EQ))
        if isinstance(left, exp.Typeof):
            return self.typed(left, op, right, negated)
        if not depends(left):
            left, right, op = right, left, _FLIPPED.get(op, op)
        if not depends(left) or self.nodes.depends(right) or isinstance(right, exp.Array):
            return self.condition(node, negated)
        if isinstance(right, exp.Null):
            return False
        if is_interval(right):
            elapsed = self.nodes.expression(left, beside=right)
            limit = self.nodes.constant(right, beside=right)
            return self.leaf(elapsed, OPPOSITE[op] if negated else op, limit)
        if isinstance(right, exp.Boolean) and _is_condition(left) and op in _EQUALITY:
            return self.tree(left, negated is (bool(right.this) is (op is Op.EQ)))
        subject = self.nodes.subject(left)
        return self.leaf(subject, OPPOSITE[op] if negated else op, self.nodes.operand(right))

    def leaf(self, subject: Subject, op: Op, operand: OperandReader) -> Tree:
        return self.add(
            on(subject, lambda name: constraint_leaf(name, op, operand), self.nodes.zone)
        )

    def fixed(self, subject: Subject, op: Op, value: Value | None, type: Type | None) -> Tree:
        """A leaf whose operand is no literal."""
        return self.add(fixed_leaf(subject, op, value, type, self.nodes.zone))

    def add(self, leaf: Leaf) -> Tree:
        self.leaves.append(leaf)
        return len(self.leaves) - 1

    def typed(self, call: Any, op: Op, right: Any, negated: bool) -> Tree:
        """typeof(x) = 'string': the attribute is there and of this type."""
        name = self.nodes.subject(call.this)
        if op not in _EQUALITY or not isinstance(right, exp.Literal):
            raise Unsupported("typeof(x) is compared by = or != with a type", position_of(call))
        self.reusable = False
        operand = self.nodes.operand(right)
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
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            return self.tuples(exp.In(this=left, expressions=[right]), not same)
        if not depends(left):
            left, right = right, left
        if not depends(left) or self.nodes.depends(right) or isinstance(right, exp.Array):
            whole = exp.NullSafeEQ(this=left, expression=right)
            return self.condition(whole, not same)
        name = self.nodes.subject(left)
        if isinstance(right, exp.Null):
            return self.fixed(name, Op.ABSENT if same else Op.ANY, None, None)
        operand = self.nodes.operand(right)
        if same:
            return self.leaf(name, Op.EQ, operand)
        parts = [self.leaf(name, Op.NE, operand), self.fixed(name, Op.ABSENT, None, None)]
        return join(False, parts, position_of(node))

    def is_(self, node: Any, negated: bool) -> Tree:
        only(node, "this", "expression")
        if not depends(node):
            return self.condition(node, negated)
        name, right = self.nodes.subject(node.this), bare(node.expression)
        if isinstance(right, exp.Null):
            return self.fixed(name, Op.ANY if negated else Op.ABSENT, None, None)
        if not isinstance(right, exp.Boolean):
            raise refused(node)
        truth = bool(right.this)
        if _is_condition(bare(node.this)):
            holds = [self.tree(bare(node.this), negated is truth)]
        else:
            holds = [self.fixed(name, Op.EQ, truth is not negated, Type.BOOL)]
        if not negated:
            return holds[0]
        return join(False, [*holds, self.fixed(name, Op.ABSENT, None, None)], position_of(node))

    def between(self, node: Any, negated: bool) -> Tree:
        only(node, "this", "low", "high")
        low, high = node.args["low"], node.args["high"]
        parts = [
            self.comparison(exp.GTE(this=node.this, expression=low), Op.GE, negated),
            self.comparison(exp.LTE(this=node.this, expression=high), Op.LE, negated),
        ]
        return join(not negated, parts, position_of(node))

    def in_(self, node: Any, negated: bool) -> Tree:
        only(node, "this", "expressions")
        if isinstance(node.this, exp.Tuple):
            return self.tuples(node, negated)
        members = [bare(member) for member in node.expressions]
        is_array = any(isinstance(member, exp.Array) for member in members)
        if is_array or not depends(node.this) or any(map(self.nodes.depends, members)):
            return self.any_of(node, members, negated)
        name = self.nodes.subject(node.this)
        known = [member for member in members if not isinstance(member, exp.Null)]
        if not members:
            raise Unsupported("IN needs a list of literals", position_of(node))
        if not known or (negated and len(known) < len(members)):
            return False
        operands = [self.nodes.members(member) for member in known]
        self.plain = self.plain and not negated
        return self.add(on(name, lambda own: set_leaf(own, operands, negated), self.nodes.zone))

    def any_of(self, node: Any, members: list[Any], negated: bool) -> Tree:
        """IN whose list has attributes, or stands behind a literal: one comparison for each member."""
        parts = [
            self.comparison(exp.EQ(this=node.this, expression=member), Op.EQ, negated)
            for member in members
        ]
        return join(negated, parts, position_of(node))

    def like(self, node: Any, negated: bool) -> Tree:
        escape = None
        if isinstance(node, exp.Escape):
            only(node, "this", "expression")
            escape = self.nodes.operand(node.expression)
            node = node.this
            if not isinstance(node, exp.Like | exp.ILike):
                raise refused(node)
        only(node, "this", "expression", "negate")
        is_opposite = bool(node.args.get("negate")) is not negated
        text, right = bare(node.this), bare(node.expression)
        patterns = [right]
        if isinstance(right, exp.Any | exp.All):
            listed = bare(right.this)
            patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
        if isinstance(node, exp.ILike):  # without regard to case: both in lower case
            text, patterns = exp.Lower(this=text), [exp.Lower(this=one) for one in patterns]
        parts = [self.pattern(text, one, escape, is_opposite) for one in patterns]
        return join(isinstance(right, exp.All) is not negated, parts, position_of(node))

    def pattern(self, text: Any, node: Any, escape: OperandReader | None, negated: bool) -> Tree:
        if isinstance(node, exp.Null):
            return False
        if depends(text) and not self.nodes.depends(node):
            escape = escape or fixed("\\")
            subject, pattern = self.nodes.subject(text), self.nodes.operand(node)
            return self.add(like_leaf(subject, pattern, escape, negated, self.nodes.zone))
        if escape is not None:
            raise Unsupported("ESCAPE stands behind a literal pattern only", position_of(node))
        return self.condition(exp.Like(this=text, expression=node), negated)

    def xor(self, node: Any, negated: bool) -> Tree:
        """One of the two, and not both."""
        key = id(node), negated
        if key not in self.known:
            self.known[key] = self.either(node, negated)
        return self.known[key]

    def either(self, node: Any, negated: bool) -> Tree:
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

    def named(self, node: Any, negated: bool) -> Tree:
        """Functions that sqlglot has no class for: isnull, isnotnull and equal_null among them."""
        word = called(str(node.this)).lower()
        if word in ("isnull", "isnotnull") and len(node.expressions) == 1 and depends(node):
            is_absent = (word == "isnull") is not negated
            subject = self.nodes.subject(node.expressions[0])
            return self.fixed(subject, Op.ABSENT if is_absent else Op.ANY, None, None)
        if word == "equal_null" and len(node.expressions) == 2:
            left, right = node.expressions
            return self.null_safe(exp.NullSafeEQ(this=left, expression=right), negated)
        return self.condition(node, negated)

    def tuples(self, node: Any, negated: bool) -> Tree:
        """(a, b) IN ((1, 2), (3, 4)): tuples are equal where their parts are, NULL and NULL too, so none
        of it is NULL."""
        names = [bare(one) for one in node.this.expressions]
        same: list[list[Any]] = []
        position = position_of(node)
        for member in node.expressions:
            values = member.expressions if isinstance(member, exp.Tuple) else []
            if len(values) != len(names):
                raise Unsupported(
                    f"each member of this list has {len(names)} values", position_of(node)
                )
            pairs = zip(names, values, strict=True)
            same.append([exp.NullSafeEQ(this=one, expression=value) for one, value in pairs])
        if negated and (2 * len(names)) ** len(same) > _TUPLE_FILTERS_MAX:
            return join(True, [self.unlike(pairs) for pairs in same], position)
        parts = [
            join(not negated, [self.null_safe(pair, negated) for pair in pairs], position)
            for pairs in same
        ]
        return join(negated, parts, position)

    def unlike(self, pairs: list[Any]) -> Tree:
        """Not all of these hold, as one constraint: NOT coalesce(a <=> 1 AND b <=> 2, FALSE)."""
        whole = exp.Coalesce(this=exp.and_(*pairs), expressions=[exp.false()])
        return self.condition(whole, True)

    def call(self, node: Any, negated: bool) -> Tree:
        only(node, "this", "expression")
        op, right = _CALLS[type(node)], bare(node.expression)
        if not depends(node.this) or self.nodes.depends(right):
            return self.condition(node, negated)
        if isinstance(right, exp.Null):
            return False
        subject = self.nodes.subject(node.this)
        return self.leaf(subject, OPPOSITE[op] if negated else op, self.nodes.operand(right))


_EQUALITY = (Op.EQ, Op.NE)
_TUPLE_FILTERS_MAX = 8
"""Filters that NOT IN may become where its list has tuples; with more each tuple is one expression."""
_VISITS: dict[type, Callable[[_Builder, Any, bool], Tree]] = {
    exp.NullSafeEQ: _Builder.null_safe,
    exp.NullSafeNEQ: _Builder.null_safe,
    exp.Is: _Builder.is_,
    exp.Between: _Builder.between,
    exp.In: _Builder.in_,
    exp.Like: _Builder.like,
    exp.ILike: _Builder.like,
    exp.Escape: _Builder.like,
    exp.StartsWith: _Builder.call,
    exp.EndsWith: _Builder.call,
    exp.Contains: _Builder.call,
    exp.PropertyEQ: _Builder.xor,
    exp.Anonymous: _Builder.named,
}
_CONDITIONS = (
    *_OPS, *_CALLS, exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike,
)  # fmt: skip
"""Nodes that are TRUE, FALSE or NULL."""


def _is_condition(node: Any) -> bool:
    if isinstance(node, exp.Anonymous):
        return called(str(node.this)).lower() in MEMBER_CONDITIONS
    return isinstance(node, _CONDITIONS)
