"""Expressions as trees: attributes, constants, slots for constants, calls, and lambdas.

price * 2 > abs(limit)          Call greater
                                ├── Call multiply ── AttributeOf price, Constant 2
                                └── Call abs ── AttributeOf limit

exists(tags, t -> t = 'x')      Call exists
                                ├── AttributeOf tags
                                └── Lambda 0 ── Call equal ── Variable 0, Constant x

A variable is known by how many lambdas stand around its own, so that its name does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from palio.model.expressions.number_functions import Computed

Expression: TypeAlias = "AttributeOf | Constant | Slot | Call | Variable | Lambda"


@dataclass(frozen=True, slots=True)
class AttributeOf:
    """The value of an attribute of the message."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A value; None is NULL."""

    value: Computed | None


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the shape of a text has a literal; see `reading.filled`."""

    number: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `functions.FUNCTIONS`, or one of `evaluation.FORMS`."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """The element of an array that the lambda of this level is computed for."""

    level: int


LEVELS_MAX = 100
"""Calls within each other; IN and LIKE ANY count twice. The canonical text has no more parentheses open
at once, so it can be read wherever the expression could."""
LAMBDAS_MAX = 8
"""Lambdas within each other. What they cost is bounded by `evaluation.STEPS_MAX`."""


@dataclass(frozen=True, slots=True)
class Lambda:
    """What is computed for each element of an array; `level` lambdas stand around it."""

    level: int
    body: Expression


def levels(expression: Expression) -> int:
    """How many calls are within each other."""
    deepest, left = 0, [(expression, 0)]
    while left:
        found, level = left.pop()
        if isinstance(found, Call):
            own = level + (2 if found.function in _LISTED else 1)
            deepest = max(deepest, own)
            left += [(part, own) for part in found.arguments]
        elif isinstance(found, Lambda):
            left.append((found.body, level))
    return deepest


_LISTED = ("in", "like any", "like all")
