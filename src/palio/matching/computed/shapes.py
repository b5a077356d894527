"""The shapes of expressions: names of one shape differ in their literals only, and are read once.

=abs(lat - 45.3)     shape  abs(lat - 0)      expression  abs(lat - #0)      literals  45.3
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from palio.errors import InvalidPredicate, ParseError
from palio.model.expressions.names import is_computed
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.parsing import shape_of_text
from palio.model.expressions.reading import filled
from palio.model.expressions.tree import (
    LEVELS_MAX,
    AttributeOf,
    Call,
    Constant,
    Expression,
    Slot,
    levels,
)
from palio.model.literals import BadLiteral, lift
from palio.model.values import shortened


class Shape(NamedTuple):
    """The name of an expression, taken apart."""

    text: str
    expression: Expression  # with slots
    literals: tuple[Computed | None, ...]

    @property
    def member(self) -> tuple[str, Computed] | None:
        """The array and the element, where it asks whether an array has an element."""
        if not (isinstance(self.expression, Call) and self.expression.function == "array_contains"):
            return None
        array, element = self.expression.arguments
        if not isinstance(array, AttributeOf):
            return None
        value = self.literals[element.number] if isinstance(element, Slot) else None
        if isinstance(element, Constant):
            value = element.value
        return None if value is None else (array.name, value)


def shape_of(name: str) -> Shape:
    """The shape of the name of an expression."""
    text = name[1:]
    try:
        expression, tokens = shape_of_text(text)
        if any(isinstance(token, list) for token in tokens):  # of IN: a shape of its own
            return Shape(text, filled(expression, tokens), ())
        literals = [filled(Slot(number), tokens) for number in range(len(tokens))]
    except (ParseError, BadLiteral) as error:
        reason = getattr(error, "reason", str(error))
        raise InvalidPredicate(f"{shortened(name)} names no expression: {reason}") from None
    if levels(expression) > LEVELS_MAX:
        raise InvalidPredicate(
            f"{shortened(name)} names no expression: it is nested more than {LEVELS_MAX} levels deep"
        )
    values = tuple(one.value if isinstance(one, Constant) else None for one in literals)
    return Shape(lift(text)[0], expression, values)


def shapes_of(names: Iterable[str]) -> dict[int, Shape]:
    """The shapes of all names of expressions, by their positions."""
    return {i: shape_of(name) for i, name in enumerate(names) if is_computed(name)}
