"""Reading single nodes of sqlglot's tree: what a constraint asks of, its literals, and constants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from palio.model.expressions.foreign import is_foreign
from palio.model.expressions.reading import (
    NotAnExpression,
    is_interval,
    read_expression,
    read_interval,
)
from palio.model.expressions.tree import Call, Expression, Lambda, Slot
from palio.model.expressions.words import called
from palio.model.shapes import Unsupported
from palio.model.sql_tree import bare, depends, name_of, only, position_of, refused
from palio.model.templates import (
    CASTS,
    MembersReader,
    OperandReader,
    Subject,
    cast,
    constant,
    fixed,
    literal,
    member,
    members,
)

_LITERALS = (exp.Literal, exp.Null, exp.Boolean)


class Reads:
    """How much is read: a list repeats what stands before it, `x + y IN (a, b, c)` is three comparisons."""

    nodes_max = 1 << 18

    def __init__(self) -> None:
        self.nodes = 0
        self.slots: Counter[int] = Counter()

    def add(self, expression: Expression) -> bool:
        """Count its parts; is it within the bound?"""
        left = [expression]
        while left:
            found = left.pop()
            self.nodes += 1
            if isinstance(found, Call):
                left += found.arguments
            elif isinstance(found, Lambda):
                left.append(found.body)
            elif isinstance(found, Slot):
                self.slots[found.number] += 1
        return self.nodes <= self.nodes_max

    def repeated(self) -> dict[int, int]:
        """The literals that are read very often, and how often."""
        return {slot: times for slot, times in self.slots.items() if times > _OFTEN}


_OFTEN = 16


@dataclass(frozen=True, slots=True)
class TreeReader:
    """Reads texts that are written in a time zone (None: UTC); with `foreign` also what only Spark computes."""

    foreign: bool = False
    zone: str | None = None
    read: Reads = field(default_factory=lambda: Reads())

    def subject(self, node: Any) -> Subject:
        """What a constraint asks of: an attribute, or an expression of attributes."""
        node = bare(node)
        name = name_of(node)
        if name is None:
            return self.expression(node)
        if not name:
            raise Unsupported("the name of the attribute is empty", position_of(node))
        if name[0] == "=":
            raise Unsupported(
                "the name of an attribute that a predicate asks for does not begin with =",
                position_of(node),
            )
        return name

    def depends(self, node: Any) -> bool:
        """Does a node name an attribute, or say what only Spark computes? If not, it is a literal."""
        if depends(node) or not self.foreign or isinstance(bare(node), _LITERALS):
            return depends(node)
        if isinstance(node, exp.Neg) or is_interval(node):
            return False
        return is_foreign(self.expression(node))

    def is_collated(self, node: Any) -> bool:
        """Does a condition compare by a collation? Spark decides all of it: its literals, too."""
        if not self.foreign:
            return False
        calls = node.find_all(exp.Collate, exp.Anonymous)
        return any(isinstance(one, exp.Collate) or _is_collate(one) for one in calls)

    def expression(self, node: Any, *, beside: Any = None) -> Expression:
        """What a node computes; `beside` an interval, a difference of times is in microseconds."""
        read = read_interval if is_interval(beside) else read_expression
        try:
            found = read(node, name_of, foreign=self.foreign)
        except NotAnExpression as error:
            if error.reason:
                raise Unsupported(error.reason, position_of(error.node)) from None
            raise refused(error.node) from None
        if not self.read.add(found):
            raise Unsupported(
                "a list or a chain repeats too long an expression here", position_of(node)
            )
        return found

    def operand(self, node: Any) -> OperandReader:
        """How to read a literal: plain, negative, cast to a type, or computed: 2 + 3, lower('ABC')."""
        node = bare(node)
        if isinstance(node, exp.Boolean):
            return fixed(bool(node.this))
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            only(node, "this", "to", "_type")
            if node.args["to"].this.name in CASTS:
                return cast(self.slot(node.this), node.args["to"].this.name, self.zone)
        inner, negative = unsigned(node)
        if isinstance(inner, exp.Literal):
            return literal(self.slot(inner), negative)
        if isinstance(inner, exp.Null):
            raise Unsupported("NULL cannot stand here", position_of(inner))
        return self.constant(node)

    def constant(self, node: Any, *, beside: Any = None) -> OperandReader:
        """What literals alone compute."""
        return constant(self.expression(node, beside=beside), self.zone)

    def members(self, node: Any) -> MembersReader:
        """A member of an IN list; its slot may hold many."""
        inner, negative = unsigned(node)
        if isinstance(inner, exp.Literal):
            return members(self.slot(inner), negative)
        return member(self.operand(node))

    def unread(self, tree: Any, literals: int) -> set[int]:
        """The literals that nothing has read, which would be lost. What is compared with NULL is not read."""
        unread = {slot for slot in range(literals) if slot not in self.read.slots}
        if unread and tree.find(exp.Null):
            unread -= {int(one.this) for one in tree.find_all(exp.Literal) if one.this.isdigit()}
        return unread

    def slot(self, node: Any) -> int:
        """The slot that a literal of the shape stands for; nothing else may look like one."""
        text = node.this
        if not (text.isascii() and text.isdigit()):
            raise Unsupported("this cannot be read", position_of(node))
        found = int(text)
        self.read.slots[found] += 1
        return found


def _is_collate(call: Any) -> bool:
    return called(str(call.this)).lower() == "collate"


def unsigned(node: Any) -> tuple[Any, bool]:
    negative = False
    while isinstance(node, exp.Neg):
        node, negative = bare(node.this), not negative
    return node, negative
