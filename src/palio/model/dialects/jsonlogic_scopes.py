"""What `var` means: in a message, in an element of an array, in constants, and within reduce."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from palio.model.dialects.documents import RefusedRule
from palio.model.dialects.jsonlogic_values import NOTHING, JsonComputed, JsonConstant, JsonValue
from palio.model.dialects.paths import attribute_at, field_at, is_index, segments_of
from palio.model.dialects.translation import Sql

Scope: TypeAlias = Callable[[str, Any], JsonValue]
"""From a path and a default to the value."""


def message_scope(path: str, default: Any) -> JsonValue:
    """An attribute. A number in its path, but not in front, is an element of an array."""
    return JsonComputed(_attribute(path), otherwise=default)


def whole_scope(path: str, default: Any) -> JsonValue:
    """An attribute, each test of which is one constraint."""
    return JsonComputed(_attribute(path), otherwise=default, stays_whole=True)


def _attribute(path: str) -> Sql:
    if not path:
        raise RefusedRule('var "" is the whole message here; name an attribute')
    return attribute_at(segments_of(path))


def element_scope(element: Sql) -> Scope:
    """An element of an array: "" is the element itself, the rest are its fields."""

    def value_at(path: str, default: Any) -> JsonValue:
        found = field_at(element, segments_of(path) if path else ())
        return JsonComputed(found, otherwise=default, stays_whole=True)

    return value_at


def constant_scope(data: Any) -> Scope:
    def value_at(path: str, default: Any) -> JsonValue:
        found = data
        for name in path.split(".") if path else []:
            if isinstance(found, dict):
                found = found.get(name)
            elif isinstance(found, list) and is_index(name) and int(name) < len(found):
                found = found[int(name)]
            else:
                found = None
        return JsonConstant(default if found is None else found)

    return value_at


def scope_of(value: JsonValue) -> Scope:
    """Where rules see this value as their data."""
    if isinstance(value, JsonConstant):
        return constant_scope(value.value)
    if isinstance(value, JsonComputed):
        return element_scope(value.sql)
    raise RefusedRule("an array of arrays of attributes cannot be searched")


def values_scope(values: Mapping[str, JsonValue]) -> Scope:
    """Several values under names: within reduce."""

    def value_at(path: str, default: Any) -> JsonValue:
        name, _, rest = path.partition(".")
        if name not in values:
            return JsonConstant(default)
        if not rest:
            found = values[name]
            return JsonConstant(default) if found == NOTHING else found
        return scope_of(values[name])(rest, default)

    return value_at
