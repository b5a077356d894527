"""Decimals as constraints compare them, exactly.

The number of a constraint is an integer or a double. Next to a decimal a double stands for the decimal that
it is written as: 0.1 for 0.1, as the literal in a WHERE clause. Doubles stand for decimals in their own
order, so every decimal is that of a double, or lies between those of two neighbours: it is a LongDecimal.

    ... 0.1 ........................ 0.10000000000000002 ...      two neighbouring doubles
             0.10000000000000000001                               equals no constraint's number
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import total_ordering

DIGITS_MAX = 38
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_DOUBLES_MAX = 2**53
"""Integers up to it are doubles."""
_BELOW_INTS = math.nextafter(-(2.0**63), -math.inf)


def written(number: float) -> Decimal:
    """The decimal that a number of a constraint stands for: its shortest text, or the integer that it is."""
    if isinstance(number, int) or (number.is_integer() and _INT_MIN <= number <= _INT_MAX):
        return Decimal(int(number))
    return Decimal(repr(number))


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class LongDecimal:
    """A decimal that no double stands for and that is no integer of 64 bits."""

    value: Decimal

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LongDecimal):
            return self.value == other.value
        return False if isinstance(other, int | float) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: object) -> bool:
        if isinstance(other, LongDecimal):
            return self.value < other.value
        return self.value < written(other) if isinstance(other, int | float) else NotImplemented

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return str(self.value)

    @property
    def below(self) -> int | float:
        """The greatest number of a constraint that is below: an integer, where doubles are wider apart."""
        value = self.value
        if value.copy_abs() > _DOUBLES_MAX and _INT_MIN < value < _INT_MAX:
            return math.floor(value)
        number = float(value)
        if written(number) > value:
            number = math.nextafter(number, -math.inf)
        if value > _INT_MAX and number < 2.0**63:
            return _INT_MAX
        return _BELOW_INTS if value < _INT_MIN and number >= -(2.0**63) else number


def digits_of(value: Decimal) -> tuple[int, int] | None:
    """Precision and scale; None where there are more than 38 digits, so that the nearest double counts."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not -DIGITS_MAX <= exponent <= DIGITS_MAX:
        return None
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    return (precision, scale) if precision <= DIGITS_MAX else None


def compared(value: Decimal) -> float | LongDecimal:
    """A finite decimal as constraints compare it: as a double where one stands for it."""
    number = float(value)
    return number if written(number) == value else LongDecimal(value)
