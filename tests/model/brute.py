"""Brute force over small domains: what the relations mean, by enumeration.

Strings come from a two-letter alphabet up to a length that exceeds every operand, plus a few
outsiders; numbers from small ints, halves and special floats; None is a missing attribute.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator
from datetime import UTC, datetime

from palio import Constraint, Filter, Message, Predicate

_PIECES = ["", "a", "b", "ab", "ba", "aa", "aba", "`", "c", "\0"]
STRINGS = sorted({"".join(p) for p in itertools.product(_PIECES, repeat=4)} | {"\U0010ffff"})
NUMBERS = [*range(-3, 6), *(i / 8 for i in range(-16, 40)), -math.inf, math.inf, math.nan]
TIMES = [datetime(2013, 1, day, tzinfo=UTC) for day in range(1, 6)]
VALUES = [None, True, False, *NUMBERS, *TIMES, *STRINGS]

STRING_OPERANDS = ["", "a", "b", "ab", "ba", "aa", "aba"]
NUMBER_OPERANDS = [0, 1, 2, 3, 1.0, 2.5]


def messages(names: list[str], values: list[object]) -> Iterator[Message]:
    for chosen in itertools.product(values, repeat=len(names)):
        yield Message(dict(zip(names, chosen, strict=True)))


@functools.cache
def _selected(constraint: Constraint) -> int:
    return sum(1 << i for i, value in enumerate(VALUES) if constraint.matches(value))


def selects(subscription: Filter | Predicate) -> int:
    """Which of VALUES a subscription on one attribute selects, as a set of bits."""
    if isinstance(subscription, Predicate):
        return functools.reduce(operator.or_, map(selects, subscription.filters), 0)
    everything = (1 << len(VALUES)) - 1
    return functools.reduce(operator.and_, map(_selected, subscription.constraints), everything)


def inside(a: int, b: int) -> bool:
    """Is the set of bits a part of b?"""
    return a & b == a


def string_constraints(name: str = "x") -> list[Constraint]:
    ops = ["=", "!=", "<", "<=", ">", ">=", "prefix", "suffix", "contains"]
    ops += ["not prefix", "not suffix", "not contains"]
    made = [Constraint(name, op, v) for op in ops for v in STRING_OPERANDS]
    made.append(Constraint(name, "in", ["a", "ab"]))
    made.append(Constraint(name, "in", ["", "b", "ba"]))
    made.append(Constraint(name, "any", type="string"))
    return made


def number_constraints(name: str = "x") -> list[Constraint]:
    ops = ["=", "!=", "<", "<=", ">", ">="]
    made = [Constraint(name, op, v) for op in ops for v in NUMBER_OPERANDS]
    made.append(Constraint(name, "in", [1, 2.5]))
    made.extend(Constraint(name, "any", type=t) for t in ("int", "float"))
    return made


def other_constraints(name: str = "x") -> list[Constraint]:
    made = [Constraint(name, op, v) for op in ("=", "!=") for v in (True, False)]
    made.extend(Constraint(name, op, TIMES[i]) for op in ("=", "!=", "<", ">=") for i in (1, 2))
    made.extend([Constraint(name, "any"), Constraint(name, "absent")])
    made.extend(Constraint(name, "any", type=t) for t in ("bool", "time"))
    return made
