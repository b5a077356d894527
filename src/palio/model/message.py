"""Messages: sets of attributes, one value for each name.

An attribute that is None is not there, as NULL in SQL. In JSON, nested objects are flattened
with dots, and the two values that JSON cannot write are one-key objects:
`{"$time": "2013-01-31T10:00:00Z"}` and `{"$float": "NaN"}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from palio.errors import InvalidValue
from palio.model.values import (
    Type,
    Value,
    as_name,
    as_value,
    format_instant,
    parse_instant,
    type_of,
)

DEPTH_MAX = 64
"""Objects in objects of a message in JSON. The same for every reader: what Python's stack has room for
depends on who calls."""
PREFIXES_MAX = 1 << 20
"""Characters that the names of nested attributes repeat: `{"a": {"b": 1, "c": 2}}` repeats `a` twice.
A short text could stand for gigabytes of names."""

MESSAGE_BYTES, ATTRIBUTE_BYTES = 400, 150
"""What a message and each of its attributes take in memory, beside the characters of strings."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a message: a name and a typed value."""

    name: str
    value: Value

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", as_name(self.name))
        object.__setattr__(self, "value", as_value(self.name, self.value))

    @property
    def type(self) -> Type:
        return type_of(self.value)


class Message(Mapping[str, Value]):
    """An immutable set of attributes.

    >>> Message({"dest": "MXP", "price": 450, "gate": None})
    Message({'dest': 'MXP', 'price': 450})
    """

    __slots__ = ("_bytes", "_values")
    _bytes: int
    _values: dict[str, Value]

    def __init__(self, attributes: Mapping[str, object] | Iterable[Attribute] = ()) -> None:
        if isinstance(attributes, Mapping):
            values = {
                as_name(name): as_value(name, value)
                for name, value in attributes.items()
                if value is not None
            }
        else:
            values = {}
            for attribute in attributes:
                if attribute.name in values:
                    raise InvalidValue(f"the attribute {attribute.name!r} is there twice")
                values[attribute.name] = attribute.value
        object.__setattr__(self, "_values", values)

    @classmethod
    def of_checked(cls, values: dict[str, Value]) -> Message:
        """A message of names and values that are checked already. It keeps the dict: do not change it."""
        message = cls.__new__(cls)
        object.__setattr__(message, "_values", values)
        return message

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Message is immutable; make a new one")

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __eq__(self, other: object) -> bool:
        """Equal attributes of equal types: 1 and 1.0 differ here, NaN equals NaN."""
        if not isinstance(other, Message):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"Message({self._values!r})"

    def __reduce__(self) -> tuple[type[Message], tuple[dict[str, Value]]]:
        return (Message, (self._values,))

    def _identity(self) -> frozenset[tuple[str, Type, object]]:
        return frozenset(
            (name, type_of(value), "NaN" if value != value else value)
            for name, value in self._values.items()
        )

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        return tuple(Attribute(name, value) for name, value in self._values.items())

    @property
    def memory_bytes(self) -> int:
        """About how many bytes of memory the message takes; computed once."""
        try:
            return self._bytes
        except AttributeError:
            found = MESSAGE_BYTES + sum(
                ATTRIBUTE_BYTES + _text_bytes(name) + _text_bytes(value)
                for name, value in self._values.items()
            )
            object.__setattr__(self, "_bytes", found)
            return found

    def to_json(self) -> str:
        """One JSON object, names in the order of the message."""
        return json.dumps(
            {name: _json_value(value) for name, value in self._values.items()}, ensure_ascii=False
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Message:
        """Read one JSON object; bytes are UTF-8 without a byte order mark.

        >>> Message.from_json('{"flight": {"carrier": "UA"}, "delay": 12}')
        Message({'flight.carrier': 'UA', 'delay': 12})
        """
        try:
            document = _decode(text if isinstance(text, str) else str(text, "utf-8"))
        except RecursionError:
            raise InvalidValue(f"a message is nested at most {DEPTH_MAX} levels deep") from None
        except UnicodeDecodeError as error:
            raise InvalidValue(
                f"the message is not UTF-8: {error.reason} at byte {error.start}"
            ) from None
        except ValueError as error:
            raise InvalidValue(f"the message is not JSON: {error}") from None
        if type(document) is not _Pairs:
            raise InvalidValue("the message is not a JSON object {...}")
        values: dict[str, object] = {}
        for name, value in _flatten("", document):
            if name in values:
                raise InvalidValue(f"the attribute {name!r} is there twice")
            values[name] = value
        return cls(values)


def as_message(message: Message | Mapping[str, object]) -> Message:
    """The message itself, or one made from a mapping."""
    if isinstance(message, Message):
        return message
    if isinstance(message, Mapping):
        return Message(message)
    raise InvalidValue(f"a message is a Message or a mapping, not a {type(message).__name__}")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands in the text, so that a repeated key is seen."""


def _flatten(prefix: str, pairs: _Pairs) -> Iterator[tuple[str, object]]:
    stack = [(prefix, iter(pairs))]
    prefixes = 0
    while stack:
        path, rest = stack[-1]
        entry = next(rest, None)
        if entry is None:
            stack.pop()
            continue
        key, value = entry
        name = f"{path}.{key}" if path else key
        if isinstance(value, list) and not isinstance(value, _Pairs):
            raise InvalidValue("an array is not a value", attribute=name)
        if not isinstance(value, _Pairs):
            if isinstance(value, float) and math.isinf(value):
                raise InvalidValue("the number does not fit in a double", attribute=name)
            yield name, value
        elif len(value) == 1 and value[0][0] in _TAGS:
            yield name, _untag(name, *value[0])
        else:
            prefixes += len(name) * len(value)
            if len(stack) == DEPTH_MAX:
                raise InvalidValue(f"a message is nested at most {DEPTH_MAX} levels deep")
            if prefixes > PREFIXES_MAX:
                raise InvalidValue(
                    f"the names of nested attributes repeat more than {PREFIXES_MAX} characters of "
                    "the objects around them",
                    remedy="choose shorter names for these objects",
                )
            stack.append((name, iter(value)))


def _refuse_constant(word: str) -> object:
    raise ValueError(f'{word} is not JSON; write {{"$float": "{word}"}}')


_decode = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_refuse_constant).decode
"""Made once: json.loads would make a decoder for each message."""


def _json_value(value: Value) -> object:
    if isinstance(value, datetime):
        return {"$time": format_instant(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"}
    return value


_TAGS = frozenset({"$time", "$float"})
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _untag(name: str, tag: str, value: object) -> Value:
    if not isinstance(value, str):
        raise InvalidValue(f"{tag} takes a string", attribute=name)
    if tag == "$time":
        return parse_instant(value)
    if value not in _FLOATS:
        raise InvalidValue(f"$float takes one of {', '.join(_FLOATS)}", attribute=name)
    return _FLOATS[value]


def _text_bytes(value: Value) -> int:
    """The characters of a string in memory: one byte each, or up to four."""
    if not isinstance(value, str):
        return 0
    return len(value) if value.isascii() else 4 * len(value)
