"""One form for comparisons that say the same: they become one attribute, which filters share.

5 < x        x > 5            a literal stands on the right
b > a        a < b            of two that are computed only < and <= are left
b = a        a = b            and the sides of =, != and <=> have an order
"""

from __future__ import annotations

from palio.model.expressions.tree import AttributeOf, Call, Expression, Lambda, Variable

_FLIPPED = {
    "less": "greater", "greater": "less", "less_or_equal": "greater_or_equal",
    "greater_or_equal": "less_or_equal", "equal": "equal", "not_equal": "not_equal", "same": "same",
}  # fmt: skip
_DOWNWARD = ("greater", "greater_or_equal")


def ordered(expression: Expression) -> Expression:
    """The expression with its comparisons in that form."""
    if isinstance(expression, Lambda):
        return Lambda(expression.level, ordered(expression.body))
    if not isinstance(expression, Call):
        return expression
    parts = tuple(map(ordered, expression.arguments))
    flipped = _FLIPPED.get(expression.function)
    if flipped is None or not _is_flipped(expression.function, *parts):
        return Call(expression.function, parts)
    return Call(flipped, parts[::-1])


def _is_flipped(function: str, left: Expression, right: Expression) -> bool:
    varies_left, varies_right = _varies(left), _varies(right)
    if not (varies_left and varies_right):
        return varies_right and not varies_left
    if function in ("equal", "not_equal", "same"):
        return repr(right) < repr(left)
    return function in _DOWNWARD


def _varies(expression: Expression) -> bool:
    """Does it depend on the message?"""
    if isinstance(expression, Call):
        return any(map(_varies, expression.arguments))
    if isinstance(expression, Lambda):
        return _varies(expression.body)
    return isinstance(expression, AttributeOf | Variable)
