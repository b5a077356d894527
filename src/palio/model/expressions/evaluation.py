"""Computing an expression: a tree becomes a function from the attributes of a message to a value.

What cannot be computed is NULL, and whoever asked is told why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.logic import truth
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression
from palio.model.values import Value

Attributes: TypeAlias = Mapping[str, Value]
Failed: TypeAlias = Callable[[str], None]
Evaluator: TypeAlias = Callable[[Attributes, Failed], Computed | None]


def value(expression: Expression, attributes: Attributes, failed: Failed) -> Value | None:
    """What an expression is for a message; `failed` is called with each reason for a NULL."""
    return settled(evaluator(expression)(attributes, failed))


def settled(computed: Computed | None) -> Value | None:
    """As a value of an attribute: a decimal becomes a double."""
    if isinstance(computed, Exact):
        return float(computed)
    if isinstance(computed, int) and not isinstance(computed, bool):
        return int(computed)
    return computed


def evaluator(expression: Expression) -> Evaluator:
    """The function that computes an expression."""
    if isinstance(expression, AttributeOf):
        name = expression.name
        return lambda attributes, _failed: attributes.get(name)
    if isinstance(expression, Constant):
        constant = expression.value
        return lambda _attributes, _failed: constant
    assert isinstance(expression, Call), "a slot is filled first"
    parts = [evaluator(argument) for argument in expression.arguments]
    form = FORMS.get(expression.function)
    return form(parts) if form is not None else _call(expression, parts)


def _call(call: Call, parts: list[Evaluator]) -> Evaluator:
    function = FUNCTIONS[call.function]
    compute, is_strict = function.compute, function.is_strict

    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        found = [part(attributes, failed) for part in parts]
        if is_strict and None in found:
            return None
        try:
            return compute(*found)
        except ExpressionError as error:
            failed(f"{call.function}: {error}")
            return None

    return evaluate


# ---- forms: what is not chosen is not computed


def _truth(part: Evaluator, attributes: Attributes, failed: Failed) -> bool | None:
    try:
        return truth(part(attributes, failed))
    except ExpressionError as error:
        failed(str(error))
        return None


def _and(parts: list[Evaluator]) -> Evaluator:
    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        result: bool | None = True
        for part in parts:
            found = _truth(part, attributes, failed)
            if found is False:
                return False
            result = result and found
        return result

    return evaluate


def _or(parts: list[Evaluator]) -> Evaluator:
    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        result: bool | None = False
        for part in parts:
            found = _truth(part, attributes, failed)
            if found:
                return True
            result = None if found is None else result
        return result

    return evaluate


def _not(parts: list[Evaluator]) -> Evaluator:
    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        found = _truth(parts[0], attributes, failed)
        return None if found is None else not found

    return evaluate


def _is_null(parts: list[Evaluator]) -> Evaluator:
    return lambda attributes, failed: parts[0](attributes, failed) is None


def _coalesce(parts: list[Evaluator]) -> Evaluator:
    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        for part in parts:
            if (found := part(attributes, failed)) is not None:
                return found
        return None

    return evaluate


def _case(parts: list[Evaluator]) -> Evaluator:
    """Condition, value, condition, value, ..., and the value otherwise."""
    otherwise = parts[-1]
    choices = list(zip(parts[:-1:2], parts[1:-1:2], strict=True))

    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        for condition, chosen in choices:
            if _truth(condition, attributes, failed):
                return chosen(attributes, failed)
        return otherwise(attributes, failed)

    return evaluate


FORMS: dict[str, Callable[[list[Evaluator]], Evaluator]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "is null": _is_null,
    "coalesce": _coalesce,
    "case": _case,
}
