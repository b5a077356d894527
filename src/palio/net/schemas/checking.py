"""A JSON Schema, compiled: is a message valid, and if not, why?

The library answers yes or no in microseconds, and that is all it is asked: its own explanations take
time that grows with the product of message and schema. Why a message is refused is found by asking
smaller schemas, made once: the attributes one by one, then the keywords of the one that is wrong.

The schema sees a message as one object without nesting: the names of nested objects have dots, instants
are RFC 3339 texts, and what JSON cannot write is as `Message.to_json` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import ModuleType
from typing import Any

from palio.errors import MissingSoftware
from palio.model.arrays import jsonable
from palio.model.message import Message
from palio.model.values import format_instant
from palio.net.schemas.rules import UnusableSchema, resolved, work

CHECK_WORK_MAX = 500_000
"""Values of a message times keywords of the schema: about 10 ms."""
_PROGRAM_BYTES = 256 << 10
"""Of a compiled regular expression; one of 1 MiB takes 150 ms for a text of 64 KiB."""
_PLAIN = frozenset({str, int, bool})
_DECLARED = ("$schema", "$id", "id", "$defs", "definitions")
_OF_ATTRIBUTES = ("properties", "patternProperties", "additionalProperties", "propertyNames")
_CONDITION = ("if", "then", "else")
_SIZE = 160


class JsonSchema:
    """Two of the same text are equal, so that reading a configuration again changes nothing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._document = _document(text)
        self._work = work(self._document)
        self._whole = _compiled(self._document)
        top = resolved(self._document, self._document)
        self._top: dict[str, Any] = top if isinstance(top, dict) else {}
        self._of_attributes = self._part(_OF_ATTRIBUTES)
        self._others = [
            (_short({key: self._top[key] for key in keys if key in self._top}), part)
            for keys in self._other_keywords()
            if (part := self._part(keys)) is not None
        ]
        properties = self._top.get("properties", {})
        self._keywords = {name: self._of_property(one) for name, one in properties.items()}
        self._asked = {name: _short(one) for name, one in properties.items()}
        others = {key: self._top[key] for key in _OF_ATTRIBUTES[1:] if key in self._top}
        self._asked_of_others, self._asked_of_all = _short(others), _short(self._document)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonSchema) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __call__(self, message: Message) -> str | None:
        """What is wrong with a message; None: it is valid."""
        most = CHECK_WORK_MAX // self._work
        if _has_more_values(message, most):
            return f"it has more than {most:,} values, which are too many for this schema to check"
        seen = as_object(message)
        return None if self._whole.is_valid(seen) else self._why(seen)

    def _why(self, seen: dict[str, Any]) -> str:
        for name in self._top.get("required", ()):
            if name not in seen:
                return f"it has no attribute {_short(name)}, which is required"
        if self._of_attributes is not None:
            for name, value in seen.items():
                if not self._of_attributes.is_valid({name: value}):
                    return self._why_attribute(name, value)
        for asked, part in self._others:
            if not part.is_valid(seen):
                return f"it must satisfy {asked}"
        return f"it must satisfy {self._asked_of_all}"

    def _why_attribute(self, name: str, value: Any) -> str:
        shown = f"the attribute {_short(name)} is {_short(value)}"
        for asked, part in self._keywords.get(name, ()):
            if not part.is_valid(value):
                return f"{shown}, and must satisfy {asked}"
        if name in self._asked:
            return f"{shown}, and must satisfy {self._asked[name]}"
        if self._top.get("additionalProperties") is False:
            return (
                f"it has the attribute {_short(name)}, and may have only: {_short([*self._asked])}"
            )
        return f"{shown}, and must satisfy {self._asked_of_others}"

    def _other_keywords(self) -> Iterable[tuple[str, ...]]:
        for keyword in self._top:
            if keyword in _CONDITION[1:] or keyword in (*_DECLARED, *_OF_ATTRIBUTES):
                continue
            yield _CONDITION if keyword == "if" else (keyword,)

    def _part(self, keywords: Iterable[str]) -> Any:
        """A schema of only these keywords, for explanations; None: they do not stand alone."""
        own = {key: self._top[key] for key in keywords if key in self._top}
        return self._smaller(own) if own else None

    def _smaller(self, own: Mapping[str, Any]) -> Any:
        declared = self._document if isinstance(self._document, dict) else {}
        shared = {key: declared[key] for key in _DECLARED if key in declared}
        try:
            return _compiled({**shared, **own})
        except UnusableSchema:
            return None

    def _of_property(self, schema: Any) -> list[tuple[str, Any]]:
        """The keywords of a property, each with a schema of it alone."""
        own = resolved(self._document, schema)
        if not isinstance(own, dict):
            return []
        single = [{key: own[key]} for key in own if key not in _CONDITION]
        return [(_short(one), part) for one in single if (part := self._smaller(one)) is not None]


def as_object(message: Message) -> dict[str, Any]:
    """A message as a schema sees it."""
    return {
        name: value if type(value) in _PLAIN else _seen(value) for name, value in message.items()
    }


def _seen(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, tuple):
        return [one if type(one) in _PLAIN else _seen(one) for one in value]
    if isinstance(value, dict):
        return {key: _seen(one) for key, one in value.items()}
    return jsonable(value)


def _has_more_values(message: Message, most: int) -> bool:
    """Are there more values, arrays and their members among them?"""
    left = most
    stack: list[list[Any]] = [list(message.values())]
    while stack and left >= 0:
        values = stack.pop()
        left -= len(values)
        for one in values:
            if type(one) is tuple and left >= 0:
                stack.append(list(one))
            elif isinstance(one, dict):
                stack.append(list(one.values()))
    return left < 0


def _document(text: str) -> Any:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise UnusableSchema("it is nested too deep") from None
    except ValueError as error:
        raise UnusableSchema(f"it is not JSON: {error}") from None
    if not isinstance(found, dict | bool):
        raise UnusableSchema("it is not a schema: that is a JSON object {...}")
    return found


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def _compiled(schema: Any) -> Any:
    library = _library()
    try:
        return library.validator_for(
            schema,
            offline=True,
            pattern_options=library.RegexOptions(size_limit=_PROGRAM_BYTES),
            validate_formats=True,
            ignore_unknown_formats=False,
        )
    except library.ValidationError as error:
        place = "/".join(map(str, error.instance_path))
        if place.endswith("pattern"):
            raise UnusableSchema(
                f"the pattern {str(error.instance)[:100]!r} is too large, or no regular expression in "
                "the syntax of RE2",
                f"#/{place}",
            ) from None
        raise UnusableSchema(
            f"it is not a valid schema: {str(error.message)[:400]}", f"#/{place}" if place else ""
        ) from None
    except ValueError as error:
        raise UnusableSchema(f"it is not a valid schema: {str(error)[:400]}") from None


def _library() -> ModuleType:
    try:
        import jsonschema_rs
    except ModuleNotFoundError:
        raise MissingSoftware(
            "[schemas] needs the package jsonschema-rs: pip install 'palio[schemas]', or leave the "
            "sections out"
        ) from None
    return jsonschema_rs


def _short(value: Any) -> str:
    """JSON that is not long; of what is long, only the beginning is written."""
    if isinstance(value, str):
        value = value[:_SIZE]
    elif isinstance(value, list):
        value = [_short_member(one) for one in value[:20]]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SIZE else text[: _SIZE - 3] + "..."


def _short_member(value: Any) -> Any:
    return value[:_SIZE] if isinstance(value, str) else value
