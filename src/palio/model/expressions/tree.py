"""Expressions as trees: attributes, constants, slots for constants, and calls.

price * 2 > abs(limit)          Call greater
                                ├── Call multiply ── AttributeOf price, Constant 2
                                └── Call abs ── AttributeOf limit
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from palio.model.expressions.number_functions import Computed

Expression: TypeAlias = "AttributeOf | Constant | Slot | Call"


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
