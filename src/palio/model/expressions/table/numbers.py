"""The table, part two: numbers and bits."""

from __future__ import annotations

from palio.model.expressions import number_functions as numbers
from palio.model.expressions import real_functions as reals
from palio.model.expressions.table.entry import Function, lines

_REALS = (
    ("exp", "e to a power", "exp(0)"),
    ("expm1", "e to a power, minus 1", "expm1(0)"),
    ("sin", "sine of radians", "sin(0)"),
    ("cos", "cosine of radians", "cos(0)"),
    ("tan", "tangent of radians", "tan(0)"),
    ("asin", "in radians; NaN outside -1 to 1", "asin(0)"),
    ("acos", "in radians; NaN outside -1 to 1", "acos(1)"),
    ("atan", "in radians", "atan(0)"),
    ("sinh", "hyperbolic sine", "sinh(0)"),
    ("cosh", "hyperbolic cosine", "cosh(0)"),
    ("tanh", "hyperbolic tangent", "tanh(0)"),
    ("cbrt", "the cube root", "cbrt(27)"),
    ("degrees", "radians as degrees", "degrees(0)"),
    ("radians", "degrees as radians", "radians(180)"),
    ("rint", "the nearest whole double; a half goes to the even one", "rint(2.5D)"),
    ("ln", "the natural logarithm; NULL unless above 0", "ln(1)"),
    ("log10", "the logarithm to 10; NULL unless above 0", "log10(1000)"),
    ("log2", "the logarithm to 2; NULL unless above 0", "log2(8)"),
    ("log1p", "the natural logarithm of 1 more; NULL unless above -1", "log1p(0)"),
)
NUMBERS = lines(
    Function("add", numbers.add, "a b", "the sum; an overflow of 64 bits is an error", "0.1 + 0.2", words="try_add", written="a + b"),
    Function("subtract", numbers.subtract, "a b", "the difference", "5 - 7", words="try_subtract", written="a - b"),
    Function("multiply", numbers.multiply, "a b", "the product", "6 * 7", words="try_multiply", written="a * b"),
    Function("divide", numbers.divide, "a b", "the quotient, a double or a decimal; by 0 is an error", "7 / 2", words="try_divide", written="a / b"),
    Function("mod", numbers.mod, "a b", "the remainder, with the sign of the dividend; also `%`", "mod(-7, 3)", words="mod try_mod", written="a % b"),
    Function("div", numbers.div, "a b", "the whole part of a quotient of integers", "7 DIV 2", written="a DIV b"),
    Function("negative", numbers.negative, "a", "the opposite", "negative(5)", words="negative", written="-a"),
    Function("pmod", numbers.pmod, "a b", "the remainder, with the sign of the divisor", "pmod(-7, 3)"),
    Function("abs", numbers.absolute, "a", "without its sign", "abs(-2.5)"),
    Function("round", numbers.rounded, "a [digits]", "rounded to a number of digits, a half away from zero", "round(2.345, 2)"),
    Function("bround", numbers.bround, "a [digits]", "rounded, a half to the even digit", "bround(2.5D)"),
    Function("floor", numbers.floor, "a", "the largest integer that is not above", "floor(-2.5D)"),
    Function("ceil", numbers.ceil, "a", "the smallest integer that is not below", "ceil(2.5D)", words="ceiling"),
    Function("power", numbers.power, "a b", "a to the power of b, a double", "power(2, 10)", words="pow"),
    Function("sqrt", numbers.sqrt, "a", "the square root; NaN of a negative number", "sqrt(2)"),
    Function("sign", numbers.sign, "a", "-1, 0 or 1, as a double", "sign(-3)", words="signum"),
    *[Function(name, getattr(reals, name), "a", meaning, example) for name, meaning, example in _REALS],
    Function("log", reals.log, "base a", "the logarithm to a base; `log(a)` is `ln(a)`", "log(2, 8)"),
    Function("atan2", reals.atan2, "y x", "the angle of a point, in radians", "atan2(0, 1)"),
    Function("hypot", reals.hypot, "a b", "the length of a hypotenuse", "hypot(3, 4)"),
    Function("e", reals.e, "", "Euler's number", "e()"),
    Function("pi", reals.pi, "", "pi", "pi()"),
    Function("factorial", reals.factorial, "a", "of 0 to 20, else NULL", "factorial(5)"),
    Function("isnan", reals.isnan, "a", "whether it is NaN; FALSE for NULL", "isnan(sqrt(-1))", is_strict=False),
    Function("nanvl", reals.nanvl, "a b", "the first unless it is NaN", "nanvl(sqrt(-1), 0)", is_strict=False),
    Function("bit_and", reals.bit_and, "a b", "the bits that both have", "5 & 3", written="a & b"),
    Function("bit_or", reals.bit_or, "a b", "the bits that one has", "5 | 3", written="a | b"),
    Function("bit_xor", reals.bit_xor, "a b", "the bits that only one has", "5 ^ 3", written="a ^ b"),
    Function("bit_not", reals.bit_not, "a", "the other bits", "~5", written="~a"),
    Function("shiftleft", reals.shiftleft, "a count", "bits moved to the left", "shiftleft(5L, 2)"),
    Function("shiftright", reals.shiftright, "a count", "bits moved to the right, keeping the sign", "shiftright(-8L, 1)"),
    Function("shiftrightunsigned", reals.shiftrightunsigned, "a count", "bits moved to the right", "shiftrightunsigned(-8L, 1)"),
    Function("bit_count", reals.bit_count, "a", "the number of bits that are 1", "bit_count(7)"),
)  # fmt: skip
