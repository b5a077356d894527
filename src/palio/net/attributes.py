"""Attributes on their way: a mapping to the bytes of a JSON object, and back to a Message.

Most messages hold plain strings and numbers; msgspec writes and reads those ten times faster than
the model's own JSON. Whatever it would write otherwise than the model (instants, NaN, odd types,
integers beyond 64 bits) takes the model's way, with its checks and its errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

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
            pass  # the model says which attribute it is
    return as_message(attributes).to_json().encode()


def _is_plain(attributes: dict[Any, Any]) -> bool:
    """Are these names and values as the model wants them, and as JSON has them?"""
    for name, value in attributes.items():
        kind = type(value)
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:
                return False
        elif kind is float:
            if value - value != 0.0:  # infinite, or no number
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
        return Message.from_json(data)  # says what is wrong
    return Message.of_checked(values) if _is_plain(values) else Message.from_json(data)
