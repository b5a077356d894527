"""The values that JSONLogic rules compute: known ones, SQL that computes one, and lists of such.

What is NULL in SQL is something of its own in JSONLogic: `null` for an attribute that is not there, NaN
for arithmetic that fails. So each computed value says what it is `otherwise`, and a test is made of
two: for what is there, and for what is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from palio.model.dialects.documents import RefusedRule, literal
from palio.model.dialects.jsonlogic_constants import COMPARISONS, number, string, truth
from palio.model.dialects.translation import (
    EACH,
    FALSE,
    TRUE,
    Binding,
    Sql,
    all_of,
    any_of,
    called,
    comparison,
    complement,
    is_null,
    over_elements,
    settled,
)

NULL = Sql("NULL")


@dataclass(frozen=True, slots=True)
class JsonConstant:
    """A value of JSON."""

    value: Any


@dataclass(frozen=True, slots=True)
class JsonComputed:
    """`kind` is number, string, boolean, array, or any where only the message knows it.

    Tests of it are several constraints, or one expression where it `stays_whole`: within lambdas, and
    where constraints would make too many filters.
    """

    sql: Sql
    kind: str = "any"
    otherwise: Any = None
    stays_whole: bool = False


@dataclass(frozen=True, slots=True)
class JsonListed:
    """An array; each of its elements is in it under a condition."""

    elements: tuple[tuple[Sql, JsonValue], ...]


JsonValue: TypeAlias = "JsonConstant | JsonComputed | JsonListed"
NOTHING = JsonConstant(None)


def boolean(condition: Sql) -> JsonValue:
    if condition in (TRUE, FALSE):
        return JsonConstant(condition == TRUE)
    sql = condition if condition.is_definite else settled(condition)
    return JsonComputed(sql, "boolean", math.nan)


# ---- as operands of SQL


def sql_of(value: JsonValue) -> Sql:
    if isinstance(value, JsonComputed):
        otherwise = value.otherwise
        if otherwise is None or otherwise != otherwise or isinstance(otherwise, list):
            return value.sql
        return called("coalesce", value.sql, literal(otherwise))
    if isinstance(value, JsonListed) or isinstance(value.value, list | dict):
        raise RefusedRule("an array or object stands where a plain value is needed")
    return NULL if value.value is None else literal(value.value)


def number_of(value: JsonValue, *, is_lenient: bool) -> Sql:
    """As an operand of arithmetic; `is_lenient`: what is not there counts as 0."""
    if isinstance(value, JsonConstant):
        found = number(value.value)
        whole = int(found) if math.isfinite(found) and found.is_integer() else None
        small = whole is not None and abs(whole) < 2**53
        return NULL if found != found else literal(whole if small else found)
    if isinstance(value, JsonListed) or value.kind == "array":
        raise RefusedRule("an array is no number")
    if value.kind == "boolean":
        return Sql(f"CASE WHEN {value.sql.text} THEN 1 ELSE 0 END")
    sql = value.sql
    if value.kind == "string":
        sql = Sql(f"CAST({sql.text} AS DOUBLE)")
    missing = number(value.otherwise) if is_lenient or value.otherwise is not None else math.nan
    return sql if missing != missing else called("coalesce", sql, _plain(missing))


def _plain(value: float) -> Sql:
    return literal(int(value) if value.is_integer() and abs(value) < 2**53 else value)


def text_of(value: JsonValue) -> Sql:
    """As an operand of cat, where null is an empty string."""
    if isinstance(value, JsonConstant):
        return literal("" if value.value is None else string(value.value))
    if isinstance(value, JsonListed) or value.kind == "array":
        raise RefusedRule("an array is no string")
    sql = value.sql if value.kind == "string" else Sql(f"CAST({value.sql.text} AS STRING)")
    missing = "" if value.otherwise is None else string(value.otherwise)
    return called("coalesce", sql, literal(missing))


# ---- truth


def truth_of(value: JsonValue) -> Sql:
    if isinstance(value, JsonConstant):
        return TRUE if truth(value.value) else FALSE
    if isinstance(value, JsonListed):
        return any_of(condition for condition, _ in value.elements)
    if value.kind == "any" and value.stays_whole:
        return complement(falsity_of(value))
    tests = [comparison(value.sql, *_IF_TRUE[kind]) for kind in _kinds(value)]
    if value.kind in ("any", "array"):
        tests.append(comparison(called("size", value.sql), ">", Sql("0")))
    if truth(value.otherwise):
        tests.append(is_null(value.sql))
    return any_of(tests) if value.kind != "boolean" else value.sql


def falsity_of(value: JsonValue) -> Sql:
    if isinstance(value, JsonConstant):
        return FALSE if truth(value.value) else TRUE
    if isinstance(value, JsonListed) or value.kind == "boolean":
        return complement(truth_of(value))
    tests = [comparison(value.sql, *_IF_FALSE[kind]) for kind in _kinds(value)]
    if value.kind == "array" or (value.kind == "any" and not value.stays_whole):
        tests.append(comparison(called("size", value.sql), "=", Sql("0")))
    elif value.kind == "any":
        tests.append(comparison(value.sql, "=", Sql("array()")))
    if not truth(value.otherwise):
        tests.append(is_null(value.sql))
    if not value.stays_whole:
        return any_of(tests)
    return settled(any_of(tests))


_IF_TRUE = {
    "boolean": ("=", TRUE),
    "number": ("<>", Sql("0")),
    "string": ("<>", Sql("''")),
}
_IF_FALSE = {
    "boolean": ("=", FALSE),
    "number": ("=", Sql("0")),
    "string": ("=", Sql("''")),
}


def _kinds(value: JsonComputed) -> list[str]:
    """What it may be, beside an array."""
    return [kind for kind in _IF_TRUE if value.kind in ("any", kind)]


# ---- comparisons

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "===": "==="}


def compared(operator: str, a: JsonValue, b: JsonValue) -> Sql:
    """a == b, a === b, a < b, ...: holds where JSONLogic says so, and is false or unknown elsewhere."""
    for side in (a, b):
        if isinstance(side, JsonListed) or isinstance(_known(side), list | dict):
            raise RefusedRule("arrays and objects are not compared; use in, some, all or none")
    return any_of(
        all_of([left_is, right_is, _test(operator, left, right)])
        for left_is, left in _cases(a, operator, b)
        for right_is, right in _cases(b, _FLIPPED[operator], a)
    )


def _known(value: JsonValue) -> Any:
    return value.value if isinstance(value, JsonConstant) else None


def _cases(value: JsonValue, operator: str, other: JsonValue) -> Iterator[tuple[Sql, JsonValue]]:
    """A value that is there, and what it is otherwise, unless that cannot hold."""
    if not isinstance(value, JsonComputed) or value.kind == "boolean":
        yield TRUE, value
        return
    if isinstance(other, JsonConstant) and not COMPARISONS[operator](value.otherwise, other.value):
        yield TRUE, value
        return
    missing = number(value.otherwise)
    if value.stays_whole and operator not in ("==", "===") and missing == missing:
        filled = called("coalesce", value.sql, _plain(missing))
        yield TRUE, JsonComputed(filled, value.kind, math.nan)
        return
    yield TRUE, value
    yield is_null(value.sql), JsonConstant(value.otherwise)


def _test(operator: str, left: JsonValue, right: JsonValue) -> Sql:
    if isinstance(left, JsonConstant) and isinstance(right, JsonConstant):
        return TRUE if COMPARISONS[operator](left.value, right.value) else FALSE
    if isinstance(left, JsonConstant):
        return _test(_FLIPPED[operator], right, left)
    assert isinstance(left, JsonComputed), "no list gets here"
    if isinstance(right, JsonComputed):
        return comparison(left.sql, operator.replace("===", "=").replace("==", "="), right.sql)
    assert isinstance(right, JsonConstant), "no list gets here"
    if operator in ("==", "==="):
        return _equals(left, right.value, is_strict=operator == "===")
    return _ordered(left, operator, right.value)


def _equals(left: JsonComputed, value: Any, *, is_strict: bool) -> Sql:
    """What is there equals a constant. A string that says a number equals that number too."""
    if value is None or value != value or isinstance(value, list | dict):
        return FALSE
    own = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
    parts = []
    if left.kind in ("any", own):
        parts.append(comparison(left.sql, "=", literal(value)))
    other = number(value)
    says_number = not is_strict and own != "number" and other == other
    if says_number and (left.kind == "number" or (left.kind == "any" and own == "string")):
        parts.append(comparison(left.sql, "=", _plain(other)))
    if not is_strict and left.kind == "boolean" and own != "boolean" and other in (0, 1):
        parts.append(left.sql if other else complement(left.sql))
    return any_of(parts)


def _ordered(left: JsonComputed, operator: str, value: Any) -> Sql:
    if isinstance(value, list | dict):
        return FALSE
    parts = []
    if isinstance(value, str) and left.kind in ("any", "string"):
        parts.append(comparison(left.sql, operator, literal(value)))
    bound = number(value)
    if bound == bound and left.kind in ("any", "number"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        parts.append(comparison(left.sql, operator, literal(value) if is_number else _plain(bound)))
    if bound == bound and left.kind == "boolean":
        as_number = number_of(left, is_lenient=False)
        parts.append(comparison(as_number, operator, _plain(bound)))
    return any_of(parts)


# ---- membership


def among(needle: JsonValue, values: list[Any], count_max: int) -> list[Sql]:
    """Strictly equal to one of these constants: conditions of at most so many values, joined by OR."""
    if isinstance(needle, JsonListed):
        return []
    by_type: dict[str, list[Any]] = {}
    for value in values:
        if not isinstance(value, list | dict):
            kind = "number" if type(value) in (int, float) else type(value).__name__
            by_type.setdefault(kind, []).append(value)
    return [
        _one_of(needle, own[begin : begin + count_max])
        for own in by_type.values()
        for begin in range(0, len(own), count_max)
    ]


def _one_of(needle: JsonValue, values: list[Any]) -> Sql:
    """Values of one type."""
    if len(values) == 1 or not isinstance(needle, JsonComputed) or values[0] is None:
        return any_of(compared("===", needle, JsonConstant(value)) for value in values)
    listed = ", ".join(literal(value).text for value in values)
    found = Sql(f"{needle.sql.within(Binding.SUM)} IN ({listed})", Binding.COMPARISON)
    is_otherwise = any(COMPARISONS["==="](needle.otherwise, value) for value in values)
    return any_of([found, is_null(needle.sql)]) if is_otherwise else found


def found_in(needle: JsonValue, haystack: JsonComputed) -> Sql:
    """A part of a string, or an element of an array."""
    if isinstance(needle, JsonConstant) and needle.value is None:
        return over_elements("exists", haystack.sql, is_null(EACH))
    wanted = sql_of(needle)
    parts = []
    if haystack.kind in ("any", "array"):
        parts.append(called("array_contains", haystack.sql, wanted))
    if haystack.kind in ("any", "string"):
        text = text_of(needle) if isinstance(needle, JsonConstant) else wanted
        parts.append(called("contains", haystack.sql, text))
    return any_of(parts)


def part_of(needle: JsonValue, text: str) -> Sql:
    """A part of a string that the rule has."""
    if not isinstance(needle, JsonComputed) or needle.kind == "array":
        raise RefusedRule("an array is no part of a string")
    wanted = needle.sql if needle.kind == "string" else Sql(f"CAST({needle.sql.text} AS STRING)")
    parts = [called("contains", literal(text), wanted)]
    if string(needle.otherwise) in text:
        parts.append(is_null(needle.sql))
    return any_of(parts)
