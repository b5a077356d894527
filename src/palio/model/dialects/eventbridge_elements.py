"""What a rule says of arrays and objects, as expressions.

    {"d": {"a": ["x"], "b": ["y"]}}        d is an array of objects: one of them has both

    exists(objects(d), t -> exists(leaves(t, 'a'), t2 -> t2 = 'x') AND exists(leaves(t, 'b'), t2 -> t2 = 'y'))

`Node` is a tree of the paths of a rule. That a path has no value (`missing`) is said at the node that it
shares with the values of the rule that come before it: `consistent_node` tells why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from palio.errors import InvalidPredicate
from palio.model.dialects.eventbridge_conditions import Condition, Exists, all_of, any_of
from palio.model.dialects.eventbridge_fields import Path, PatternRule
from palio.model.expressions.tree import (
    LAMBDAS_MAX,
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    Variable,
)


@dataclass(slots=True)
class Node:
    """A place in events, and what a rule says of it and of what lies below."""

    path: Path
    conditions: tuple[Condition, ...] = ()
    children: dict[str, Node] = field(default_factory=dict)
    missing: list[Path] = field(default_factory=list)  # relative to this node

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def has_values(self) -> bool:
        """Does the rule want a value here or below?"""
        return bool(self.conditions) or self.has_inner_values

    @property
    def has_inner_values(self) -> bool:
        return any(one.has_values for one in self.children.values())

    def walk(self) -> Iterator[Node]:
        """The nodes below, each before those below it."""
        for child in self.children.values():
            yield child
            yield from child.walk()

    def at(self, path: Path) -> Node:
        """The node at a relative path, made where it is not there."""
        found = self
        for name in path:
            found = found.children.setdefault(name, Node((*found.path, name)))
        return found


def tree_of(rule: PatternRule) -> Node:
    """In the order of names, so that equal rules have equal trees."""
    root = Node(())
    for path in sorted(rule.paths()):
        root.at(path)
    for path, conditions in rule.values.items():
        root.at(path).conditions = conditions
    for path in sorted(rule.absent):
        shared = consistent_node(path, rule)
        root.at(shared).missing.append(path[len(shared) :])
    return root


def consistent_node(path: Path, rule: PatternRule) -> Path:
    """Where it is said that a path has no value.

    event-ruler goes through the fields of a rule in the order of their names. A value that it has found in
    an element of an array decides for that element, and a field that comes later has to be missing only
    there; one that comes before has to be missing in the whole event.
    """
    longest = 0
    for other in rule.values:
        if ".".join(other) < ".".join(path):
            shared = 0
            while shared < min(len(other), len(path)) - 1 and other[shared] == path[shared]:
                shared += 1
            longest = max(longest, shared)
    return path[:longest]


# ---- below an attribute, or below an object in an array


def any_leaf(
    held: Expression, path: Path, conditions: tuple[Condition, ...], level: int = 0
) -> Expression:
    """Does a value at a path satisfy one of the conditions?"""
    if any(isinstance(one, Exists) for one in conditions):
        return Call("greater", (count_of_leaves(held, path), Constant(0)))
    body = any_of([one.of(Variable(level)) for one in conditions])
    return _exists("leaves", held, path, level, body)


def count_of_leaves(held: Expression, path: Path) -> Expression:
    return Call("size", (_within("leaves", held, path),))


def _exists(
    function: str, held: Expression, path: Path, level: int, condition: Expression
) -> Expression:
    if level >= LAMBDAS_MAX:
        raise InvalidPredicate(
            f"fields side by side stand in objects within objects, more than {LAMBDAS_MAX} deep",
            attribute=".".join(path),
            remedy="leave out conditions, or match this part of the event on its own",
        )
    return Call("exists", (_within(function, held, path), Lambda(level, condition)))


def _within(function: str, held: Expression, path: Path) -> Expression:
    return Call(function, (held, *map(Constant, path)))


def any_object(held: Expression, path: Path, node: Node, level: int = 0) -> Expression:
    """Does an object at a path satisfy everything that the rule says below a node?"""
    inner = [child for child in node.children.values() if child.has_values]
    if len(inner) == 1 and not node.missing:
        return _satisfied(held, (*path, inner[0].path[-1]), inner[0], level)
    parts = [_satisfied(Variable(level), child.path[-1:], child, level + 1) for child in inner]
    parts += [
        Call("equal", (count_of_leaves(Variable(level), missing), Constant(0)))
        for missing in node.missing
    ]
    return _exists("objects", held, path, level, all_of(parts))


def _satisfied(held: Expression, path: Path, node: Node, level: int) -> Expression:
    parts = []
    if node.conditions:
        parts.append(any_leaf(held, path, node.conditions, level))
    if node.has_inner_values:
        parts.append(any_object(held, path, node, level))
    return all_of(parts)


# ---- below the event


def anywhere(node: Node) -> Expression:
    """All that the rule says of a node and of what lies below, whatever holds arrays."""
    parts: list[Expression] = []
    if node.conditions:
        parts.append(any_leaf(AttributeOf(node.name), (), node.conditions))
    if node.has_inner_values:
        fields = [anywhere(one) for one in node.children.values() if one.has_values]
        for path in node.missing:
            fields += [Call("equal", (one, Constant(0))) for one in counts(node, path)]
        parts.append(any_of([all_of(fields), any_object(AttributeOf(node.name), (), node)]))
    return all_of(parts)


def counts(node: Node, path: Path) -> list[Expression]:
    """How many values there are at a path below a node: in objects of each attribute on the way."""
    return [
        count_of_leaves(AttributeOf(".".join((*node.path, *path[:taken]))), path[taken:])
        for taken in range(1, len(path) + 1)
    ]
