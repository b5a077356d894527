"""Disclosure: how much of other clients' filters quenching tells a publisher.

A filter that the publisher may subscribe to itself is told as it is. Of any other filter it learns
something more general, so that nobody's constants are revealed:

    level     price < 437 AND dest = 'MXP'
    exact     price < 437 AND dest = 'MXP'
    ranges    price <= 512 AND dest is there     numbers are rounded outwards to powers of two
    names     price is there AND dest is there
    nothing   the publisher sends everything

Of an expression with constants, such as `name LIKE 'a%b_'`, only that there are the attributes that it needs.
What is told covers what is wanted, so no message is held back that a subscriber wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from math import frexp, isfinite, ldexp
from typing import cast

from palio.model.covering import covers
from palio.model.expressions.absence import needed
from palio.model.expressions.names import constants_of, expression_of, is_computed
from palio.model.predicate import Constraint, Filter, Op
from palio.model.values import NUMBERS, Type
from palio.protocol.broker.access import Identity

_INT_MAX = 2**63 - 1


class Disclosure(StrEnum):
    EXACT = "exact"
    RANGES = "ranges"
    NAMES = "names"
    NOTHING = "nothing"


def disclosed(filters: list[Filter], identity: Identity, level: Disclosure) -> list[Filter] | None:
    """The filters as the identity may see them; None: it may not see all of them."""
    if level is Disclosure.EXACT or identity.subscribes_anything:
        return filters
    shown: dict[Filter, None] = {}
    for found in filters:
        if identity.subscribe is not None and covers(identity.subscribe, found):
            shown[found] = None
        elif level is Disclosure.NOTHING:
            return None
        else:
            shown[generalized(found, level)] = None
    return list(shown)


def generalized(found: Filter, level: Disclosure) -> Filter:
    """A filter that covers `found` and has none of its constants.

    >>> from palio.model.language import parse
    >>> print(generalized(parse("price < 437 AND dest = 'MXP'").filters[0], Disclosure.RANGES))
    price <= 512 AND typeof(dest) = 'string'
    """
    constraints: dict[Constraint, None] = {}
    for one in found:
        constraints.update(dict.fromkeys(_generalized(one, level)))
    return Filter(tuple(constraints))


def _generalized(one: Constraint, level: Disclosure) -> Iterator[Constraint]:
    if is_computed(one.name) and constants_of(expression := expression_of(one.name)):
        for name in sorted(needed(expression)) if one.op is not Op.ABSENT else ():
            yield Constraint(name, Op.ANY)
    elif one.op in (Op.ANY, Op.ABSENT):
        yield one
    elif one.type not in NUMBERS:
        yield Constraint(one.name, Op.ANY, type=one.type)
    else:
        low, high = _bounds(one) if level is Disclosure.RANGES else (None, None)
        if low is not None:
            yield Constraint(one.name, Op.GE, low)
        if high is not None:
            yield Constraint(one.name, Op.LE, high)
        if low is None and high is None:
            yield Constraint(one.name, Op.ANY)


def _bounds(one: Constraint) -> tuple[int | float | None, int | float | None]:
    """The rounded range of a constraint on a number; None: there is no bound."""
    values = cast(tuple[float, ...], one.value if isinstance(one.value, tuple) else (one.value,))
    is_int = one.type is Type.INT
    low = high = None
    if one.op in (Op.GT, Op.GE, Op.EQ, Op.IN):
        low = _checked(-_rounded_up(-min(values)), is_int)
    if one.op in (Op.LT, Op.LE, Op.EQ, Op.IN):
        high = _checked(_rounded_up(max(values)), is_int)
    return low, high


def _rounded_up(value: int | float) -> float:
    """The smallest of 0 and the powers of two and their negatives that is not below the value."""
    if value == 0 or not isfinite(value):
        return float(value)
    exponent = frexp(abs(value))[1]
    power = ldexp(1.0, exponent - 1)  # at most abs(value), as far as a float tells
    if value < 0:
        while power > -value:  # an int was rounded up to become a float
            power /= 2
        return -power
    while power < value:
        power *= 2
    return power


def _checked(bound: float, is_int: bool) -> int | float | None:
    """A bound as a value of its type; None: there is no such value."""
    if not isfinite(bound):
        return None
    if not is_int:
        return bound
    return int(bound) if -_INT_MAX - 1 <= int(bound) <= _INT_MAX else None
