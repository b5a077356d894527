"""Where in a message a field of a query is looked for: along its path, and within arrays on the way.

'a.b': 1      a.b = 1                                       the attribute
              array_contains(a.b, 1)                        an element of it, where it is an array
              exists(a, each -> each.b = 1 OR ...)          in the elements of an array of objects
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from palio.model.dialects.paths import attribute_at, field_at, is_index, segments_of
from palio.model.dialects.translation import (
    EACH,
    FALSE,
    TRUE,
    Sql,
    all_of,
    any_of,
    called,
    is_null,
    over_elements,
    settled,
)


@dataclass(frozen=True, slots=True)
class FieldTest:
    """What one operator asks: of a value, and of an array of which one element is to satisfy it.

    `elements` is None where only the whole value counts. What `accepts_missing` holds without it too.
    """

    value: Callable[[Sql], Sql]
    elements: Callable[[Sql], Sql] | None = None
    accepts_missing: bool = False


LAMBDAS_MAX = 3
"""Within each other, as in the language."""


def exists(array: Sql, condition: Sql) -> Sql:
    """An element satisfies it. Deeper than the language goes nothing is looked for."""
    if condition == FALSE or condition.lambdas >= LAMBDAS_MAX:
        return FALSE
    return over_elements("exists", array, condition)


@dataclass(frozen=True, slots=True)
class AnyArrays(Container[str]):
    """Every attribute may hold an array."""

    def __contains__(self, _name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class MessageFields:
    """The fields of a message; `arrays` are the names of those that may hold arrays.

    A test of a field is several constraints, or one expression where it `stays_whole`.
    """

    arrays: Container[str]
    stays_whole: bool = False

    def holds(self, path: str, test: FieldTest) -> Sql:
        segments = segments_of(path)
        value = attribute_at(segments)
        nested = [
            (attribute_at(segments[:count]), segments[count:])
            for count in range(1, len(segments))
            if ".".join(segments[:count]) in self.arrays and not is_index(segments[count])
        ]
        direct = test.value(value)
        if test.accepts_missing:  # and not because an array stands on the way
            direct = all_of([direct, *(is_null(called("size", array)) for array, _ in nested)])
        parts = [direct]
        if test.elements is not None and path in self.arrays:
            parts.append(test.elements(value))
        parts.extend(exists(array, _in_element(EACH, rest, test)) for array, rest in nested)
        found = any_of(parts)
        if not self.stays_whole or found in (TRUE, FALSE, direct):
            return found
        return settled(found)


@dataclass(frozen=True, slots=True)
class ElementFields:
    """The fields of an element of an array."""

    def holds(self, path: str, test: FieldTest) -> Sql:
        return _in_element(EACH, segments_of(path), test)


Fields = MessageFields | ElementFields


def _in_element(element: Sql, segments: list[str], test: FieldTest) -> Sql:
    value = field_at(element, segments)
    parts = [test.value(value)]
    if test.elements is not None:
        parts.append(test.elements(value))
    for count in range(1, len(segments)):
        if not is_index(segments[count]):
            array = field_at(element, segments[:count])
            parts.append(exists(array, _in_element(EACH, segments[count:], test)))
    return any_of(parts)
