"""Computing an expression: a tree becomes a function from the attributes of a message to a value.

What cannot be computed is NULL, and whoever asked is told why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from palio.errors import InvalidPredicate
from palio.model.expressions.array_functions import array_of, kept
from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import UNCOMPUTABLE, ExpressionError
from palio.model.expressions.foreign import SPARK_TAKES, foreign_function, is_unknown
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.logic import equal, truth
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.tree import (
    AttributeOf,
    Call,
    Constant,
    Expression,
    Lambda,
    Variable,
)
from palio.model.long_decimals import LongDecimal
from palio.model.values import Value

Attributes: TypeAlias = Mapping[str, Value]
Failed: TypeAlias = Callable[[str], None]
Evaluator: TypeAlias = Callable[[Attributes, Failed], Computed | None]


def value(
    expression: Expression, attributes: Attributes, failed: Failed
) -> Value | LongDecimal | None:
    """What an expression is for a message; `failed` is called with each reason for a NULL."""
    return settled(evaluator(expression)(attributes, failed))


def settled(computed: Computed | None) -> Value | LongDecimal | None:
    """As a constraint compares it: a decimal becomes a number, if one stands for it."""
    if isinstance(computed, Exact):
        return computed.compared
    if isinstance(computed, int) and not isinstance(computed, bool):
        return int(computed)
    return computed  # type: ignore[return-value]  # an array is a value too


def _readable(value: Any) -> Computed | None:
    """Bytes are there, and no function reads them: an object without members, as in batches."""
    return {} if type(value) is bytes else value


def evaluator(expression: Expression) -> Evaluator:
    """The function that computes an expression."""
    if isinstance(expression, AttributeOf):
        name = expression.name
        return lambda attributes, _failed: _readable(attributes.get(name))
    if isinstance(expression, Constant):
        constant = expression.value
        return lambda _attributes, _failed: constant
    if isinstance(expression, Variable):
        key = _key(expression.level)
        return lambda attributes, _failed: attributes.get(key)
    assert isinstance(expression, Call), "a slot is filled first, and a lambda is an argument"
    if is_unknown(expression.function):
        return _foreign(expression)
    body = expression.arguments[-1] if expression.arguments else None
    if isinstance(body, Lambda):
        return _for_elements(expression, body)
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
        except UNCOMPUTABLE as error:
            failed(f"{call.function}: {error}")
            return None

    return evaluate


def _foreign(call: Call) -> Evaluator:
    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        raise InvalidPredicate(
            f"{foreign_function(call)} is computed by Spark only", remedy=SPARK_TAKES
        )

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


def _case_of(parts: list[Evaluator]) -> Evaluator:
    """What is compared, then a value and a result, ..., and the result otherwise."""
    subject, *choices, otherwise = parts
    pairs = list(zip(choices[::2], choices[1::2], strict=True))

    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        found = subject(attributes, failed)
        for wanted, chosen in pairs if found is not None else ():
            value = wanted(attributes, failed)
            if value is not None and equal(found, value):  # type: ignore[arg-type]
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
    "case of": _case_of,
}


# ---- lambdas: what is computed for each element of an array


STEPS_MAX = 1_000_000
CHARACTERS_PER_STEP = 64
"""Of the texts and arrays that a lambda reads besides its elements: they are read anew for each of these."""
_PER_MEMBER = 16
"""Characters that a member of an array counts as, beside its own."""


def _texts_of(expression: Expression) -> tuple[frozenset[str], int]:
    """The attributes that a lambda reads, and the characters of its constants."""
    if isinstance(expression, AttributeOf):
        return frozenset({expression.name}), 0
    if isinstance(expression, Constant):
        return frozenset(), len(expression.value) if isinstance(expression.value, str) else 0
    if isinstance(expression, Lambda):
        return _texts_of(expression.body)
    if not isinstance(expression, Call) or expression.function == "size":
        return frozenset(), 0
    found = [_texts_of(argument) for argument in expression.arguments]
    return frozenset().union(*(names for names, _ in found)), sum(size for _, size in found)


def _characters(read: Any) -> int:
    """About how many characters it takes to read a value, or an array with all that is in it."""
    if isinstance(read, str):
        return len(read)
    if isinstance(read, dict):
        read = tuple(read.values())
    if not isinstance(read, tuple):
        return 0
    types = set(map(type, read))
    if types == {str}:
        return _PER_MEMBER * len(read) + sum(map(len, read))
    if types.isdisjoint((str, tuple, dict)):
        return _PER_MEMBER * len(read)
    return _PER_MEMBER * len(read) + sum(map(_characters, read))


class _WithElement(Mapping[str, Any]):
    """The attributes, and an element under a name that no attribute has."""

    __slots__ = ("_attributes", "_key", "element", "steps")

    def __init__(self, attributes: Attributes, key: str, count: int) -> None:
        self._attributes, self._key = attributes, key
        self.element: Any = None
        self.steps = count  # of this lambda and those around it
        if isinstance(attributes, _WithElement):
            self.steps *= attributes.steps
        if self.steps > STEPS_MAX:
            raise ExpressionError(f"lambdas within lambdas take more than {STEPS_MAX:,} steps")

    def over(self, elements: tuple[Computed | None, ...]) -> Iterator[_WithElement]:
        for self.element in elements:
            yield self

    def __getitem__(self, name: str) -> Any:
        return self.element if name == self._key else self._attributes[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.element if name == self._key else self._attributes.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._attributes, self._key))

    def __len__(self) -> int:
        return len(self._attributes) + 1


def _key(level: int) -> str:
    return f"={level}"


def _for_elements(call: Call, body: Lambda) -> Evaluator:
    array, compute = evaluator(call.arguments[0]), evaluator(body.body)
    form, key = OVER_ELEMENTS[call.function], _key(body.level)
    texts, constants = _texts_of(body.body)

    def evaluate(attributes: Attributes, failed: Failed) -> Computed | None:
        found = array(attributes, failed)
        if found is None:
            return None
        try:
            elements = array_of(found)
            read = [attributes.get(name) for name in texts]
            size = constants + sum(map(_characters, read))
            bound = _WithElement(attributes, key, len(elements) * (1 + size // CHARACTERS_PER_STEP))
            return form(elements, (compute(one, failed) for one in bound.over(elements)))
        except UNCOMPUTABLE as error:
            failed(f"{call.function}: {error}")
            return None

    return evaluate


_Elements: TypeAlias = tuple[Computed | None, ...]


def _exists(_elements: _Elements, values: Iterator[Computed | None]) -> bool | None:
    result: bool | None = False
    for value in values:
        if (found := truth(value)) is True:
            return True
        result = None if found is None else result
    return result


def _forall(_elements: _Elements, values: Iterator[Computed | None]) -> bool | None:
    result: bool | None = True
    for value in values:
        if (found := truth(value)) is False:
            return False
        result = None if found is None else result
    return result


def _filter(elements: _Elements, values: Iterator[Computed | None]) -> _Elements:
    return tuple(one for one, value in zip(elements, values, strict=True) if truth(value))


def _transform(_elements: _Elements, values: Iterator[Computed | None]) -> _Elements:
    return tuple(map(kept, values))


OVER_ELEMENTS: dict[str, Callable[[_Elements, Iterator[Computed | None]], Computed | None]] = {
    "exists": _exists,
    "forall": _forall,
    "filter": _filter,
    "transform": _transform,
}
"""Functions of an array and a lambda."""
