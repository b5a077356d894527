"""The names of expressions: an expression is an attribute that is computed from others.

    lower(name) = 'ann'       the attribute "=lower(name)" is 'ann'

Such a name is `=` and the canonical text of the expression, so equal expressions are one attribute.
An attribute that a message itself calls by such a name is never seen by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from palio.errors import InvalidPredicate, ParseError
from palio.model.arrays import Content
from palio.model.caches import cached, text_bytes
from palio.model.expressions.evaluation import Evaluator, Failed, evaluator, settled
from palio.model.expressions.foreign import SPARK_TAKES, foreign_function
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.ordering import ordered
from palio.model.expressions.text import TEXT_MAX, operand_sql, sql_of
from palio.model.expressions.tree import (
    LEVELS_MAX,
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    levels,
)
from palio.model.long_decimals import LongDecimal
from palio.model.values import shortened

KEPT = 16_384
"""Short expressions whose evaluators are kept: more would be read again for every message."""


class _Computed(NamedTuple):
    name: str  # canonical
    expression: Expression
    evaluate: Evaluator


def is_computed(name: str) -> bool:
    return name[:1] == "="


def computed_name(expression: Expression) -> str:
    """The name of the attribute that an expression computes; of an attribute, its own."""
    if isinstance(expression, AttributeOf):
        return expression.name
    if levels(expression) > LEVELS_MAX:
        raise InvalidPredicate(f"an expression is nested at most {LEVELS_MAX} levels deep")
    text = sql_of(ordered(expression))
    if len(text) > TEXT_MAX:
        raise InvalidPredicate(f"an expression has at most {TEXT_MAX:,} characters")
    return "=" + text


def expression_of(name: str) -> Expression:
    """The expression that such a name says; InvalidPredicate where it says none."""
    return _computed(name).expression


def canonical(name: str) -> str:
    """The name as `computed_name` writes it; of what only Spark computes, InvalidPredicate."""
    found = _computed(name)
    if foreign := foreign_function(found.expression):
        raise InvalidPredicate(f"{foreign} is computed by Spark only", remedy=SPARK_TAKES)
    return found.name


def computed_operand(name: str) -> str:
    """The text of an expression in front of a comparison, which binds less tightly than arithmetic."""
    found = expression_of(name)
    is_arithmetic = isinstance(found, Call) and found.function in _ARITHMETIC
    return sql_of(found) if is_arithmetic else operand_sql(found)


_ARITHMETIC = frozenset({"add", "subtract", "multiply", "divide", "mod", "div", "negative"})


def is_junction(name: str) -> bool:
    """Would its text fall apart beside AND?"""
    found = expression_of(name)
    return isinstance(found, Call) and found.function in ("and", "or")


def value_of(
    name: str, attributes: Mapping[str, Any], failed: Failed | None = None
) -> Content | LongDecimal | None:
    """An attribute of a message, or what is computed from them; None: it is not there."""
    if name[:1] != "=":
        held: Content | None = attributes.get(name)
        return held
    return settled(_computed(name).evaluate(attributes, failed or _ignored))


def _ignored(_reason: str) -> None:
    pass


def attributes_of(expression: Expression) -> frozenset[str]:
    """The attributes that an expression reads."""
    return frozenset(_names(expression))


def constants_of(expression: Expression) -> list[Computed | None]:
    """The constants of an expression, as often as they stand there."""
    if isinstance(expression, Constant):
        return [expression.value]
    if isinstance(expression, Lambda):
        return constants_of(expression.body)
    if isinstance(expression, Call):
        return [value for argument in expression.arguments for value in constants_of(argument)]
    return []


def names_read(names: Iterable[str]) -> frozenset[str]:
    """The attributes of messages that constraints of these names look at."""
    found: set[str] = set()
    for name in names:
        found |= attributes_of(expression_of(name)) if is_computed(name) else {name}
    return frozenset(found)


def _names(expression: Expression) -> Iterable[str]:
    if isinstance(expression, AttributeOf):
        yield expression.name
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _names(argument)
    elif isinstance(expression, Lambda):
        yield from _names(expression.body)


@cached(KEPT, text_bytes)
def _computed(name: str) -> _Computed:
    from palio.model.expressions.parsing import expression_of_text

    try:
        found = expression_of_text(name[1:])
    except ParseError as error:
        raise InvalidPredicate(f"{shortened(name)} names no expression: {error.reason}") from None
    if isinstance(found, AttributeOf):
        raise InvalidPredicate(
            f"{shortened(name)} names no expression, but the attribute {shortened(found.name)}"
        )
    return _Computed(computed_name(found), found, evaluator(found))
