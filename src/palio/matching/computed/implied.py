"""What a residual implies: constraints on attributes that hold wherever it does.

    abs(lat - 45.3) < 0.1        lat >= 45.19... AND lat <= 45.4...
    x > 12345678901234567.88     x >= 12345678901234567
    name LIKE 'ab%c'             name LIKE 'ab%'
    x + y > 3                    x IS NOT NULL AND y IS NOT NULL

They select more messages than the residual does, never fewer; by them a filter is filed and found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from palio.model.expressions.absence import needed
from palio.model.expressions.decimals import Exact
from palio.model.expressions.evaluation import evaluator
from palio.model.expressions.filling import has_attributes
from palio.model.expressions.names import expression_of
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression
from palio.model.like import like_parts
from palio.model.long_decimals import LongDecimal
from palio.model.operators import Op
from palio.model.predicate import Constraint
from palio.model.values import INT_MAX, Type

_MARGIN = 1e-9  # of rounding: far more than doubles have


def implied(residual: Constraint) -> list[Constraint]:
    """Constraints that hold for every message that satisfies the residual."""
    expression = expression_of(residual.name)
    if residual.op is Op.ABSENT:
        return []
    found = list(_bounds(expression, residual))
    named = {constraint.name for constraint in found}
    found += [Constraint(name, Op.ANY) for name in sorted(needed(expression)) if name not in named]
    return found


def _bounds(expression: Expression, residual: Constraint) -> Iterator[Constraint]:
    if not isinstance(expression, Call):
        return
    if expression.function in ("like", "rlike") and residual.value is True:
        text, pattern = expression.arguments
        if isinstance(text, AttributeOf) and isinstance(pattern, Constant):
            yield from _of_pattern(expression.function, text.name, pattern.value)
    elif expression.function in _COMPARED and residual.value is True:
        yield from _of_comparison(expression)
        yield from _of_limit(expression)
    elif expression.function == "abs" and residual.op in (Op.LT, Op.LE, Op.EQ):
        yield from _of_distance(expression.arguments[0], residual.value)


_SHIFTED = frozenset({"less", "less_or_equal", "equal"})
_COMPARED = _SHIFTED | {"greater", "greater_or_equal"}


def _of_limit(comparison: Call) -> Iterator[Constraint]:
    """abs(x - c) < limit"""
    distance, limit = comparison.arguments
    is_distance = isinstance(distance, Call) and distance.function == "abs"
    if is_distance and comparison.function in _SHIFTED and not has_attributes(limit):
        yield from _of_distance(distance.arguments[0], _computed(limit))  # type: ignore[union-attr]


def _of_comparison(comparison: Call) -> Iterator[Constraint]:
    """x > 12345678901234567.88, or the double nearest to that where x is a double."""
    subject, operand = comparison.arguments
    if not (isinstance(subject, AttributeOf) and isinstance(operand, Constant)):
        return
    if not isinstance(operand.value, Exact):
        return
    low = high = found = operand.value.compared
    if isinstance(found, LongDecimal):
        below, nearest = found.below, float(found)
        is_int = isinstance(below, int) and below < INT_MAX
        above = below + 1 if is_int else math.nextafter(below, math.inf)
        low, high = min(below, nearest), max(above, nearest)
    if comparison.function not in ("less", "less_or_equal"):
        yield Constraint(subject.name, Op.GE, low)  # type: ignore[arg-type]
    if comparison.function in _SHIFTED:
        yield Constraint(subject.name, Op.LE, high)  # type: ignore[arg-type]


def _of_distance(inner: Expression, limit: object) -> Iterator[Constraint]:
    """abs(x - c) <= limit"""
    radius = _double(limit)
    if radius is None or not (isinstance(inner, Call) and inner.function in ("subtract", "add")):
        return
    a, b = inner.arguments
    if isinstance(b, AttributeOf) and not has_attributes(a):
        a, b = b, a
        sign = 1.0 if inner.function == "subtract" else -1.0
    else:
        sign = 1.0 if inner.function == "subtract" else -1.0
    if not isinstance(a, AttributeOf) or has_attributes(b):
        return
    center = _double(_computed(b))
    if center is None:
        return
    center *= sign
    wide = radius + _MARGIN * (abs(radius) + abs(center)) + 1e-300
    if math.isfinite(center - wide) and math.isfinite(center + wide):
        yield Constraint(a.name, Op.GE, center - wide)
        yield Constraint(a.name, Op.LE, center + wide)


def _computed(expression: Expression) -> object:
    """What literals alone compute; not all of it is folded: 45.0 + 0.3."""
    return evaluator(expression)({}, lambda _reason: None)


def _double(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Exact):
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def _of_pattern(function: str, name: str, pattern: object) -> Iterator[Constraint]:
    if not isinstance(pattern, str):
        return
    if function == "rlike":
        begin = _begin_of(pattern)
        if begin:
            yield Constraint(name, Op.PREFIX, begin)
        return
    parts: list[str] = [""]
    for char, is_wild in like_parts(pattern):
        if is_wild:
            parts.append("")
        else:
            parts[-1] += char
    first, last, longest = parts[0], parts[-1], max(parts, key=len)
    if first:
        yield Constraint(name, Op.PREFIX, first)
    elif last:
        yield Constraint(name, Op.SUFFIX, last)
    elif longest:
        yield Constraint(name, Op.CONTAINS, longest)
    else:
        yield Constraint(name, Op.ANY, type=Type.STRING)


def _begin_of(regex: str) -> str:
    """The plain characters with which every text begins that a regular expression is found in."""
    anchored = _ANCHORED.match(regex)
    if anchored is None or "|" in regex:
        return ""
    is_repeated = regex[anchored.end() : anchored.end() + 1] in ("?", "*", "+", "{")
    return anchored[1][:-1] if is_repeated else anchored[1]


_ANCHORED = re.compile(r"\^([A-Za-z0-9_ ]+)")
