"""Rules that are JSON documents: reading the text, bounds, and where in it something is wrong.

A reader that refuses something says what, and the way to it is collected as the error passes outward:
keys and indexes. `located` finds the character.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from palio.errors import InvalidPredicate, InvalidValue, LimitExceeded, ParseError
from palio.model.dialects.translation import Sql
from palio.model.sql_text import value_sql
from palio.model.values import as_value, shortened

TEXT_MAX = 16_000_000
"""Characters of a document."""
DEPTH_MAX = 40
"""Arrays and objects around each other."""
VALUES_MAX = 500_000
"""In a document, those within others included."""
OBJECTS_MAX = 10_000
"""Among them: each is a condition or a computation."""

Step: TypeAlias = "str | int"


class RefusedRule(Exception):
    """Something that a reader does not take; `path` leads to it, from the inside outward."""

    def __init__(self, reason: str, *, is_limit: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.is_limit = reason, is_limit
        self.path: list[Step] = []


@contextmanager
def within(*steps: Step) -> Iterator[None]:
    """What is refused in this block lies there."""
    try:
        yield
    except RefusedRule as error:
        error.path.extend(reversed(steps))
        raise


def document_of(source: object, what: str) -> tuple[Any, str]:
    """The document, and its text where it came as one."""
    text = source if isinstance(source, str) else ""
    document = _decoded(text, what) if isinstance(source, str) else source
    _check_size(document, text, what)
    return document, text


def located(error: RefusedRule, text: str) -> ParseError:
    """The error for the user; it points at the character, if there is a text."""
    path = error.path[::-1]
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    place = f", at {shown.removeprefix('.')[:200]}" if path and not text else ""
    kind = LimitExceeded if error.is_limit else ParseError
    return kind(error.reason + place, text, _position(text, path) if text else 0)


def literal(value: object) -> Sql:
    """A value as a literal of SQL."""
    try:
        known = as_value("literal", value)
    except InvalidValue as error:
        raise RefusedRule(error.reason) from None
    if isinstance(known, float) and known != known:
        raise RefusedRule("NaN is compared with nothing")
    if isinstance(known, float) and math.isfinite(known):
        return Sql(f"{known!r}D")  # without the D it would be a decimal within an expression
    return Sql(value_sql(known))


# ---- reading


def _decoded(text: str, what: str) -> Any:
    if len(text) > TEXT_MAX:
        raise LimitExceeded(f"the {what} has {len(text):,} characters, the limit is {TEXT_MAX:,}")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ParseError(f"the {what} is not JSON: {error.msg}", text, error.pos) from None
    except RecursionError:
        raise LimitExceeded(f"the {what} is nested more than {DEPTH_MAX} deep", text) from None
    except ValueError as error:
        raise ParseError(f"the {what} is not JSON: {error}", text) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counted.items() if count > 1)
        raise ValueError(f"the key {shortened(twice)} is there twice in an object")
    return made


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _check_size(document: Any, text: str, what: str) -> None:
    left, objects = VALUES_MAX, OBJECTS_MAX
    level = [document]
    for _ in range(DEPTH_MAX + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                objects -= 1
                for key in one:
                    if not isinstance(key, str):
                        raise InvalidPredicate(
                            f"the keys of a {what} are strings, not {shortened(key)}"
                        )
                inner.extend(one.values())
            elif isinstance(one, list | tuple):
                inner.extend(one)
        if objects < 0:
            raise LimitExceeded(f"the {what} has more than {OBJECTS_MAX:,} objects")
        if not inner:
            return
        left -= len(inner)
        if left < 0:
            raise LimitExceeded(f"the {what} has more than {VALUES_MAX:,} values")
        level = inner
    raise LimitExceeded(f"the {what} is nested more than {DEPTH_MAX} deep", text)


# ---- places

_BLANKS = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


def _position(text: str, path: list[Step]) -> int:
    """Where the value at the end of a path begins."""
    at = _past_blanks(text, 0)
    for step in path:
        inner = _inner_position(text, at, step)
        if inner is None:
            return at
        at = inner
    return at


def _inner_position(text: str, at: int, step: Step) -> int | None:
    """Of one key or index of the value that begins at `at`."""
    is_object = text[at] == "{"
    if (text[at] not in "{[") or is_object is not isinstance(step, str):
        return None
    at = _past_blanks(text, at + 1)
    number = 0
    while text[at] not in "}]":
        key: Step = number
        if is_object:
            key, at = _decode(text, at)
            at = _past_blanks(text, _past_blanks(text, at) + 1)  # the colon
        if key == step:
            return at
        _, at = _decode(text, at)
        at = _past_blanks(text, at)
        if text[at] == ",":
            at = _past_blanks(text, at + 1)
        number += 1
    return None


def _past_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
