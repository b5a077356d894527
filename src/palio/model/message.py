"""Messages: sets of attributes, one value for each name.

An attribute that is None is not there, as NULL in SQL. It holds a value, an array or bytes (`arrays`).
Objects inside a message (JSON objects, dicts, rows of Spark) are flattened with dots, and what JSON
cannot write is there a one-key object: `{"$time": "2013-01-31T10:00:00Z"}`, `{"$float": "NaN"}`,
`{"$binary": "aGk="}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from palio.errors import InvalidValue
from palio.model.arrays import (
    DEPTH_MAX,
    Content,
    JsonObject,
    as_content,
    identity,
    is_array,
    jsonable,
    memory_bytes,
    tagged,
    too_deep,
    unwrapped,
)
from palio.model.expressions.decimals import Exact
from palio.model.long_decimals import LongDecimal
from palio.model.values import PLAIN, Type, as_name, as_value, kind_of

PREFIXES_MAX = 1 << 20
"""Characters that the names of nested attributes repeat: `{"a": {"b": 1, "c": 2}}` repeats `a` twice.
A short text could stand for gigabytes of names."""

MESSAGE_BYTES, ATTRIBUTE_BYTES = 400, 150
"""What a message and each of its attributes take in memory, beside the characters of strings."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a message: a name and a typed value."""

    name: str
    value: Content

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", as_name(self.name))
        object.__setattr__(self, "value", as_content(self.name, self.value))

    @property
    def type(self) -> Type | None:
        """None: the value is an array, or bytes."""
        return kind_of(self.value)


class Message(Mapping[str, Content]):
    """An immutable set of attributes.

    >>> Message({"dest": "MXP", "price": 450, "gate": None})
    Message({'dest': 'MXP', 'price': 450})
    """

    __slots__ = ("_bytes", "_compared", "_exact", "_values")
    _bytes: int
    _compared: dict[str, Any]
    _exact: dict[str, Exact] | None
    _values: dict[str, Content]

    def __init__(self, attributes: Mapping[str, object] | Iterable[Attribute] = ()) -> None:
        values: dict[str, Content]
        exact: dict[str, Exact] = {}
        if not isinstance(attributes, Mapping):
            attributes = unwrapped(attributes)  # type: ignore[assignment]
        if isinstance(attributes, Mapping):
            try:
                values = {
                    as_name(name): as_value(name, value)
                    for name, value in attributes.items()
                    if value is not None
                }
                if Decimal in map(type, attributes.values()):
                    exact = _exact(attributes.items())
            except InvalidValue:  # a value that is none: an array, an object, or an error
                values = contents(attributes, exact=exact)
        else:
            values = {}
            for attribute in attributes:
                if attribute.name in values:
                    raise InvalidValue(f"the attribute {attribute.name!r} is there twice")
                values[attribute.name] = attribute.value
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_exact", exact or None)

    @classmethod
    def of_checked(
        cls, values: dict[str, Content], exact: dict[str, Exact] | None = None
    ) -> Message:
        """A message of names and values that are checked already. It keeps the dicts: do not change them."""
        message = cls.__new__(cls)
        object.__setattr__(message, "_values", values)
        object.__setattr__(message, "_exact", exact)
        return message

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Message is immutable; make a new one")

    def __getitem__(self, name: str) -> Content:
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
        values = {
            name: value.value if isinstance(value, LongDecimal) else value
            for name, value in self.compared.items()
        }
        return f"Message({values!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Message.of_checked, (self._values, self._exact))

    def _identity(self) -> frozenset[tuple[object, ...]]:
        return frozenset(
            (name, type(value), "NaN" if value != value else value)
            if type(value) in PLAIN
            else (name, identity(value))
            for name, value in self._values.items()
        )

    @property
    def exact(self) -> Mapping[str, Exact]:
        """The attributes that were decimals, of up to 38 digits: expressions compute with them exactly."""
        return self._exact or {}

    @property
    def compared(self) -> Mapping[str, Content | LongDecimal]:
        """The attributes as constraints compare them: decimals exactly."""
        return self._values if self._exact is None else self._compared_exactly()

    def _compared_exactly(self) -> dict[str, Any]:
        try:
            return self._compared
        except AttributeError:
            long = {
                name: found
                for name, exact in self.exact.items()
                if type(found := exact.compared) is LongDecimal
            }
            merged: dict[str, Any] = {**self._values, **long} if long else self._values
            object.__setattr__(self, "_compared", merged)
            return merged

    @property
    def read(self) -> Mapping[str, Any]:
        """The attributes as expressions read them."""
        return self._values if self._exact is None else {**self._values, **self._exact}

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
                ATTRIBUTE_BYTES
                + _text_bytes(name)
                + (_text_bytes(value) if type(value) in PLAIN else memory_bytes(value))
                for name, value in self._values.items()
            )
            object.__setattr__(self, "_bytes", found)
            return found

    def to_json(self) -> str:
        """One JSON object, names in the order of the message."""
        return json.dumps(
            {name: jsonable(value) for name, value in self._values.items()}, ensure_ascii=False
        )

    def shown(self) -> str:
        """As `to_json`, with all digits of decimals: for people.

        >>> print(Message({"d": Decimal("0.10000000000000001")}).shown())
        {"d": 0.10000000000000001}
        """
        if self.compared is self._values:
            return self.to_json()
        pairs = (
            f"{json.dumps(name, ensure_ascii=False)}: {_digits(value)}"
            for name, value in self.compared.items()
        )
        return f"{{{', '.join(pairs)}}}"

    @classmethod
    def from_json(cls, text: str | bytes) -> Message:
        """Read one JSON object; bytes are UTF-8 without a byte order mark.

        >>> Message.from_json('{"flight": {"carrier": "UA"}, "delay": 12}')
        Message({'flight.carrier': 'UA', 'delay': 12})
        """
        try:
            document = _decode(text if isinstance(text, str) else str(text, "utf-8"))
        except RecursionError:
            raise too_deep() from None
        except UnicodeDecodeError as error:
            raise InvalidValue(
                f"the message is not UTF-8: {error.reason} at byte {error.start}"
            ) from None
        except ValueError as error:
            raise InvalidValue(f"the message is not JSON: {error}") from None
        if type(document) is not JsonObject:
            raise InvalidValue("the message is not a JSON object {...}")
        return cls.of_checked(contents(document))


