"""The functions of expressions in Spark SQL, over parts whose types are known.

Each takes the typed SQL of its arguments and gives that of the call, or raises NotOnSpark: then the worker
computes the expression. Nothing here raises an error in Spark: `try_` forms, and NULL for arguments
that would.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from palio.model.expressions.decimals import Exact
from palio.model.expressions.text import value_name
from palio.model.sql_text import value_sql
from palio.model.values import instant_micros
from palio.spark.expression_choices import COMPARISONS
from palio.spark.expression_types import (
    ARRAY,
    BOOL,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INSTANTS,
    INT,
    MAP,
    NOTHING,
    NUMBERS,
    STRING,
    STRUCT,
    TIME,
    ColumnSource,
    NotOnSpark,
    OnlySpark,
    Typed,
    Write,
    arithmetic_kind,
    listed,
    of_source,
    require,
)

_INT_MAX = 2**31 - 1


# ---- literals


def constant(value: Any) -> Typed:
    """A literal, as Spark reads it in any session."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return Typed("TRUE" if value else "FALSE", BOOL, constant=value)
    if isinstance(value, int):
        return Typed(f"{int(value)}L", INT, constant=int(value))
    if isinstance(value, float):
        is_finite = value - value == 0
        sql = f"{value!r}D" if is_finite else f"CAST('{value_name(value)}' AS DOUBLE)"
        return Typed(sql, DOUBLE, constant=value)
    if isinstance(value, Exact):
        return Typed(f"{value.value:f}BD", DECIMAL, constant=value)
    if isinstance(value, str):
        return Typed(value_sql(value), STRING, constant=value)
    if isinstance(value, datetime):
        return Typed(f"timestamp_micros({instant_micros(value)}L)", TIME, constant=value)
    raise NotOnSpark("an array of literals")


def _as_int(part: Typed) -> str:
    """An integer of 32 bits, which positions and lengths are."""
    if part.kind != INT:
        raise NotOnSpark(f"{part.kind} is no integer")
    if part.constant is None:
        x = part.sql  # a position beyond 32 bits is beyond every string and array
        above = f"WHEN {x} > {_INT_MAX}L THEN {_INT_MAX}"
        below = f"WHEN {x} < -{_INT_MAX}L THEN -{_INT_MAX}"
        return f"(CASE {above} {below} ELSE CAST({x} AS INT) END)"
    if abs(part.constant) > _INT_MAX:
        raise NotOnSpark("a position beyond 32 bits")
    return str(part.constant)


# ---- numbers


