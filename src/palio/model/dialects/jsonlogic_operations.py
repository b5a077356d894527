"""Operations of JSONLogic on values: arithmetic, min and max, strings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from palio.model.dialects import jsonlogic_constants as constants
from palio.model.dialects.documents import RefusedRule, literal
from palio.model.dialects.jsonlogic_values import (
    JsonComputed,
    JsonConstant,
    JsonValue,
    number_of,
    sql_of,
    text_of,
)
from palio.model.dialects.translation import Binding, Sql, called

_BINDINGS = {
    "+": Binding.SUM,
    "-": Binding.SUM,
    "*": Binding.PRODUCT,
    "/": Binding.PRODUCT,
    "%": Binding.PRODUCT,
}
_LENIENT = frozenset({"-", "/", "%", "min", "max"})
"""Where null counts as 0; for + and * it is no number."""


def arithmetic(operator: str, values: list[JsonValue]) -> JsonValue:
    known = [one.value for one in values if isinstance(one, JsonConstant)]
    if not values:
        raise RefusedRule(f"{operator} needs a value")
    if len(known) == len(values):
        return JsonConstant(constants.arithmetic(operator, known))
    if operator in "-/%" and len(values) > 1:
        values = values[:2]
    elif operator in "/%":
        raise RefusedRule(f"{operator} takes two values")
    operands = [number_of(one, is_lenient=operator in _LENIENT) for one in values]
    return JsonComputed(_applied(operator, operands), "number", math.nan)


def _applied(operator: str, operands: list[Sql]) -> Sql:
    first = operands[0]
    if operator in ("min", "max"):
        function = "least" if operator == "min" else "greatest"
        return called(function, *operands) if len(operands) > 1 else first
    if len(operands) == 1:
        if operator == "-":
            return Sql(f"-({first.text})", Binding.SIGN)
        return Sql(f"CAST({first.text} AS DOUBLE)") if operator == "+" else first
    binding = _BINDINGS[operator]
    tighter = Binding(binding + 1)
    rest = [one.within(tighter) for one in operands[1:]]
    return Sql(f" {operator} ".join([first.within(binding), *rest]), binding)


def concatenated(values: Iterable[JsonValue]) -> JsonValue:
    parts = list(values)
    known = [one.value for one in parts if isinstance(one, JsonConstant)]
    if len(known) == len(parts):
        return JsonConstant(constants.joined(known, ""))
    return JsonComputed(called("concat", *map(text_of, parts)), "string", "")


def substring(values: list[JsonValue]) -> JsonValue:
    source, *numbers = values or [JsonConstant(None)]
    counts = [_whole(one) for one in numbers]
    if not 1 <= len(counts) <= 2:
        raise RefusedRule("substr takes a string, a start and perhaps a length")
    if isinstance(source, JsonConstant):
        return JsonConstant(constants.substring(source.value, *counts))
    text = source.sql if isinstance(source, JsonComputed) else sql_of(source)
    start = counts[0]
    if start < 0:
        text, start = called("right", text, literal(-start)), 0
    found = _cut(text, start, counts[1] if len(counts) == 2 else None)
    otherwise = source.otherwise if isinstance(source, JsonComputed) else None
    return JsonComputed(found, "string", constants.substring(otherwise, *counts))


def _cut(text: Sql, start: int, count: int | None) -> Sql:
    begin = literal(start + 1)
    if count is None:
        return called("substring", text, begin) if start else text
    if count >= 0:
        return called("substring", text, begin, literal(count))
    rest = Sql(f"length({text.text}) - {start - count}", Binding.SUM)
    return called("substring", text, begin, called("greatest", rest, Sql("0")))


def _whole(value: JsonValue) -> int:
    found = value.value if isinstance(value, JsonConstant) else None
    if isinstance(found, bool) or not isinstance(found, int) or abs(found) >= 2**31:
        raise RefusedRule(
            "the start and the length of substr are whole numbers, written in the rule"
        )
    return found


def _only(values: list[JsonValue]) -> JsonValue:
    if len(values) != 1:
        raise RefusedRule("log takes one value")
    return values[0]


OPERATIONS: dict[str, Callable[[list[JsonValue]], JsonValue]] = {
    "cat": concatenated,
    "substr": substring,
    "log": _only,
    **{
        sign: (lambda values, sign=sign: arithmetic(sign, values))  # type: ignore[misc]
        for sign in ("+", "-", "*", "/", "%", "min", "max")
    },
}
