"""One message as words: heads and values, doubles and strings, for the kernel of single messages.

A mapping of plain values becomes no `Message`: values are checked as they are packed, with the
errors that `Message` gives; arrays of names that the table does not know are passed over unread. `pivot/single_kernels.py` draws the words.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from palio.matching.encode import codes
from palio.model.arrays import array_text, as_content, is_array, unwrapped
from palio.model.expressions.decimals import Exact
from palio.model.long_decimals import LongDecimal
from palio.model.message import Message, contents
from palio.model.values import INT_MAX, INT_MIN, PLAIN, as_name, as_value, instant_micros

_PLAIN = frozenset((str, int, float))


@lru_cache(maxsize=1024)
def packing(ints: int, doubles: int) -> struct.Struct:
    """How so many ints and doubles are written as words."""
    return struct.Struct(f"={ints}q{doubles}d")


def flattened(
    heads: Mapping[str, int], message: Mapping[str, Any]
) -> tuple[list[int], list[float], list[bytes]]:
    """Heads and values, doubles and strings of the attributes whose names the table knows."""
    if type(message) is Message:
        message = message.compared
    flat: list[int] = []
    doubles: list[float] = []
    texts: list[bytes] = []
    for name, value in message.items():
        if value is None:
            continue
        head = heads.get(name)
        kind = type(value)
        if head is None:
            as_name(name)
            if kind in PLAIN:
                as_value(name, value)
            elif kind is not LongDecimal and not is_array(value):
                if isinstance(unwrapped(value), Mapping):
                    return flattened(heads, _unnested(heads, message))
                as_content(name, value)
            continue
        if kind not in _PLAIN:
            if kind not in PLAIN and isinstance(unwrapped(value), Mapping):
                return flattened(heads, _unnested(heads, message))
            if kind is Decimal:
                value = _compared(name, value)
            elif kind is not LongDecimal:
                value = as_content(name, value)
            kind = type(value)
        if kind is str:
            try:
                text = value.encode()
            except UnicodeEncodeError:
                as_value(name, value)  # says which attribute it is
                raise
            texts.append(text)
            flat += (head | codes.STRING, len(text))
        elif kind is float:
            flat += (head | codes.FLOAT, len(doubles))
            doubles.append(value)
        elif kind is LongDecimal:
            below = value.below
            if isinstance(below, int):
                flat += (head | codes.ABOVE_INT, below)
            else:
                flat += (head | codes.ABOVE_FLOAT, len(doubles))
                doubles.append(below)
        elif kind is datetime:
            flat += (head | codes.TIME, instant_micros(value))
        elif kind is bool:
            flat += (head | codes.BOOL, value)
        elif kind is tuple or kind is bytes:
            text = array_text(value).encode()
            texts.append(text)
            flat += (head | codes.ARRAY, len(text))
        else:
            if not INT_MIN <= value <= INT_MAX:
                as_value(name, value)  # says so
            flat += (head | codes.INT, value)
    return flat, doubles, texts


def _unnested(heads: Mapping[str, int], message: Mapping[str, Any]) -> Mapping[str, Any]:
    """What constraints compare of a message with objects inside."""
    exact: dict[str, Exact] = {}
    return Message.of_checked(contents(message, heads, exact), exact or None).compared


def _compared(name: str, value: Decimal) -> Any:
    exact, held = Exact.of_decimal(value), as_value(name, value)
    return held if exact is None or isinstance(held, int) else exact.compared
