"""Functions of real numbers, and of the bits of integers, with the meaning that Spark SQL gives them.

Java's mathematics and that of C may differ in the last digit of a double.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from palio.model.expressions.number_functions import Computed, fitting, number, whole


def _real(function: Callable[[float], float]) -> Callable[[Computed], float]:
    """A function of a double: NaN where it is not defined, infinity where it is too large."""

    def computed(a: Computed) -> float:
        x = float(number(a))
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return -math.inf if x < 0 and function is not math.cosh else math.inf

    return computed


exp = _real(math.exp)
sin, cos, tan = _real(math.sin), _real(math.cos), _real(math.tan)
asin, acos, atan = _real(math.asin), _real(math.acos), _real(math.atan)
sinh, cosh, tanh = _real(math.sinh), _real(math.cosh), _real(math.tanh)
degrees = _real(lambda x: x * (180.0 / math.pi))
radians = _real(lambda x: x / 180.0 * math.pi)
cbrt = _real(lambda x: _refined(x, math.cbrt(x)) if x and math.isfinite(x) else x)
expm1 = _real(math.expm1)
rint = _real(lambda x: math.copysign(round(x), x) if math.isfinite(x) else x)


def _refined(x: float, root: float) -> float:
    """One more step of Newton's: some C libraries are a digit off."""
    return root - (root * root * root - x) / (3.0 * root * root)


def atan2(a: Computed, b: Computed) -> float:
    return math.atan2(float(number(a)) + 0.0, float(number(b)) + 0.0)


def hypot(a: Computed, b: Computed) -> float:
    return math.hypot(float(number(a)), float(number(b)))


def _logarithm(
    function: Callable[[float], float], above: float
) -> Callable[[Computed], float | None]:
    def computed(a: Computed) -> float | None:
        x = float(number(a))
        return None if x <= above else function(x)

    return computed


ln, log10 = _logarithm(math.log, 0.0), _logarithm(math.log10, 0.0)
log2 = _logarithm(lambda x: math.log(x) / math.log(2.0), 0.0)
log1p = _logarithm(math.log1p, -1.0)


def log(base: Computed, a: Computed) -> float | None:
    """To a base."""
    x, y = ln(base), ln(a)
    if x is None or y is None:
        return None
    if x == 0:
        return math.nan if y == 0 or y != y else math.copysign(math.inf, y)
    return y / x


def e() -> float:
    return math.e


def pi() -> float:
    return math.pi


def factorial(a: Computed) -> int | None:
    """Of 0 to 20."""
    return math.factorial(whole(a)) if 0 <= whole(a) <= 20 else None


def isnan(a: Computed | None) -> bool:
    """NULL is not NaN."""
    return a is not None and number(a) != a


def nanvl(a: Computed | None, b: Computed | None) -> float | None:
    """The first, unless it is NaN."""
    if a is None:
        return None
    first = float(number(a))
    if first == first:
        return first
    return None if b is None else float(number(b))


# ---- bits


def bit_and(a: Computed, b: Computed) -> int:
    return whole(a) & whole(b)


def bit_or(a: Computed, b: Computed) -> int:
    return whole(a) | whole(b)


def bit_xor(a: Computed, b: Computed) -> int:
    return whole(a) ^ whole(b)


def bit_not(a: Computed) -> int:
    return ~whole(a)


def shiftleft(a: Computed, count: Computed) -> int:
    return _signed(whole(a) << (whole(count) & 63))


def shiftright(a: Computed, count: Computed) -> int:
    return fitting(whole(a) >> (whole(count) & 63))


def shiftrightunsigned(a: Computed, count: Computed) -> int:
    return _signed((whole(a) & _BITS) >> (whole(count) & 63))


def bit_count(a: Computed) -> int:
    """Of 64 bits."""
    if isinstance(a, bool):
        return int(a)
    return (whole(a) & _BITS).bit_count()


_BITS = (1 << 64) - 1


def _signed(bits: int) -> int:
    found = bits & _BITS
    return found - (1 << 64) if found >> 63 else found
