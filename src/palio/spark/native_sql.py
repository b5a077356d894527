"""Expressions that only Spark computes, in its own words, and guarded: an error anywhere in them is NULL.

    levenshtein(name, 'ann')        levenshtein(`name`, 'ann')
    elt(x, 'a', 'b')                ANSI mode raises an error for x = 3, which would end the job

`try_to_binary` gives NULL for whatever fails inside it, so the value goes through it as a text. Spark decides
about types here, and casts as it does in a WHERE clause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as T  # noqa: N812

from palio.errors import InvalidPredicate
from palio.model.expressions.foreign import SYNTAX
from palio.model.expressions.text import sql_of
from palio.model.expressions.tree import AttributeOf, Call, Expression, Lambda
from palio.model.expressions.zones import BEGINS, FROM_UTC, SHOWN, TO_UTC, unwrapped
from palio.model.time_zones import zone_name
from palio.spark.expression_types import (
    BOOL,
    DATE,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIME,
    ColumnSource,
    kind_of,
)

_PLACE = re.compile("`\ue100([0-9]+)\ue100`")
_MICROS_MIN, _MICROS_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999


def native_sql(
    expression: Expression, columns: Mapping[str, ColumnSource], zone: str | None
) -> str:
    """An expression in Spark's words, in a session of this zone (None: UTC)."""
    sources: list[str] = []

    def placed(part: Expression) -> Expression:
        if isinstance(part, AttributeOf):
            source = columns.get(part.name)
            sources.append("NULL" if source is None else source.sql)
            return AttributeOf(f"\ue100{len(sources) - 1}\ue100")
        if isinstance(part, Lambda):
            return Lambda(part.level, placed(part.body))
        if not isinstance(part, Call):
            return part
        call = _in_session(part, zone)
        function = _SAFE.get(call.function, call.function)
        if function.startswith("cast as "):
            function = f"{SYNTAX}try_cast(\0 AS {function.removeprefix('cast as ')})"
        elif function.startswith(f"{SYNTAX}CAST("):
            function = f"{SYNTAX}TRY_{function.removeprefix(SYNTAX)}"
        return Call(function, tuple(map(placed, call.arguments)))

    text = sql_of(placed(expression))
    return _PLACE.sub(lambda found: sources[int(found[1])], text)


_SAFE = {"element": "get", "element_at": "try_element_at", "mod": "try_mod", "divide": "try_divide"}


def _in_session(call: Call, zone: str | None) -> Call:
    """What is written in the session's zone, as the session writes it."""
    inner, begun = unwrapped(call, TO_UTC)
    if isinstance(inner, Call) and inner.function in BEGINS and begun is not None:
        _require_zone(begun, zone)
        return Call(inner.function, _shown(inner, BEGINS[inner.function], zone))
    if call.function in SHOWN:
        return Call(call.function, _shown(call, SHOWN[call.function], zone))
    if call.function == "cast as TIMESTAMP":
        text, there = unwrapped(call.arguments[0], TO_UTC)
        if there is not None:
            _require_zone(there, zone)
            return Call(call.function, (text,))
    return call


def _shown(call: Call, places: tuple[int, ...], zone: str | None) -> tuple[Expression, ...]:
    found = list(call.arguments)
    for place in places:
        inner, there = unwrapped(found[place], FROM_UTC)
        if there is not None and zone_name(there) == zone:
            found[place] = inner
        elif zone is not None:
            _require_zone(there, zone)
    return tuple(found)


def _require_zone(there: str | None, zone: str | None) -> None:
    if zone_name(there) != zone:
        raise InvalidPredicate(
            f"the rules are written in the time zone {there or 'UTC'}, and the session is in {zone or 'UTC'}",
            remedy="compile them in a session of its zone, with functions that only Spark computes",
        )


# ---- what is sent


def sent_sql(sql: str, type: Any, *, is_guarded: bool) -> str:
    """The column of an expression of this type, as an attribute has it."""
    kind = kind_of(type)
    if isinstance(
        type, T.TimestampNTZType
    ):  # in the zone of the session, as where Spark compares it
        sql, kind = f"CAST({sql} AS TIMESTAMP)", TIME
    if kind == NULL:
        return "CAST(NULL AS BOOLEAN)"
    if kind in _TEXTS:
        before, wanted = _TEXTS[kind]
        wanted = type.simpleString() if kind == DECIMAL else wanted
        return _guarded(before.format(sql), wanted) if is_guarded else sql
    if kind in (TIME, DATE):
        micros = f"unix_micros(CAST({sql} AS TIMESTAMP))"
        if is_guarded:
            micros = _guarded(f"CAST({micros} AS STRING)", "BIGINT")
        elif kind == TIME:
            return f"CASE WHEN {micros} BETWEEN {_MICROS_MIN}L AND {_MICROS_MAX}L THEN {sql} END"
        there = f"{micros} BETWEEN {_MICROS_MIN}L AND {_MICROS_MAX}L"
        return f"CASE WHEN {there} THEN timestamp_micros({micros}) END"
    # It is there, and satisfies nothing else.
    there = f"({sql}) IS NOT NULL"
    if is_guarded:
        there = _guarded(f"CAST({there} AS STRING)", "BOOLEAN")
    return f"CASE WHEN {there} THEN array(TRUE) END"


_TEXTS = {
    BOOL: ("CAST({} AS STRING)", "BOOLEAN"),
    INT: ("CAST({} AS STRING)", "BIGINT"),
    FLOAT: ("CAST({} AS STRING)", "FLOAT"),
    DOUBLE: ("CAST({} AS STRING)", "DOUBLE"),
    DECIMAL: ("CAST({} AS STRING)", "DECIMAL"),
    STRING: ("{}", "STRING"),
}


def _guarded(text: str, wanted: str) -> str:
    return f"CAST(decode(try_to_binary({text}, 'utf-8'), 'utf-8') AS {wanted})"
