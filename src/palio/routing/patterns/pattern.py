"""Patterns: compound subscriptions over several messages, as values, and how they are printed.

    [what = 'login'] then ([what = 'alarm'] and [what = 'reboot'] within 5 minutes) same host

    Pattern ── same: ("host",)
      └─ Then ─┬─ Part(what = 'login')
               └─ Within(5 minutes) ── And ─┬─ Part(what = 'alarm')
                                            └─ Part(what = 'reboot')

What a pattern means is written in docs/concepts/patterns.md. Nodes are in normal form: an `and` in
an `and` is one `and`, and so for `or`; a `then` that begins with a `then` is one `then`, because
A then B then C means (A then B) then C. So printing then parsing gives the same pattern.

The paper has two readings of `and` (2000, 2.4.1), and each has its word: the parts of `and` take
different messages, those of `with` may take the same. When a part of `and` takes more than one message, its predicates must exclude those of the others: only then is the state of
a monitor small (automaton.py). A pattern that breaks this cannot be made; `with` has no such rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, TypeAlias, Union

import msgspec
from msgspec.structs import force_setattr

from palio.errors import InvalidPattern, InvalidValue, LimitExceeded
from palio.model.covering import intersects
from palio.model.predicate import Predicate
from palio.model.sql_text import name_sql
from palio.model.values import as_name

PARTS_MAX = 64
COMPARED_MAX = 200_000
"""Constraints that are compared, at most, to find out whether the parts of `and` exclude each other."""

UNITS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""Microseconds of each unit, the largest first."""


class Part(msgspec.Struct, frozen=True, tag=True):
    """One message that the predicate selects."""

    predicate: Predicate


class Awaited(msgspec.Struct, frozen=True, tag=True):
    """A sub-pattern that somebody else assembles; it comes as a compound of this number."""

    number: int


class Then(msgspec.Struct, frozen=True, tag=True):
    """Each step strictly later than the one before."""

    steps: tuple[Node, ...]

    def __post_init__(self) -> None:
        first = self.steps[0] if self.steps else None
        if isinstance(first, Then):
            force_setattr(self, "steps", first.steps + self.steps[1:])
        _at_least_two("then", self.steps)


class And(msgspec.Struct, frozen=True, tag=True):
    """All parts, in any order, of different messages."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        force_setattr(self, "parts", flat(And, self.parts))
        _at_least_two("and", self.parts)
        check_effort(effort(self.parts))
        if clashing := clash(self.parts):
            raise InvalidPattern(
                CLASH.format(*(node_text(self.parts[i], nested=True) for i in clashing))
            )


class With(msgspec.Struct, frozen=True, tag=True):
    """All parts, in any order; a message may belong to several of them."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        force_setattr(self, "parts", flat(With, self.parts))
        _at_least_two("with", self.parts)


class Or(msgspec.Struct, frozen=True, tag=True):
    """One of them."""

    choices: tuple[Node, ...]

    def __post_init__(self) -> None:
        force_setattr(self, "choices", flat(Or, self.choices))
        _at_least_two("or", self.choices)


class Within(msgspec.Struct, frozen=True, tag=True):
    """From its first to its last message no more than so many microseconds."""

    node: Node
    micros: int

    def __post_init__(self) -> None:
        if not 0 < self.micros < 2**63:
            raise InvalidPattern(
                f"within takes a duration above zero, not {self.micros} microseconds"
            )


Node: TypeAlias = Union[Part, Then, And, With, Or, Within, Awaited]  # noqa: UP007 (used before it is whole)

CLASH = (
    "{} and {} may select the same message; where a part of `and` takes several messages, its "
    "predicates must exclude those of the other parts: add a condition that tells them apart, or "
    "write `with`, where one message may belong to both"
)


class Pattern(msgspec.Struct, frozen=True):
    """A compound subscription; `same` are the attributes on which all its messages agree."""

    node: Node
    same: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (count := sum(1 for _ in leaves(self.node))) > PARTS_MAX:
            raise InvalidPattern(f"the pattern has {count} parts, the limit is {PARTS_MAX}")
        try:
            force_setattr(self, "same", tuple(dict.fromkeys(map(as_name, self.same))))
        except InvalidValue as error:
            raise InvalidPattern(f"same: {error}") from None

    @property
    def micros(self) -> int | None:
        """How long an instance may last; None: without limit."""
        return self.node.micros if isinstance(self.node, Within) else None

    def __str__(self) -> str:
        same = f" same {', '.join(map(name_sql, self.same))}" if self.same else ""
        return node_text(self.node) + same

    def __repr__(self) -> str:
        return f"Pattern({self})"