def _arithmetic(function: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        if function in ("try_add", "try_subtract") and {part.kind for part in parts} == {DATE, INT}:
            raise OnlySpark("days are added to a date")
        require(parts, NUMBERS)
        kind = arithmetic_kind({part.kind for part in parts})
        if function == "try_divide" and kind in (INT, FLOAT):
            kind = DOUBLE
        return Typed(f"{function}({listed(parts)})", kind)

    return write


def _div(parts: list[Typed]) -> Typed:
    require(parts, frozenset({INT}))
    x, y = (part.sql for part in parts)
    if isinstance(parts[1].constant, int) and parts[1].constant not in (0, -1):
        return Typed(f"({x} DIV {y})", INT)
    sql = f"(CASE WHEN {y} = -1L THEN try_subtract(0L, {x}) ELSE {x} DIV nullif({y}, 0L) END)"
    return Typed(sql, INT)


def _negative(parts: list[Typed]) -> Typed:
    require(parts, NUMBERS)
    [part] = parts
    sql = f"try_subtract(0L, {part.sql})" if part.kind == INT else f"(- {part.sql})"
    return part.with_sql(sql)


def _absolute(parts: list[Typed]) -> Typed:
    require(parts, NUMBERS)
    [part] = parts
    inner = f"nullif({part.sql}, -9223372036854775808L)" if part.kind == INT else part.sql
    return part.with_sql(f"abs({inner})")


def _round(parts: list[Typed]) -> Typed:
    part, digits = parts[0], parts[1].constant if len(parts) > 1 else 0
    require([part], NUMBERS)
    if not isinstance(digits, int) or abs(digits) > 400:
        raise NotOnSpark("digits that are no literal")
    if part.kind == INT:
        if digits >= 0:
            return part
        wide = f"round(CAST({part.sql} AS DECIMAL(20, 0)), {digits})"
        return part.with_sql(f"try_cast({wide} AS BIGINT)")
    return part.with_sql(f"round({part.sql}, {digits})")


def _whole(function: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        require(parts, NUMBERS)
        [part] = parts
        if part.kind == INT:
            return part
        if part.kind == DECIMAL:
            return Typed(f"try_cast({function}({part.sql}) AS BIGINT)", INT)
        # What does not fit into 64 bits would be an error; NaN is 0.
        fits = f"{part.sql} >= -9.223372036854775808E18D AND {part.sql} < 9.223372036854775808E18D"
        bound = f"CASE WHEN {fits} OR isnan({part.sql}) THEN {part.sql} END"
        return Typed(f"{function}({bound})", INT)

    return write


def _of_doubles(function: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        require(parts, NUMBERS)
        doubles = ", ".join(f"CAST({part.sql} AS DOUBLE)" for part in parts)
        return Typed(f"{function}({doubles})", DOUBLE)

    return write


# ---- casts

_NUMERIC = frozenset({BOOL, INT, FLOAT, DOUBLE, DECIMAL, STRING, TIME})
_CASTS: dict[str, tuple[frozenset[str], str]] = {
    **dict.fromkeys(("BIGINT", "INT", "SMALLINT", "TINYINT"), (_NUMERIC, INT)),
    "DOUBLE": (_NUMERIC, DOUBLE),
    "FLOAT": (_NUMERIC, FLOAT),
    "BOOLEAN": (NUMBERS | {BOOL, STRING}, BOOL),
    "TIMESTAMP": (INSTANTS | {STRING}, TIME),
}


def cast(part: Typed, wanted: str) -> Typed:
    """CAST, which is NULL where it cannot be done."""
    kinds, kind = _CASTS.get(wanted, (frozenset(), ""))
    require([part], kinds)
    sql = f"try_cast({part.sql} AS {wanted})"
    is_narrow = wanted in ("INT", "SMALLINT", "TINYINT")
    return Typed(f"CAST({sql} AS BIGINT)" if is_narrow else sql, kind)


# ---- strings


def _of_texts(template: str, kind: str = STRING, texts: int = 1) -> Write:
    """The first arguments are strings, the others integers of 32 bits."""

    def write(parts: list[Typed]) -> Typed:
        require(parts[:texts], (STRING,))
        given = [part.sql for part in parts[:texts]] + [_as_int(part) for part in parts[texts:]]
        sql = template.format(*given, all=", ".join(given))
        return Typed(f"CAST({sql} AS BIGINT)" if kind == INT else sql, kind)

    return write


def _trim(side: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        require(parts, (STRING,))
        characters = parts[1].sql if len(parts) > 1 else "' '"
        return Typed(f"trim({side} {characters} FROM {parts[0].sql})", STRING)

    return write


def _all_texts(function: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        require(parts, (STRING,))
        return Typed(f"{function}({listed(parts)})", STRING)

    return write


def _split_part(parts: list[Typed]) -> Typed:
    require(parts[:2], (STRING,))
    number = _as_int(parts[2])
    return Typed(f"split_part({listed(parts[:2])}, nullif({number}, 0))", STRING)


def _like(parts: list[Typed]) -> Typed:
    require(parts, (STRING,))
    if len(parts) != 2 or not isinstance(parts[1].constant, str):
        raise NotOnSpark("a pattern that is no literal may have no meaning")
    return Typed(f"({parts[0].sql} LIKE {parts[1].sql})", BOOL)


def _json(parts: list[Typed]) -> Typed:
    require(parts, (STRING,))
    if not isinstance(parts[1].constant, str):
        raise NotOnSpark("a path that is no literal")
    return Typed(f"get_json_object({listed(parts)})", STRING)


# ---- arrays and maps


def element_of(array: Typed) -> Any:
    """The type of the elements."""
    if array.kind != ARRAY or array.type is None:
        raise NotOnSpark(f"{array.kind} is no array")
    return array.type.elementType


def _of_element(array: Typed, sql: str) -> Typed:
    return of_source(ColumnSource(sql, element_of(array)))


def _size(parts: list[Typed]) -> Typed:
    [part] = parts
    if part.kind == MAP:
        return Typed(f"CAST(array_size(map_keys({part.sql})) AS BIGINT)", INT)
    require(parts, (ARRAY,))
    return Typed(f"CAST(array_size({part.sql}) AS BIGINT)", INT)


def _element(parts: list[Typed]) -> Typed:
    return _of_element(parts[0], f"get({parts[0].sql}, {_as_int(parts[1])})")


def _element_at(parts: list[Typed]) -> Typed:
    number = f"nullif({_as_int(parts[1])}, 0)"
    return _of_element(parts[0], f"try_element_at({parts[0].sql}, {number})")


def _field(parts: list[Typed]) -> Typed:
    inner, name = parts[0], parts[1].constant
    if inner.kind == MAP and inner.type is not None:
        return of_source(ColumnSource(f"{inner.sql}[{parts[1].sql}]", inner.type.valueType))
    if inner.kind != STRUCT or inner.type is None or name not in inner.type.names:
        raise NotOnSpark(f"{inner.kind} has no such field")
    quoted = "`" + str(name).replace("`", "``") + "`"
    return of_source(ColumnSource(f"{inner.sql}.{quoted}", inner.type[name].dataType))


def _searched(function: str, kind: str) -> Write:
    def write(parts: list[Typed]) -> Typed:
        array, wanted = parts
        element = of_source(ColumnSource("", element_of(array)))
        if element.kind != wanted.kind or element.kind not in (BOOL, INT, DOUBLE, STRING, TIME):
            raise NotOnSpark("an element of another type")
        return Typed(f"{function}({listed(parts)})", kind)

    return write


FUNCTIONS: dict[str, Write] = {
    "add": _arithmetic("try_add"),
    "subtract": _arithmetic("try_subtract"),
    "multiply": _arithmetic("try_multiply"),
    "divide": _arithmetic("try_divide"),
    "mod": _arithmetic("try_mod"),
    "div": _div,
    "negative": _negative,
    "abs": _absolute,
    "round": _round,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "power": _of_doubles("power"),
    "sqrt": _of_doubles("sqrt"),
    "sign": _of_doubles("sign"),
    **COMPARISONS,
    "lower": _of_texts("lower({0})"),
    "upper": _of_texts("upper({0})"),
    "trim": _trim("BOTH"),
    "ltrim": _trim("LEADING"),
    "rtrim": _trim("TRAILING"),
    "length": _of_texts("length({0})", INT),
    "substring": _of_texts("substring({all})"),
    "left": _of_texts("left({all})"),
    "right": _of_texts("right({all})"),
    "concat": _all_texts("concat"),
    "replace": _all_texts("replace"),
    "split_part": _split_part,
    "locate": _of_texts("locate({all})", INT, 2),
    "startswith": _of_texts("startswith({all})", BOOL, 2),
    "endswith": _of_texts("endswith({all})", BOOL, 2),
    "contains": _of_texts("contains({all})", BOOL, 2),
    "like": _like,
    "get_json_object": _json,
    "size": _size,
    "element": _element,
    "get": _element,
    "element_at": _element_at,
    "try_element_at": _element_at,
    "field": _field,
    "array_contains": _searched("array_contains", BOOL),
    "array_position": _searched("array_position", INT),
}
"""Functions that are NULL where an argument is."""
