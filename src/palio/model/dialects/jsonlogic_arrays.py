"""Operations of JSONLogic on arrays: some, all, none, filter, map, reduce, merge, missing.

An array of the message is searched by a lambda; one that is written in the rule, element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from palio.model.dialects.documents import RefusedRule, literal, within
from palio.model.dialects.jsonlogic_scopes import Scope, element_scope, scope_of, values_scope
from palio.model.dialects.jsonlogic_values import (
    JsonComputed,
    JsonConstant,
    JsonListed,
    JsonValue,
    sql_of,
)
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
)


class RuleReader(Protocol):
    """Translates the rules within a rule."""

    def truth(self, rule: Any, scope: Scope) -> Sql: ...

    def falsity(self, rule: Any, scope: Scope) -> Sql: ...

    def value(self, rule: Any, scope: Scope) -> JsonValue: ...


Arguments: TypeAlias = list[Any]


def elements_of(value: JsonValue) -> tuple[tuple[Sql, JsonValue], ...] | None:
    """The elements of an array that is written in the rule; what is no array has none."""
    if isinstance(value, JsonListed):
        return value.elements
    if isinstance(value, JsonConstant):
        found = value.value if isinstance(value.value, list) else []
        return tuple((TRUE, JsonConstant(one)) for one in found)
    return () if value.kind not in ("any", "array") else None


def is_written(value: JsonValue) -> bool:
    """An array of the rule, not of the message."""
    return isinstance(value, JsonListed) or (
        isinstance(value, JsonConstant) and isinstance(value.value, list)
    )


def _searched(
    reader: RuleReader, arguments: Arguments, scope: Scope
) -> tuple[JsonValue, Callable[[Scope], Sql]]:
    """The array, and the condition for an element."""
    if len(arguments) != 2:
        raise RefusedRule("it takes an array and a rule for its elements")

    def condition(of_element: Scope) -> Sql:
        with within(1):
            return reader.truth(arguments[1], of_element)

    with within(0):
        return reader.value(arguments[0], scope), condition


def some(reader: RuleReader, arguments: Arguments, scope: Scope) -> Sql:
    array, condition = _searched(reader, arguments, scope)
    elements = elements_of(array)
    if elements is None:
        assert isinstance(array, JsonComputed), "it has no elements of its own"
        return over_elements("exists", array.sql, condition(element_scope(EACH)))
    return any_of(all_of([is_in, condition(scope_of(one))]) for is_in, one in elements)


def none(reader: RuleReader, arguments: Arguments, scope: Scope) -> Sql:
    return complement(some(reader, arguments, scope))


def every(reader: RuleReader, arguments: Arguments, scope: Scope) -> Sql:
    """An empty array does not satisfy it."""
    array, condition = _searched(reader, arguments, scope)
    elements = elements_of(array)
    if elements is None:
        assert isinstance(array, JsonComputed), "it has no elements of its own"
        is_filled = comparison(called("size", array.sql), ">", Sql("0"))
        return all_of(
            [is_filled, over_elements("forall", array.sql, condition(element_scope(EACH)))]
        )
    held = [any_of([complement(is_in), condition(scope_of(one))]) for is_in, one in elements]
    return all_of([any_of(is_in for is_in, _ in elements), *held])


def filtered(reader: RuleReader, arguments: Arguments, scope: Scope) -> JsonValue:
    array, condition = _searched(reader, arguments, scope)
    elements = elements_of(array)
    if elements is None:
        assert isinstance(array, JsonComputed), "it has no elements of its own"
        body = condition(element_scope(EACH))
        return JsonComputed(over_elements("filter", array.sql, body), "array", [])
    return listed((all_of([is_in, condition(scope_of(one))]), one) for is_in, one in elements)


def mapped(reader: RuleReader, arguments: Arguments, scope: Scope) -> JsonValue:
    array, _ = _searched(reader, arguments, scope)
    elements = elements_of(array)
    with within(1):
        if elements is None:
            assert isinstance(array, JsonComputed), "it has no elements of its own"
            body = sql_of(reader.value(arguments[1], element_scope(EACH)))
            return JsonComputed(over_elements("transform", array.sql, body), "array", [])
        return listed((is_in, reader.value(arguments[1], scope_of(one))) for is_in, one in elements)


def reduced(reader: RuleReader, arguments: Arguments, scope: Scope) -> JsonValue:
    if not 2 <= len(arguments) <= 3:
        raise RefusedRule("reduce takes an array, a rule and a first value")
    with within(0):
        elements = elements_of(reader.value(arguments[0], scope))
    if elements is None or any(is_in != TRUE for is_in, _ in elements):
        raise RefusedRule(
            "reduce over an array of the message is not supported; some, all and none are, or "
            "publish the result as an attribute"
        )
    with within(2):
        found = reader.value(arguments[2] if len(arguments) > 2 else None, scope)
    with within(1):
        for _, one in elements:
            inner = values_scope({"current": one, "accumulator": found})
            found = reader.value(arguments[1], inner)
    return found


def listed(elements: Any) -> JsonValue:
    """An array of elements under conditions; a constant where all is known."""
    kept = tuple((is_in, one) for is_in, one in elements if is_in != FALSE)
    if all(is_in == TRUE and isinstance(one, JsonConstant) for is_in, one in kept):
        return JsonConstant([one.value for _, one in kept])
    return JsonListed(kept)


def merged(values: list[JsonValue]) -> JsonValue:
    """What is no array is an element."""
    found: list[tuple[Sql, JsonValue]] = []
    for one in values:
        if isinstance(one, JsonComputed) and one.kind in ("any", "array"):
            raise RefusedRule(
                "merge takes arrays that are written in the rule; an attribute may be an array or not"
            )
        found.extend((elements_of(one) or ()) if is_written(one) else [(TRUE, one)])
    return listed(found)


# ---- what is missing


def missing(names: JsonValue, scope: Scope) -> JsonListed:
    """The names of those attributes that are not there, or hold an empty string."""
    found = []
    for is_in, name in (elements_of(names) or ()) if is_written(names) else [(TRUE, names)]:
        is_missing, path = _missing(name, scope)
        found.append((all_of([is_in, is_missing]), path))
    return JsonListed(tuple(found))


def _missing(name: JsonValue, scope: Scope) -> tuple[Sql, JsonValue]:
    if not isinstance(name, JsonConstant) or isinstance(name.value, list | dict):
        raise RefusedRule("the names of attributes are written in the rule")
    path = str(name.value)
    value = scope(path, None)
    if isinstance(value, JsonComputed):
        is_empty = comparison(value.sql, "=", literal(""))
        return any_of([is_null(value.sql), is_empty]), JsonConstant(path)
    is_missing = isinstance(value, JsonConstant) and value.value in (None, "")
    return TRUE if is_missing else FALSE, JsonConstant(path)


def missing_some(arguments: list[JsonValue], scope: Scope) -> JsonListed:
    """None, where at least so many are there."""
    too_few, lacking = _lacking(arguments, scope)
    return JsonListed(tuple((all_of([too_few, one]), name) for one, name in lacking))


def is_some_missing(arguments: list[JsonValue], scope: Scope) -> Sql:
    too_few, lacking = _lacking(arguments, scope)
    return any_of(one for one, _ in lacking) if too_few == TRUE else too_few


def _lacking(
    arguments: list[JsonValue], scope: Scope
) -> tuple[Sql, tuple[tuple[Sql, JsonValue], ...]]:
    """Whether too few attributes are there, and for each whether it is missing."""
    needed = arguments[0].value if arguments and isinstance(arguments[0], JsonConstant) else None
    if len(arguments) != 2 or isinstance(needed, bool) or not isinstance(needed, int | float):
        raise RefusedRule("missing_some takes a number and an array of names")
    lacking = missing(arguments[1], scope).elements
    count = math.ceil(len(lacking) - needed + 1) if abs(needed) < 1e9 else 0
    return _at_least(count, [is_missing for is_missing, _ in lacking]), lacking


def _at_least(count: int, conditions: list[Sql]) -> Sql:
    if count <= 0 or count > len(conditions):
        return TRUE if count <= 0 else FALSE
    if count == 1 or count == len(conditions):
        return any_of(conditions) if count == 1 else all_of(conditions)
    counted = " + ".join(f"CASE WHEN {one.text} THEN 1 ELSE 0 END" for one in conditions)
    return comparison(Sql(counted, Binding.SUM), ">=", literal(count))