def core(pattern: Pattern) -> tuple[Pattern, int | None]:
    """A pattern without any `within` around all of it, and the tightest of those, if there is one."""
    node, micros = pattern.node, None
    while isinstance(node, Within):
        micros = node.micros if micros is None else min(micros, node.micros)
        node = node.node
    return (pattern if micros is None else Pattern(node, pattern.same)), micros


def bounded(pattern: Pattern, micros: int | None) -> Pattern:
    """A pattern with a `within` around it, or, for None, the pattern itself."""
    return pattern if micros is None else Pattern(Within(pattern.node, micros), pattern.same)


def children(node: Node) -> tuple[Node, ...]:
    """What a node is made of, from left to right."""
    if isinstance(node, Then):
        return node.steps
    if isinstance(node, And | With):
        return node.parts
    if isinstance(node, Or):
        return node.choices
    return (node.node,) if isinstance(node, Within) else ()


def leaves(node: Node) -> Iterator[Part | Awaited]:
    """The parts, from left to right."""
    if isinstance(node, Part | Awaited):
        yield node
    for child in children(node):
        yield from leaves(child)


def single(node: Node) -> Predicate | None:
    """The predicate of a node that always takes one message; None for any other."""
    if isinstance(node, Part):
        return node.predicate
    if isinstance(node, Within):
        return single(node.node)
    if isinstance(node, Or):
        singles = [single(choice) for choice in node.choices]
        if all(predicate is not None for predicate in singles):
            return Predicate(tuple(f for predicate in singles if predicate for f in predicate))
    return None


def clash(parts: Sequence[Node]) -> tuple[int, int] | None:
    """The first two parts of an `and` that may want one message and are not both single. It may take
    long: check the effort first."""
    for i, j in _compared(parts):
        if overlap(parts[i], parts[j]):
            return i, j
    return None


def effort(parts: Sequence[Node]) -> int:
    """How many constraints `clash` compares when it finds nothing; a value of IN counts as one."""
    sizes = [size_of(part) for part in parts]
    return sum(sizes[i][0] * sizes[j][1] + sizes[j][0] * sizes[i][1] for i, j in _compared(parts))


def check_effort(compared: int) -> None:
    """Raise LimitExceeded if so many constraints are too many to compare."""
    if compared > COMPARED_MAX:
        raise LimitExceeded(
            f"the parts of `and` must exclude each other, and finding out takes {compared:,} "
            f"comparisons of constraints; the limit is {COMPARED_MAX:,}: write smaller predicates, or `with`"
        )


def _compared(parts: Sequence[Node]) -> list[tuple[int, int]]:
    """The pairs of parts that are not both single."""
    is_single = [single(part) is not None for part in parts]
    pairs = combinations(range(len(parts)), 2)
    return [(i, j) for i, j in pairs if not (is_single[i] and is_single[j])]


def size_of(node: Node) -> tuple[int, int]:
    """How many filters a node has, and how many constraints; a value of IN counts as one."""
    filters = [f for leaf in leaves(node) if isinstance(leaf, Part) for f in leaf.predicate]
    constraints = sum(
        1 + (len(c.value) if isinstance(c.value, tuple) else 0) for f in filters for c in f
    )
    return len(filters), constraints


def overlap(a: Node, b: Node) -> bool:
    """May some message be wanted by both?"""
    return any(
        isinstance(x, Part) and isinstance(y, Part) and intersects(x.predicate, y.predicate)
        for x in leaves(a)
        for y in leaves(b)
    )


def node_text(node: Node, nested: bool = False) -> str:
    """The text of a node; `nested`: in parentheses where it needs them inside another."""
    if isinstance(node, Part):
        return f"[{node.predicate}]"
    if isinstance(node, Awaited):
        return f"<{node.number}>"
    if isinstance(node, Within):
        text = f"{node_text(node.node, isinstance(node.node, Within))} within {duration_text(node.micros)}"
    else:
        word = type(node).__name__.lower()
        text = f" {word} ".join(node_text(child, nested=True) for child in children(node))
    return f"({text})" if nested else text


def duration_text(micros: int) -> str:
    """A duration in the largest unit that has a whole number of it."""
    for unit, size in UNITS.items():
        if micros % size == 0:
            return f"{micros // size} {unit}{'s' * (micros != size)}"
    raise AssertionError(micros)  # microseconds always fit


def flat(kind: Any, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    flat: list[Node] = []
    for node in nodes:
        flat.extend(children(node) if isinstance(node, kind) else (node,))
    return tuple(flat)


def _at_least_two(word: str, nodes: tuple[Node, ...]) -> None:
    if len(nodes) < 2:
        raise InvalidPattern(f"{word} joins two patterns or more, and has {len(nodes)}")
