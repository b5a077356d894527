"""What an expression is where attributes are not there, as far as that can be said without the others.

x < y            NULL where x or y is not there
coalesce(x, y)   NULL where neither is
coalesce(x, 0)   0 where x is not there
"""

from __future__ import annotations

from collections.abc import Container

from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.names import attributes_of, expression_of, value_of
from palio.model.expressions.tree import AttributeOf, Call, Expression


def needed(expression: Expression) -> frozenset[str]:
    """The attributes without which an expression is NULL."""
    if isinstance(expression, AttributeOf):
        return frozenset({expression.name})
    if not isinstance(expression, Call):
        return frozenset()
    function = FUNCTIONS.get(expression.function)
    is_strict = expression.function == "not" or (function is not None and function.is_strict)
    if not is_strict:
        return frozenset()
    return frozenset().union(*map(needed, expression.arguments))


def can_be_there(name: str, allowed: Container[str]) -> bool:
    """Can the expression of a name have a value, in messages with no other attributes than these?"""
    expression = expression_of(name)
    if any(attribute not in allowed for attribute in needed(expression)):
        return False
    if any(attribute in allowed for attribute in attributes_of(expression)):
        return True
    return value_of(name, {}) is not None
