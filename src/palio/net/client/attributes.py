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


def to_bytes(attributes: Message | Mapping[str, object]) -> bytes:
    """
    >>> to_bytes({"dest": "MXP", "price": 450}), to_bytes({"x": float("nan")})
    (b'{"dest":"MXP","price":450}', b'{"x": {"$float": "NaN"}}')
    """
    if type(attributes) is dict and _is_plain(attributes):
        try:
            return _encode(attributes)
        except UnicodeEncodeError:
            pass  # the model's error names the attribute
    return as_message(attributes).to_json().encode()


def _is_plain(attributes: dict[Any, Any]) -> bool:
    """Does msgspec write these names and values exactly as the model does?"""
    for name, value in attributes.items():
        kind = type(value)
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:
                return False
        elif kind is float:
            if value - value != 0.0:  # infinite or NaN
                return False
        elif kind is not str and kind is not bool:
            return False
        if type(name) is not str or not name:
            return False
    return True


def from_bytes(data: bytes | str) -> Message:
    """
    >>> from_bytes(b'{"dest":"MXP","at":{"$time":"2013-01-31T10:00:00Z"}}')["at"].year
    2013
    """
    try:
        values = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Message.from_json(data)  # its error says what is wrong
    return Message.of_checked(values) if _is_plain(values) else Message.from_json(data)


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
