"""Conditions in Palio's SQL, put together by the readers of other dialects, and what is made of them.

A reader writes text and lets `parse` make the normal form, so that a rule means what its text says.
Texts are joined with as few parentheses as the grammar needs: nesting is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from palio.errors import LimitExceeded, ParseError
from palio.model.expressions.text import TEXT_MAX as EXPRESSION_MAX
from palio.model.language import FILTERS_MAX, parse
from palio.model.predicate import Predicate


class Binding(IntEnum):
    """How tightly the outermost operator of a text binds."""

    OR = 0
    AND = 1
    NOT = 2
    COMPARISON = 3
    SUM = 4
    PRODUCT = 5
    SIGN = 6
    ATOM = 7


@dataclass(frozen=True, slots=True)
class Sql:
    """A text of SQL, a condition or an expression.

    A condition that is never NULL `is_definite`. `lambdas` are within each other.
    """

    text: str
    binding: Binding = Binding.ATOM
    is_definite: bool = False
    lambdas: int = 0

    def within(self, binding: Binding) -> str:
        """The text as an operand of something that binds as tightly as that."""
        return self.text if self.binding >= binding else f"({self.text})"


EACH = Sql("each")
TRUE, FALSE = Sql("TRUE", is_definite=True), Sql("FALSE", is_definite=True)


def all_of(conditions: Iterable[Sql]) -> Sql:
    return _joined(conditions, Binding.AND, TRUE, FALSE)


def any_of(conditions: Iterable[Sql]) -> Sql:
    return _joined(conditions, Binding.OR, FALSE, TRUE)


def _joined(conditions: Iterable[Sql], binding: Binding, neutral: Sql, decisive: Sql) -> Sql:
    parts = list(dict.fromkeys(one for one in conditions if one != neutral))
    if decisive in parts:
        return decisive
    if len(parts) <= 1:
        return parts[0] if parts else neutral
    text = f" {binding.name} ".join(one.within(binding) for one in parts)
    return Sql(text, binding, all(one.is_definite for one in parts), _deepest(parts))


def _deepest(parts: Iterable[Sql]) -> int:
    return max((one.lambdas for one in parts), default=0)


def negation(condition: Sql) -> Sql:
    """NOT in the logic of three values: what is unknown stays so."""
    if condition in (TRUE, FALSE):
        return FALSE if condition == TRUE else TRUE
    text = f"NOT {condition.within(Binding.ATOM)}"
    return Sql(text, Binding.NOT, condition.is_definite, condition.lambdas)


def complement(condition: Sql) -> Sql:
    """Holds for exactly the messages for which the condition is false or unknown."""
    if condition.is_definite:
        return negation(condition)
    return negation(settled(condition))


def settled(condition: Sql) -> Sql:
    """FALSE where it is unknown."""
    text = f"coalesce({condition.text}, FALSE)"
    return Sql(text, is_definite=True, lambdas=condition.lambdas)


def comparison(left: Sql, operator: str, right: Sql) -> Sql:
    sides = left.within(Binding.SUM), right.within(Binding.SUM)
    text = f"{sides[0]} {operator} {sides[1]}"
    return Sql(text, Binding.COMPARISON, lambdas=_deepest([left, right]))


def is_null(value: Sql) -> Sql:
    return Sql(f"{value.within(Binding.SUM)} IS NULL", Binding.COMPARISON, is_definite=True)


def called(function: str, *arguments: Sql) -> Sql:
    text = f"{function}({', '.join(one.text for one in arguments)})"
    return Sql(text, lambdas=_deepest(arguments))


def over_elements(function: str, array: Sql, body: Sql) -> Sql:
    """A function of an array and a lambda; in its body each element is EACH."""
    depth = max(array.lambdas, body.lambdas + 1)
    return Sql(f"{function}({array.text}, {EACH.text} -> {body.text})", lambdas=depth)


LIST_MAX = 1000
"""Values of a list within an expression; longer ones are divided, where that is possible."""
SQL_MAX = 200_000
"""Characters of SQL that a rule may become, without its literals."""


def predicate_of(
    condition: Sql, source: str, limit: int = FILTERS_MAX, shape_max: int = SQL_MAX
) -> Predicate:
    """The predicate of a condition. Errors show `source`, the text that was read."""
    try:
        predicate = parse(condition.text, limit=limit, shape_max=shape_max)
    except LimitExceeded as error:
        raise LimitExceeded(error.reason, source) from None
    except ParseError as error:
        raise ParseError(error.reason, source) from None
    longest = max((len(one.name) for own in predicate for one in own), default=0)
    if longest > EXPRESSION_MAX:
        raise LimitExceeded(
            f"a part of it is an expression of {longest:,} characters, the limit is "
            f"{EXPRESSION_MAX:,}; shorten its lists",
            source,
        )
    return predicate
