"""From a rule to filters.

Events hold single values nearly always, and for those a field is a plain constraint, which the engines
index. What else satisfies the rule has filters of its own, one for each place of the event that may be
different, so their number grows with the size of the rule and not with its powers:

    {"source": ["a"], "d": {"x": [5]}}
        source = 'a' AND d.x = 5                                 all fields are single values
        array_contains(source, 'a') AND <d.x, in whatever>       source is the first that is not
        is_nested(source) AND <'a' in source> AND <...>          it holds arrays of arrays
        source = 'a' AND d IS NOT NULL AND exists(...)           d is the first: an array of objects
        source = 'a' AND array_contains(d.x, 5)                  d.x is

Fields with values of one type come first, so that most of the others are found by their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

from palio.model.dialects.eventbridge_conditions import (
    Conjunction,
    Exists,
    OneOf,
    computed,
)
from palio.model.dialects.eventbridge_elements import (
    Node,
    any_leaf,
    any_object,
    anywhere,
    count_of_leaves,
    counts,
    tree_of,
)
from palio.model.dialects.eventbridge_fields import Path, PatternRule
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression
from palio.model.operators import Op
from palio.model.predicate import Constraint, Filter

FILTERS_OF_RULE = 64
"""Of one rule, for the conditions of different kinds in its lists; above it they become expressions."""
CONTAINED_MAX = 4
"""Values of a list that have a filter each when they are looked for in arrays."""


def filters_of(rule: PatternRule, may_hold_array: Callable[[str], bool]) -> Iterator[Filter]:
    """The filters of a rule; one of them has to hold."""
    for constraints in _Filters(tree_of(rule), may_hold_array).filters():
        yield Filter(tuple(dict.fromkeys(constraints)))


class _Filters:
    def __init__(self, root: Node, may_hold_array: Callable[[str], bool]) -> None:
        self._root = root
        self._may_hold_array = may_hold_array
        self._sort(root)
        self._nodes = list(root.walk())
        self._plain = {node.path: self._plain_of(node) for node in self._nodes}
        self._wholes: dict[Path, Constraint] = {}

    def _sort(self, node: Node) -> None:
        ordered = sorted(
            node.children.items(), key=lambda child: (not _is_exact(child[1]), child[0])
        )
        node.children = dict(ordered)
        for child in node.children.values():
            self._sort(child)

    def filters(self) -> Iterator[Conjunction]:
        yield from self._of_single_values()
        for node in self._nodes:
            for different in self._different(node):
                yield different + self._rest(self._root, node)

    # ---- single values

    def _of_single_values(self) -> Iterator[Conjunction]:
        fields = [node for node in self._nodes if node.conditions]
        choices = [self._plain[node.path] for node in fields]
        while prod(map(len, choices)) > FILTERS_OF_RULE:
            at = max(range(len(choices)), key=lambda i: len(choices[i]))
            choices[at] = [(_holds_in_attribute(fields[at]),)]
        missing = self._plainly_missing(self._root)
        for chosen in product(*choices):
            yield tuple(one for part in chosen for one in part) + missing

    def _plain_of(self, node: Node) -> list[Conjunction]:
        """A single value of the type that the conditions are about."""
        for one in node.conditions:
            if isinstance(one, Exists):
                return self._single(one.alternatives(node.name), node)
        found = [c for one in node.conditions for c in one.alternatives(node.name)]
        return list(dict.fromkeys(found))

    def _single(self, alternatives: list[Conjunction], node: Node) -> list[Conjunction]:
        if not self._may_hold_array(node.name):
            return alternatives
        is_array = Call("is_array", (AttributeOf(node.name),))
        return [(*one, computed(is_array, Op.EQ, False)) for one in alternatives]

    def _plainly_missing(self, node: Node) -> Conjunction:
        """The paths that have no value, where nothing on the way is there either."""
        found: list[Constraint] = []
        for path in node.missing:
            for taken in range(1, len(path) + 1):
                below = self._root.at((*node.path, *path[:taken]))
                if below.conditions:
                    found.append(_none(count_of_leaves(AttributeOf(below.name), path[taken:])))
                elif taken == len(path) or self._may_hold_array(below.name):
                    found.append(Constraint(below.name, Op.ABSENT))
        for child in node.children.values():
            found += self._plainly_missing(child)
        return tuple(found)

    # ---- one place that is different

    def _different(self, node: Node) -> Iterator[Conjunction]:
        """How a node can satisfy the rule although it is not a single value of the expected type."""
        if node.conditions and node.has_inner_values:
            yield Constraint(node.name, Op.ANY), self._whole(node)
        elif node.conditions:
            for condition in node.conditions:
                yield from condition.others(node.name)
            if self._may_hold_array(node.name):
                yield from _in_array(node)
        elif self._may_hold_array(node.name):
            inner = (
                (_holds(any_object(AttributeOf(node.name), (), node)),)
                if node.has_inner_values
                else ()
            )
            yield Constraint(node.name, Op.ANY), *inner  # `_rest` says what has no value

    def _rest(self, parent: Node, different: Node) -> Conjunction:
        """What the rule says outside a node. The nodes before it hold single values."""
        found: list[Constraint] = []
        is_before = True
        for child in parent.children.values():
            if child is different:
                is_before = False
            elif child.path == different.path[: len(child.path)]:
                is_before = False
                if child.conditions:
                    found.append(_holds_in_attribute(child))
                found += self._rest(child, different)
            elif not child.has_values:
                pass
            elif is_before:
                found += self._before(child)
            else:
                found.append(self._whole(child))
        for path in parent.missing:
            found += map(_none, counts(parent, path))
        return tuple(found)

    def _before(self, node: Node) -> Iterator[Constraint]:
        if node.conditions:
            choices = self._plain[node.path]
            yield from choices[0] if len(choices) == 1 else [_holds_in_attribute(node)]
        for child in node.children.values():
            if child.has_values:
                yield from self._before(child)
        for path in node.missing:
            yield from map(_none, counts(node, path))

    def _whole(self, node: Node) -> Constraint:
        if node.path not in self._wholes:
            self._wholes[node.path] = _holds(anywhere(node))
        return self._wholes[node.path]


def _is_exact(node: Node) -> bool:
    """Its values are listed, and nothing else is said of it."""
    return bool(node.conditions) and all(isinstance(one, OneOf) for one in node.conditions)


def _in_array(node: Node) -> Iterator[Conjunction]:
    """An element satisfies a condition. That an array has a certain element is indexed."""
    held = AttributeOf(node.name)
    values = [value for one in node.conditions if isinstance(one, OneOf) for value in one.values]
    has_elements = len(values) <= CONTAINED_MAX and _is_exact(node)
    for value in values if has_elements else ():
        yield (_holds(Call("array_contains", (held, Constant(value)))),)
    guard = Call("is_nested" if has_elements else "is_array", (held,))
    yield computed(guard, Op.EQ, True), _holds_in_attribute(node)


def _holds_in_attribute(node: Node) -> Constraint:
    """A value of the attribute satisfies one of the conditions, be it in an array or not."""
    return _holds(any_leaf(AttributeOf(node.name), (), node.conditions))


def _holds(condition: Expression) -> Constraint:
    """A condition that is true; of a number of leaves, a constraint on the number.

    OR and AND are wrapped: on their own they would be taken apart when the predicate is parsed again.
    """
    match condition:
        case Call("and" | "or"):
            return computed(Call("coalesce", (condition, Constant(False))), Op.EQ, True)
        case Call("greater", (Call("size", _) as count, Constant(0))):
            return computed(count, Op.GT, 0)
    return computed(condition, Op.EQ, True)


def _none(count: Expression) -> Constraint:
    return computed(count, Op.EQ, 0)
