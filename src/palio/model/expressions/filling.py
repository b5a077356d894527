"""Filling the slots of an expression with the literals of a text.

A shape is read once. What is wrong with a literal (a pattern, a regular expression, a path) is said here,
with its slot.
"""

from __future__ import annotations

import re

from palio.errors import InvalidValue
from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.folding import with_constants
from palio.model.expressions.number_functions import Computed, IntLiteral
from palio.model.expressions.simplifying import BadArgument, simplified
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression, Lambda, Slot
from palio.model.literals import BadLiteral, Literal, read
from palio.model.long_decimals import LongDecimal

_DECIMAL = re.compile(r"[0-9]*\.[0-9]*(?:[bB][dD])?|[0-9]+[bB][dD]")


def filled(expression: Expression, literals: list[Literal]) -> Expression:
    """The expression with the literals of a text."""
    if isinstance(expression, Slot):
        return Constant(_value(literals[expression.number], expression.number))
    if isinstance(expression, Lambda):
        return Lambda(expression.level, filled(expression.body, literals))
    if not isinstance(expression, Call):
        return expression
    arguments = expression.arguments
    if expression.function == "in":
        members = (filled(arguments[0], literals), *_members(arguments[1:], literals))
        return Call("in", with_constants("in", members))
    if expression.function == "negative" and isinstance(arguments[0], Slot):
        number = arguments[0].number
        return Constant(_value(literals[number], number, is_negative=True))
    given = tuple(filled(part, literals) for part in arguments)
    try:
        return simplified(expression.function, given)
    except BadArgument as error:
        raise BadLiteral(error.reason, first_slot(arguments[error.at])) from None


def _members(arguments: tuple[Expression, ...], literals: list[Literal]) -> list[Expression]:
    """Of IN; a slot may hold many, and a sign before it belongs to its first member."""
    found: list[Expression] = []
    for argument in arguments:
        is_negative = isinstance(argument, Call) and argument.function == "negative"
        slot = argument.arguments[0] if isinstance(argument, Call) and is_negative else argument
        tokens = literals[slot.number] if isinstance(slot, Slot) else None
        if isinstance(slot, Slot) and isinstance(tokens, list):
            first = f"-{tokens[0]}" if is_negative else tokens[0]
            found += [Constant(_value(token, slot.number)) for token in (first, *tokens[1:])]
        else:
            found.append(filled(argument, literals))
    return found


def _value(token: Literal, slot: int, *, is_negative: bool = False) -> Computed:
    if not isinstance(token, str):
        raise BadLiteral("a list stands only behind IN", slot)
    token = f"-{token}" if is_negative else token
    try:
        if _DECIMAL.fullmatch(token, token[0] == "-"):
            return Exact.of_text(token.rstrip("bBdD"))
        found = read(token)
    except ExpressionError as error:
        raise BadLiteral(str(error), slot) from None
    except InvalidValue as error:
        raise BadLiteral(error.detail, slot) from None
    if isinstance(found, LongDecimal):
        return Exact.of_decimal(found.value)  # type: ignore[return-value]  # it has at most 38 digits
    return IntLiteral(found) if type(found) is int else found


def first_slot(expression: Expression) -> int:
    """The first literal of an expression; -1: it has none."""
    if isinstance(expression, Slot):
        return expression.number
    if isinstance(expression, Call):
        return next((slot for part in expression.arguments if (slot := first_slot(part)) >= 0), -1)
    return first_slot(expression.body) if isinstance(expression, Lambda) else -1


def slots_of(expression: Expression) -> set[int]:
    """The literals that an expression reads."""
    found: set[int] = set()
    left = [expression]
    while left:
        one = left.pop()
        if isinstance(one, Slot):
            found.add(one.number)
        elif isinstance(one, Call):
            left += one.arguments
        elif isinstance(one, Lambda):
            left.append(one.body)
    return found


def has_attributes(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return any(map(has_attributes, expression.arguments))
    if isinstance(expression, Lambda):
        return has_attributes(expression.body)
    return isinstance(expression, AttributeOf)
