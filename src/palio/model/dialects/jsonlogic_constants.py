"""What JSONLogic computes from constants: as JavaScript does, with its truth and its casts.

A rule is translated from the inside outward; where all operands are known, so is the result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import reduce
from typing import Any

from palio.model.dialects.documents import RefusedRule

_NUMBER = re.compile(r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_RADIX = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
_DIGITS_MAX = 400


def truth(value: Any) -> bool:
    """Beside 0, NaN, "", null and false, an empty array is false."""
    return value == value and bool(value) if not isinstance(value, dict) else True


def number(value: Any) -> float:
    """JavaScript's Number(value)."""
    if value is None:
        return 0.0
    if isinstance(value, bool | int | float):
        return _double(value)
    if isinstance(value, dict):
        return math.nan
    text = string(value).strip()
    if not text:
        return 0.0
    if len(text) <= _DIGITS_MAX and _RADIX.fullmatch(text):
        return _double(int(text, 0))
    return _double_of_text(text) if _NUMBER.fullmatch(text) else math.nan


def leading_number(value: Any) -> float:
    """JavaScript's parseFloat(value)."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _double(value)
    found = _NUMBER.match(string(value).strip())
    return _double_of_text(found[0]) if found else math.nan


def _double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _double_of_text(text: str) -> float:
    return float(text.replace("Infinity", "inf"))


def string(value: Any) -> str:
    """JavaScript's String(value)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return joined(value, ",")
    if isinstance(value, dict):
        return "[object Object]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return str(value)


def joined(values: Any, separator: str) -> str:
    return separator.join("" if one is None else string(one) for one in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(a: Any, b: Any) -> bool:
    """=== ; no two arrays are the same."""
    if _is_number(a) and _is_number(b):
        return bool(a == b)
    return type(a) is type(b) and not isinstance(a, list | dict) and bool(a == b)


def equal(a: Any, b: Any) -> bool:
    """== ; unlike types are compared as numbers, and null equals itself alone."""
    if a is None or b is None:
        return a is b
    if isinstance(a, str) and isinstance(b, str):
        return a == b
    if isinstance(a, list | dict) and isinstance(b, list | dict):
        return False
    if isinstance(a, list | dict) and isinstance(b, str):
        return string(a) == b
    if isinstance(b, list | dict) and isinstance(a, str):
        return string(b) == a
    return number(a) == number(b)


def less(a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a < b
    return number(a) < number(b)


def less_or_equal(a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a <= b
    return number(a) <= number(b)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": equal,
    "===": same,
    "!=": lambda a, b: not equal(a, b),
    "!==": lambda a, b: not same(a, b),
    "<": less,
    "<=": less_or_equal,
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: less_or_equal(b, a),
}


def contains(needle: Any, haystack: Any) -> bool:
    if isinstance(haystack, str):
        return string(needle) in haystack
    return isinstance(haystack, list) and any(same(needle, one) for one in haystack)


def substring(value: Any, start: int, count: int | None = None) -> str:
    """A negative count leaves out characters at the end."""
    text = string(value)
    begin = max(0, len(text) + start) if start < 0 else start
    rest = text[begin:]
    return rest if count is None else rest[:count] if count else ""


def _divided(a: float, b: float) -> float:
    if b == 0 or a != a:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _remainder(a: float, b: float) -> float:
    return math.nan if b == 0 or not math.isfinite(a) or b != b else math.fmod(a, b)


def _plain(value: float) -> Any:
    """As JSON has it: a whole number is an integer."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def arithmetic(operator: str, values: list[Any]) -> Any:
    if operator == "+":
        return _plain(sum(map(leading_number, values)))
    if operator == "*":
        return _plain(reduce(lambda a, b: a * b, map(leading_number, values)))
    numbers = [number(one) for one in values]
    if operator in ("min", "max"):
        return _plain(min(numbers) if operator == "min" else max(numbers))
    if operator == "-" and len(numbers) == 1:
        return _plain(-numbers[0])
    if len(numbers) < 2:
        raise RefusedRule(f"{operator} takes two values")
    a, b = numbers[:2]
    found = a - b if operator == "-" else (_divided if operator == "/" else _remainder)(a, b)
    return _plain(found)
