"""Paths with dots as attributes of messages and fields of the elements of arrays."""

from __future__ import annotations

from collections.abc import Sequence

from palio.errors import InvalidValue
from palio.model.dialects.documents import RefusedRule
from palio.model.dialects.translation import Sql
from palio.model.sql_text import name_sql
from palio.model.values import as_name

SEGMENTS_MAX = 32


def segments_of(path: str) -> list[str]:
    found = path.split(".")
    if len(found) > SEGMENTS_MAX:
        raise RefusedRule(f"a path has at most {SEGMENTS_MAX} parts")
    return found


def is_index(segment: str) -> bool:
    return segment.isascii() and segment.isdigit() and len(segment) < 10


def attribute_at(segments: Sequence[str]) -> Sql:
    """An attribute. A number in its path, but not in front, is an element of an array."""
    count = next((at for at, one in enumerate(segments) if at and is_index(one)), len(segments))
    return field_at(Sql(_name(".".join(segments[:count]))), segments[count:])


def field_at(base: Sql, segments: Sequence[str]) -> Sql:
    """A field of an element, a field of that, and so on."""
    steps = [f"[{int(one)}]" if is_index(one) else f".{_name(one)}" for one in segments]
    return Sql(base.text + "".join(steps))


def _name(name: str) -> str:
    try:
        return name_sql(as_name(name))
    except InvalidValue as error:
        raise RefusedRule(error.reason) from None
