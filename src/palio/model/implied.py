"""What a constraint on an expression says about the attributes in it.

    abs(lat - 45.3) < 0.1        lat from 45.2 to 45.4
    year(at) = 2026              at from 2026-01-01 until 2027-01-01
    left(s, 1) = 'A'             s LIKE 'A%'
    name LIKE 'ab%c'             name LIKE 'ab%' AND name LIKE '%c'
    x + y > 3                    x IS NOT NULL AND y IS NOT NULL

It holds for every message that satisfies the constraint, and for others too. What a set of values implies
a smaller set implies too (but for sets of very many ranges), so covering stays transitive.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from palio.model import inverses, valuesets
from palio.model.caches import cached
from palio.model.expressions.decimals import Exact
from palio.model.expressions.evaluation import settled
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.names import expression_of
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression
from palio.model.implied_arguments import INVERSES, IS_THERE, WantedValues, truth_of
from palio.model.long_decimals import LongDecimal
from palio.model.operators import Op
from palio.model.predicate import Constraint
from palio.model.valuesets import DECIMAL, FLOAT, INT, PRESENT, ValueSet

Implied: TypeAlias = dict[str, ValueSet]


class _ImpliedKey(NamedTuple):
    name: str
    allowed: ValueSet
    exact: frozenset[str]


def implied(name: str, allowed: ValueSet, exact: frozenset[str] = frozenset()) -> Implied:
    """What attributes are wherever the expression of a name is one of these values.

    `exact`: the attributes that are no decimals; Spark rounds decimals of more than 38 digits.
    """
    return {} if allowed.absent else _implied(_ImpliedKey(name, allowed, exact))


def _asked_bytes(asked: _ImpliedKey) -> int:
    return 10 * len(asked.name) + valuesets.set_bytes(asked.allowed)


@cached(8192, _asked_bytes)
def _implied(asked: _ImpliedKey) -> Implied:
    found = _Descent(asked.exact)
    kept = tuple(map(inverses.few, asked.allowed.ranges))
    decimals = inverses.numbers(kept[INT], kept[FLOAT], kept[DECIMAL]).decimals
    allowed = ValueSet(False, kept, asked.allowed.strings)
    found.expression(expression_of(asked.name), WantedValues(allowed, decimals))
    return found.found


class _Descent:
    """Goes down an expression, with what each part of it must be."""

    def __init__(self, exact: frozenset[str]) -> None:
        self._exact = exact
        self.found: Implied = {}

    def expression(self, expression: Expression, wanted: WantedValues) -> None:
        if isinstance(expression, AttributeOf):
            self._attribute(expression.name, wanted)
        elif isinstance(expression, Call):
            self._call(expression, wanted)

    def _attribute(self, name: str, wanted: WantedValues) -> None:
        values = wanted.values
        if wanted is not IS_THERE:
            kept = list(values.ranges)
            kept[INT], kept[FLOAT], kept[DECIMAL] = inverses.values(
                wanted.numbers, name not in self._exact
            )
            values = ValueSet(False, tuple(kept), values.strings)
        self.found[name] = valuesets.intersection(self.found.get(name, PRESENT), values)

    def _call(self, call: Call, wanted: WantedValues) -> None:
        if self._is_logic(call, wanted):
            return
        function = FUNCTIONS.get(call.function)
        if function is None or not function.is_strict:
            return
        inverse = INVERSES.get(call.function)
        place, argument = inverse(call, wanted) if inverse is not None else (0, IS_THERE)
        for at, part in enumerate(call.arguments):
            self.expression(part, argument if at == place else IS_THERE)

    def _is_logic(self, call: Call, wanted: WantedValues) -> bool:
        """What is not strict: conditions and choices."""
        truth, parts = wanted.truth, call.arguments
        if call.function == "not":
            self.expression(parts[0], IS_THERE if truth is None else truth_of(not truth))
        elif call.function == "is null":
            if truth is False:
                self.expression(parts[0], IS_THERE)
        elif call.function == ("or" if truth is False else "and"):
            for part in parts if truth is not None else ():
                self.expression(part, wanted)
        elif call.function == "coalesce":
            first, *others = parts
            if not any(_may_be(other, wanted) for other in others):
                self.expression(first, wanted)
        else:
            return False
        return True


def _may_be(expression: Expression, wanted: WantedValues) -> bool:
    """Can it be one of these values? It is known of constants."""
    if not isinstance(expression, Constant):
        return True
    if isinstance(expression.value, Exact):
        exact = Fraction(expression.value.value)
        return any(low <= exact <= high for low, high in wanted.decimals)
    value = settled(expression.value)
    if value is None or type(value) not in (bool, int, float, str, datetime):
        return value is not None
    if value != value:
        return True
    assert not isinstance(value, LongDecimal)  # only decimals are
    chosen = valuesets.selected(Constraint("x", Op.EQ, value))
    return not valuesets.is_empty(valuesets.intersection(chosen, wanted.values))
