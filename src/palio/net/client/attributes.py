"""Attributes on the wire: from a mapping to the bytes of a JSON object, and back to a Message.

Most messages hold plain strings and numbers; msgspec writes and reads those ten times faster than
the model's own JSON. Values that msgspec writes differently from the model (instants, NaN,
integers beyond 64 bits, other types) go through the model, with its checks and its errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from palio.errors import InvalidValue
from palio.model.message import Message, as_message
from palio.model.values import INT_MAX, INT_MIN

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_NOT_PLAIN = -1


def to_bytes(attributes: Message | Mapping[str, object]) -> bytes:
    """
    >>> to_bytes({"dest": "MXP", "price": 450}), to_bytes({"x": float("nan")})
    (b'{"dest":"MXP","price":450}', b'{"x": {"$float": "NaN"}}')
    """
    if type(attributes) is dict and _quotes(attributes) != _NOT_PLAIN:
        try:
            return _encode(attributes)
        except UnicodeEncodeError:
            pass  # the model's error names the attribute
    return as_message(attributes).to_json().encode()


def _quotes(attributes: dict[Any, Any]) -> int:
    """The least quotation marks with which these attributes are written, or _NOT_PLAIN if msgspec
    does not write these names and values exactly as the model does."""
    quotes = 2 * len(attributes)
    for name, value in attributes.items():
        kind = type(value)
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:
                return _NOT_PLAIN
        elif kind is float:
            if value - value != 0.0:  # infinite or NaN
                return _NOT_PLAIN
        elif kind is str:
            quotes += 2
        elif kind is not bool:
            return _NOT_PLAIN
        if type(name) is not str or not name:
            return _NOT_PLAIN
    return quotes


def from_bytes(data: bytes | str) -> Message:
    """
    >>> from_bytes(b'{"dest":"MXP","at":{"$time":"2013-01-31T10:00:00Z"}}')["at"].year
    2013
    """
    try:
        values = _decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Message.from_json(data)  # its error says what is wrong
    # msgspec takes the last of attributes of one name: then there are more quotation marks.
    quotes = data.count(b'"') if isinstance(data, bytes) else data.count('"')
    return Message.of_checked(values) if _quotes(values) == quotes else Message.from_json(data)


def as_body(body: object) -> bytes:
    """The body of a message.

    >>> as_body(bytearray(b"report"))
    b'report'
    """
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise InvalidValue(
        f"the body of a message is bytes, not a {type(body).__name__}",
        remedy="encode a text, for example with text.encode()",
    )
