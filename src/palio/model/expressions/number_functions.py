"""Arithmetic and functions of numbers, with the meaning that Spark SQL gives them.

Integers have 64 bits: an overflow is an error, never a wrong number. `/` gives a double, of decimals a
decimal. Integers and decimals are exact; with a double all become doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any, TypeAlias

from palio.model.expressions.decimals import EXACT, Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.values import INT_MAX, INT_MIN, Value, format_instant, shortened

Plain: TypeAlias = Value | Exact
Computed: TypeAlias = Plain | tuple[Any, ...] | dict[str, Any]
"""What an expression computes on the way. An array is a tuple, and may hold NULLs, arrays and objects."""
Number: TypeAlias = int | float | Exact

_DIGITS_MAX = 400
"""Of `round`: no double has more."""


class IntLiteral(int):
    """An integer that is written in an expression: next to a decimal it has as many digits as that."""


def number(value: Computed) -> Number:
    """The argument of a function that takes a number; nothing is cast."""
    if isinstance(value, int | float | Exact) and not isinstance(value, bool):
        return value
    if isinstance(value, datetime):
        raise ExpressionError(
            f"a number is needed, not the time {format_instant(value)}; days are added by "
            "date_add(time, 5) or time + INTERVAL 5 DAYS"
        )
    raise ExpressionError(f"a number is needed, not {shortened(value)}")


def whole(value: Computed) -> int:
    """The argument of a function that takes an integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ExpressionError(f"an integer is needed, not {shortened(value)}")


def fitting(value: int) -> int:
    """An integer, if it fits in 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return int(value)
    raise ExpressionError(f"the integer {value} does not fit in 64 bits")


def exact(value: int | Exact) -> Exact:
    if isinstance(value, Exact):
        return value
    return Exact.of_int(value, is_literal=isinstance(value, IntLiteral))


def _arithmetic(
    of_ints: Callable[[int, int], int],
    of_decimals: Callable[[Exact, Exact], Exact],
    of_doubles: Callable[[float, float], float],
) -> Callable[[Computed, Computed], Number]:
    def computed(a: Computed, b: Computed) -> Number:
        x, y = number(a), number(b)
        if isinstance(x, float) or isinstance(y, float):
            return of_doubles(float(x), float(y))
        if isinstance(x, Exact) or isinstance(y, Exact):
            return of_decimals(exact(x), exact(y))
        return fitting(of_ints(x, y))

    return computed


add = _arithmetic(lambda x, y: x + y, Exact.add, lambda x, y: x + y)
subtract = _arithmetic(lambda x, y: x - y, Exact.subtract, lambda x, y: x - y)
multiply = _arithmetic(lambda x, y: x * y, Exact.multiply, lambda x, y: x * y)


def divide(a: Computed, b: Computed) -> Number:
    x, y = number(a), number(b)
    if float(y) == 0:
        raise ExpressionError("division by zero")
    if isinstance(x, float) or isinstance(y, float) or (isinstance(x, int) and isinstance(y, int)):
        return float(x) / float(y)
    return exact(x).divide(exact(y))


def div(a: Computed, b: Computed) -> int:
    """The whole part of a quotient of integers."""
    x, y = whole(a), whole(b)
    if y == 0:
        raise ExpressionError("division by zero")
    found = abs(x) // abs(y)
    return fitting(found if (x < 0) is (y < 0) else -found)


def mod(a: Computed, b: Computed) -> Number:
    """The remainder, with the sign of the dividend."""
    x, y = number(a), number(b)
    if float(y) == 0:
        raise ExpressionError("division by zero")
    return _mod(x, y)


def _int_mod(x: int, y: int) -> int:
    found = abs(x) % abs(y)
    return -found if x < 0 else found


def _double_mod(x: float, y: float) -> float:
    if math.isinf(x) or x != x or y != y:
        return math.nan
    return math.fmod(x, y)


_mod = _arithmetic(_int_mod, Exact.mod, _double_mod)


def pmod(a: Computed, b: Computed) -> Number:
    """The remainder, with the sign of the divisor."""
    found = mod(a, b)
    is_below = float(found) < 0
    return mod(add(found, b), b) if is_below else found


def negative(a: Computed) -> Number:
    x = number(a)
    if isinstance(x, Exact):
        return x.negative()
    return fitting(-x) if isinstance(x, int) else -x


def absolute(a: Computed) -> Number:
    x = number(a)
    if isinstance(x, Exact):
        return x.absolute()
    return fitting(abs(x)) if isinstance(x, int) else abs(x)


def rounded(a: Computed, digits: Computed = 0) -> Number:
    """Half away from zero, of the digits that a double is printed with."""
    return _to_digits(a, digits, ROUND_HALF_UP)


def bround(a: Computed, digits: Computed = 0) -> Number:
    """Half to the even digit."""
    return _to_digits(a, digits, ROUND_HALF_EVEN)


def _to_digits(a: Computed, digits: Computed, mode: str) -> Number:
    x, places = number(a), whole(digits)
    if isinstance(x, float) and not math.isfinite(x):
        return x
    if abs(places) > _DIGITS_MAX:
        return x if places > 0 else 0 if isinstance(x, int) else 0.0
    if isinstance(x, int):
        return fitting(int(_rounded(Decimal(x), places, mode))) if places < 0 else int(x)
    if isinstance(x, Exact):
        scale = max(0, min(x.scale, places))
        return Exact(
            _rounded(x.value, places, mode), max(1, x.precision - x.scale + scale + 1), scale
        )
    return float(_rounded(Decimal(repr(x)), places, mode)) + 0.0  # a decimal has no -0


def _rounded(value: Decimal, places: int, mode: str) -> Decimal:
    moved = value.scaleb(places, EXACT).to_integral_value(mode)
    return moved.scaleb(-places, EXACT)


def floor(a: Computed) -> int:
    return _as_long(a, math.floor)


def ceil(a: Computed) -> int:
    return _as_long(a, math.ceil)


def _as_long(a: Computed, whole_of: Callable[[float | Decimal], int]) -> int:
    """As Spark makes a long of a double: NaN is 0, and what is too large is an error."""
    x = number(a)
    if isinstance(x, int):
        return int(x)
    if isinstance(x, Exact):
        return fitting(whole_of(x.value))
    if x != x:
        return 0
    if math.isinf(x):
        raise ExpressionError(f"{x} does not fit in 64 bits")
    return fitting(whole_of(x))


def power(a: Computed, b: Computed) -> float:
    x, y = float(number(a)), float(number(b))
    if y != y or (abs(x) == 1 and math.isinf(y)):
        return math.nan  # as in Java
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        if x != 0:
            return math.nan
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf


def sqrt(a: Computed) -> float:
    x = float(number(a))
    return math.sqrt(x) if x >= 0 else math.nan


def sign(a: Computed) -> float:
    x = float(number(a))
    return x if x != x else math.copysign(1.0, x) if x else 0.0
