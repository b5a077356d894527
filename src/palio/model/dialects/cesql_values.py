"""Values within CESQL expressions in SQL: what they are made of, their casts, and the functions of CESQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from palio.errors import LimitExceeded
from palio.model.dialects.cesql_conditions import NOTHING, Names
from palio.model.dialects.cesql_evaluation import WHITESPACE
from palio.model.dialects.cesql_tree import BOOLEAN, INTEGER, STRING, type_of_value
from palio.model.dialects.translation import Binding, Sql, called
from palio.model.expressions.cesql_functions import CesqlValue, cesql_int, cesql_string
from palio.model.expressions.errors import ExpressionError
from palio.model.sql_text import value_sql


class IsErrorAlways(Exception):
    """A part is an error in every event."""


@dataclass(frozen=True, slots=True)
class Value:
    """`type` is None where only the message knows. `is_total`: NULL only where an attribute is missing."""

    sql: Sql
    type: str | None
    attributes: Names
    is_total: bool = True
    constant: CesqlValue | None = None

    def __post_init__(self) -> None:
        _check_length(len(self.sql.text))


VALUE_MAX = 2_000_000
"""Characters of SQL of a value: functions repeat their arguments."""


def _check_length(characters: int) -> None:
    if characters > VALUE_MAX:
        raise LimitExceeded(
            f"a part of the expression becomes more than {VALUE_MAX:,} characters of SQL"
        )


def constant(value: CesqlValue) -> Value:
    text = value_sql(value)
    binding = Binding.SIGN if text.startswith("-") else Binding.ATOM
    return Value(Sql(text, binding), type_of_value(value), NOTHING, constant=value)


def _cast(value: CesqlValue, cast: Callable[[CesqlValue], CesqlValue]) -> Value:
    try:
        return constant(cast(value))
    except ExpressionError:
        raise IsErrorAlways from None


def checked(text: str, *operands: Value) -> Value:
    """An integer that fits in 32 bits, or NULL."""
    return _made(called("cesql_int", Sql(text)), INTEGER, operands, is_total=False)


def _made(sql: Sql, type: str, parts: tuple[Value, ...], *, is_total: bool = True) -> Value:
    attributes: Names = frozenset().union(*(one.attributes for one in parts))
    return Value(sql, type, attributes, is_total and all(one.is_total for one in parts))


def integer(value: Value) -> Value:
    if value.type == INTEGER:
        return value
    if value.constant is not None:
        return _cast(value.constant, cesql_int)
    is_total = value.type == BOOLEAN
    return _made(called("cesql_int", value.sql), INTEGER, (value,), is_total=is_total)


def string(value: Value) -> Value:
    if value.type == STRING:
        return value
    if value.constant is not None:
        return _cast(value.constant, cesql_string)
    return _made(called("cesql_string", value.sql), STRING, (value,))


def _of_string(function: str, gives: str = STRING) -> Callable[[Value], Value]:
    def call(value: Value) -> Value:
        text = string(value)
        return _made(called(function, text.sql), gives, (text,))

    return call


def _abs(value: Value) -> Value:
    whole = integer(value)
    return checked(f"abs({whole.sql.text})", whole)


def _concat(*values: Value) -> Value:
    texts = tuple(string(one) for one in values)
    _check_length(sum(len(one.sql.text) for one in texts))
    if len(texts) == 1:
        return texts[0]
    return _made(called("concat", *(one.sql for one in texts)), STRING, texts, is_total=False)


def _concat_ws(between: Value, *values: Value) -> Value:
    """The separator is evaluated also where it stands nowhere."""
    if len(values) < 2:
        last = values[0] if values else constant("")
        return _concat(last, _substring(between, constant(0)))
    parts = [values[0]]
    for one in values[1:]:
        parts += [between, one]
    return _concat(*parts)


def _trim(value: Value) -> Value:
    text = string(value)
    sql = Sql(f"trim(BOTH {value_sql(WHITESPACE)} FROM {text.sql.text})")
    return _made(sql, STRING, (text,))


def _side(function: str) -> Callable[[Value, Value], Value]:
    def call(value: Value, count: Value) -> Value:
        text, wanted = string(value), integer(count)
        sql = called(function, text.sql, wanted.sql)
        checked = Sql(f"CASE WHEN {wanted.sql.text} >= 0 THEN {sql.text} END")
        return _made(checked, STRING, (text, wanted), is_total=False)

    return call


def _substring(value: Value, position: Value, count: Value | None = None) -> Value:
    text, at = string(value), integer(position)
    others = [] if count is None else [integer(count)]
    found = called("substring", text.sql, at.sql, *(one.sql for one in others))
    is_inside = f"abs({at.sql.text}) <= length({text.sql.text})"
    for one in others:
        is_inside += f" AND {one.sql.text} >= 0"
    sql = Sql(f"CASE WHEN {is_inside} THEN if({at.sql.text} = 0, '', {found.text}) END")
    return _made(sql, STRING, (text, at, *others), is_total=False)


CALLS: dict[str, Callable[..., Value]] = {
    "INT": integer,
    "STRING": string,
    "ABS": _abs,
    "LENGTH": _of_string("length", INTEGER),
    "CONCAT": _concat,
    "CONCAT_WS": _concat_ws,
    "LOWER": _of_string("lower"),
    "UPPER": _of_string("upper"),
    "TRIM": _trim,
    "LEFT": _side("left"),
    "RIGHT": _side("right"),
    "SUBSTRING": _substring,
}
