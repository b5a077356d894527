"""The operators of constraints: which types each takes, its opposite, and how it compares.

operator                          on                 beyond the papers
= !=                              every type
< <= > >=                         all but bool
in                                every type         yes (a set in one constraint)
prefix suffix contains            string
not prefix, not suffix, ...       string             yes (so that NOT LIKE can be said)
any                               every type, or one
absent                            no type            yes (IS NULL)
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable
from enum import StrEnum
from typing import Any


class Op(StrEnum):
    """The operator of a constraint."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"
    NOT_PREFIX = "not prefix"
    NOT_SUFFIX = "not suffix"
    NOT_CONTAINS = "not contains"
    ANY = "any"
    ABSENT = "absent"


STRING_OPS = frozenset(
    {Op.PREFIX, Op.SUFFIX, Op.CONTAINS, Op.NOT_PREFIX, Op.NOT_SUFFIX, Op.NOT_CONTAINS}
)
ORDER_OPS = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})

# NOT, pushed into the constraint: under three-valued logic neither side selects what is missing.
OPPOSITE = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.GE: Op.LT,
    Op.GT: Op.LE,
    Op.LE: Op.GT,
    Op.PREFIX: Op.NOT_PREFIX,
    Op.SUFFIX: Op.NOT_SUFFIX,
    Op.CONTAINS: Op.NOT_CONTAINS,
    Op.NOT_PREFIX: Op.PREFIX,
    Op.NOT_SUFFIX: Op.SUFFIX,
    Op.NOT_CONTAINS: Op.CONTAINS,
}


def _member(value: Any, operand: Any) -> bool:
    at = bisect_left(operand, value)
    return at < len(operand) and bool(operand[at] == value)


TESTS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
    Op.IN: _member,
    Op.PREFIX: str.startswith,
    Op.SUFFIX: str.endswith,
    Op.CONTAINS: operator.contains,
    Op.NOT_PREFIX: lambda value, operand: not value.startswith(operand),
    Op.NOT_SUFFIX: lambda value, operand: not value.endswith(operand),
    Op.NOT_CONTAINS: lambda value, operand: operand not in value,
}
