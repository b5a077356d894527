"""Decimals: literals such as 0.1, and what is computed from them and integers, exactly.

As in Spark SQL a decimal has a precision and a scale, results have those that the operands imply, and
there are at most 38 digits. With a double it becomes a double; `long_decimals` says
how a result is compared.

    0.1 + 0.2   ->  0.3                    1.0 / 3  ->  0.333333
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from palio.model.expressions.errors import ExpressionError
from palio.model.long_decimals import DIGITS_MAX, LongDecimal, compared, digits_of
from palio.model.values import INT_MAX, INT_MIN

_SCALE_LEAST = 6
_LONG_DIGITS = 20
"""Of an integer attribute; a literal has as many as it is written with."""
_DOUBLES_MAX = 1 << 53
"""Integers up to it are doubles."""
_TEXT_MAX = 1_000
"""Characters of a literal, zeros among them."""
EXACT = Context(prec=120)
"""Decimal's own operators round to 28 digits."""


@dataclass(frozen=True, slots=True)
class Exact:
    """A decimal of a type: `precision` digits, `scale` of them behind the point."""

    value: Decimal
    precision: int
    scale: int

    @classmethod
    def of_text(cls, text: str) -> Exact:
        """A literal: it has the digits that are written."""
        if len(text) > _TEXT_MAX:
            raise ExpressionError(f"a decimal has at most {DIGITS_MAX} digits")
        value = Decimal(text)
        scale = max(0, -int(value.as_tuple().exponent))
        digits = len(str(abs(int(value.scaleb(scale, EXACT)))).lstrip("0"))
        return cls._typed(value, max(digits, scale, 1), scale)

    @classmethod
    def of_decimal(cls, value: Decimal) -> Exact | None:
        """A decimal of a message, with the digits that it has; None where these are too many."""
        digits = digits_of(value)
        if digits is None:
            return None
        precision, scale = digits
        return cls(value.quantize(Decimal(1).scaleb(-scale), context=EXACT), precision, scale)

    @classmethod
    def of_int(cls, value: int, *, is_literal: bool = False) -> Exact:
        return cls(Decimal(value), len(str(abs(value))) if is_literal else _LONG_DIGITS, 0)

    @classmethod
    def _typed(cls, value: Decimal, precision: int, scale: int) -> Exact:
        """Rounded to its type, which is first limited to 38 digits, six of them behind the point."""
        if precision > DIGITS_MAX:
            whole = precision - scale
            scale = max(DIGITS_MAX - whole, min(scale, _SCALE_LEAST))
            precision = DIGITS_MAX
        try:
            rounded = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)
        except InvalidOperation:
            raise ExpressionError(f"{value} has more than {DIGITS_MAX} digits") from None
        if len(rounded.as_tuple().digits) > precision and rounded:
            raise ExpressionError(f"{value} has more than {precision} digits")
        return cls(rounded or rounded.copy_abs(), precision, scale)  # there is no -0

    def negative(self) -> Exact:
        return Exact(EXACT.minus(self.value), self.precision, self.scale)

    def absolute(self) -> Exact:
        return Exact(EXACT.abs(self.value), self.precision, self.scale)

    def add(self, other: Exact) -> Exact:
        return self._typed(EXACT.add(self.value, other.value), *self._sum_type(other))

    def subtract(self, other: Exact) -> Exact:
        return self._typed(EXACT.subtract(self.value, other.value), *self._sum_type(other))

    def multiply(self, other: Exact) -> Exact:
        precision, scale = self.precision + other.precision + 1, self.scale + other.scale
        return self._typed(EXACT.multiply(self.value, other.value), precision, scale)

    def divide(self, other: Exact) -> Exact:
        scale = max(_SCALE_LEAST, self.scale + other.precision + 1)
        precision = self.precision - self.scale + other.scale + scale
        return self._typed(EXACT.divide(self.value, other.value), precision, scale)

    def mod(self, other: Exact) -> Exact:
        scale = max(self.scale, other.scale)
        whole = min(self.precision - self.scale, other.precision - other.scale)
        return self._typed(EXACT.remainder(self.value, other.value), whole + scale, scale)

    def _sum_type(self, other: Exact) -> tuple[int, int]:
        scale = max(self.scale, other.scale)
        whole = max(self.precision - self.scale, other.precision - other.scale)
        return whole + scale + 1, scale

    def __float__(self) -> float:
        return float(self.value)

    @property
    def attribute(self) -> int | float:
        """What it is where it is kept: the nearest double, or a large integer."""
        whole = self._large_int
        return float(self.value) if whole is None else whole

    @property
    def compared(self) -> int | float | LongDecimal:
        """What it is where it is compared with a literal, exactly."""
        whole = self._large_int
        return compared(self.value) if whole is None else whole

    @property
    def _large_int(self) -> int | None:
        """An integer of 64 bits that need not be a double."""
        if self.value.copy_abs() > _DOUBLES_MAX and self.value == self.value.to_integral_value():
            whole = int(self.value)
            return whole if INT_MIN <= whole <= INT_MAX else None
        return None