def _digits(value: Content | LongDecimal) -> str:
    if isinstance(value, LongDecimal):
        return f"{value.value:f}"
    return json.dumps(jsonable(value), ensure_ascii=False)


def as_message(message: Message | Mapping[str, object]) -> Message:
    """The message itself, or one made from a mapping."""
    if isinstance(message, Message):
        return message
    opened = unwrapped(message)
    if isinstance(opened, Mapping):
        return Message(opened)
    raise InvalidValue(f"a message is a Message or a mapping, not a {type(message).__name__}")


def contents(
    message: Mapping[Any, Any] | JsonObject,
    asked: Container[str] | None = None,
    exact: dict[str, Exact] | None = None,
) -> dict[str, Content]:
    """What the attributes of a message hold; of names not asked for, arrays are left out unread.

    `exact` is filled with the decimals among them.
    """
    values: dict[str, Content] = {}
    absent: set[str] = set()
    for name, value, depth in _leaves(message):
        if name in values or name in absent:
            raise InvalidValue(f"the attribute {name!r} is there twice")
        if type(value) in PLAIN:
            values[name] = as_value(as_name(name), value)
            if exact is not None and type(value) is Decimal:
                exact |= _exact([(name, value)])
            continue
        held = None
        if value is not None:
            as_name(name)
            if asked is None or name in asked or not is_array(value):
                held = as_content(name, value, depth)
        if held is None:
            absent.add(name)
        else:
            values[name] = held
    return values


def _exact(items: Iterable[tuple[str, object]]) -> dict[str, Exact]:
    decimals = ((name, Exact.of_decimal(value)) for name, value in items if type(value) is Decimal)
    return {name: found for name, found in decimals if found is not None}


def _leaves(message: Mapping[Any, Any] | JsonObject) -> Iterator[tuple[str, object, int]]:
    """Each name, with the names of the objects around it, what it has, and in how many objects."""
    is_json, prefixes = isinstance(message, JsonObject), 0
    stack = [("", iter(message) if is_json else _pairs(message))]
    while stack:
        path, rest = stack[-1]
        entry = next(rest, None)
        if entry is None:
            stack.pop()
            continue
        key, value = entry
        if not isinstance(key, str):
            as_name(key)  # says so
        name = f"{path}.{key}" if path else key
        kind = type(value)
        if kind in PLAIN or value is None:
            if kind is float and is_json and math.isinf(value):
                raise InvalidValue("the number does not fit in a double", attribute=name)
            yield name, value, len(stack)
            continue
        value = unwrapped(value)
        if not isinstance(value, JsonObject | Mapping):
            yield name, value, len(stack)
        elif (found := tagged(name, value)) is not None:
            yield name, found, len(stack)
        else:
            prefixes += len(name) * len(value)
            if len(stack) == DEPTH_MAX:
                raise too_deep()
            if prefixes > PREFIXES_MAX:
                raise InvalidValue(
                    f"the names of nested attributes repeat more than {PREFIXES_MAX} characters of "
                    "the objects around them",
                    remedy="choose shorter names for these objects",
                )
            stack.append((name, _pairs(value)))


def _pairs(items: JsonObject | Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    return iter(items if isinstance(items, JsonObject) else items.items())


def _refuse_constant(word: str) -> object:
    raise ValueError(f'{word} is not JSON; write {{"$float": "{word}"}}')


_decode = json.JSONDecoder(object_pairs_hook=JsonObject, parse_constant=_refuse_constant).decode
"""Made once: json.loads would make a decoder for each message."""


def _text_bytes(value: object) -> int:
    """The characters of a string in memory: one byte each, or up to four."""
    if not isinstance(value, str):
        return 0
    return len(value) if value.isascii() else 4 * len(value)
