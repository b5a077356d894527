"""Last values on the wire: which message is the last value of which key, and which of two is newer.

    header `retain`      ["sensor", "unit"]     its publisher chooses the names of the key
    its attributes       {"sensor": "t7", "unit": "C", "value": 21.5}
    `retained_key`       a digest of  [["sensor", "t7"], ["unit", "C"]]   ─┬─ set by the broker of the
    `retained_us`        later than every value of the key that it knows  ─┘  publisher, for all others

All brokers and clients order the values of a key in the same way (`ValueOrder`), in whatever order they
arrive. Numbers that are equal are one key, as they match alike: 1 and 1.0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from palio.errors import InvalidValue
from palio.protocol.wire.message_headers import (
    RETAIN,
    RETAIN_FORGET,
    RETAINED,
    RETAINED_KEY,
    RETAINED_US,
    SIZE_MAX,
    Headers,
    body_of,
    headers_of,
    packed,
)

LAST_VALUES: Final = "/last-values"
"""The durable subscription by which a broker announces that it holds last values. No identity is empty, so no
client has one of that name."""
NAMES_MAX: Final = 16
KEY_BYTES: Final = 16
MARK_BYTES: Final = 16
"""More than the header `retained` takes."""
_SET_BY_BROKERS: Final = frozenset({RETAINED, RETAINED_KEY, RETAINED_US})
_OWN: Final = _SET_BY_BROKERS | {RETAIN, RETAIN_FORGET}
MARK: Final = b"retain"
"""Bytes without it hold no header of this module."""

_names_decoder = msgspec.json.Decoder(list[str])
_REMEDY = f"the key of a last value is 1 to {NAMES_MAX} different names of attributes"


class ValueOrder(NamedTuple):
    """The largest one is the last value of its key."""

    time_us: int
    publisher: str
    number: int


def retaining(names: str | Iterable[str], *, forget: bool = False) -> dict[str, str | bool]:
    """The headers of the last value of a key; raises InvalidValue.

    >>> retaining(["sensor"])
    {'retain': '["sensor"]'}
    """
    chosen = [names] if isinstance(names, str) else list(names)
    text = json.dumps(chosen, ensure_ascii=False)
    key_names(text)
    return {RETAIN: text, RETAIN_FORGET: True} if forget else {RETAIN: text}


def key_names(text: str) -> list[str]:
    """The names in the header `retain`; raises InvalidValue."""
    try:
        names = _names_decoder.decode(text)
    except (msgspec.MsgspecError, ValueError):
        raise InvalidValue(f"retain={text!r:.200} is no list of names", remedy=_REMEDY) from None
    if not 1 <= len(names) <= NAMES_MAX or len(set(names)) < len(names):
        raise InvalidValue(f"retain={text!r:.200}: {len(names)} names", remedy=_REMEDY)
    return names


def key_of(text: str, attributes: Mapping[str, Any]) -> bytes:
    """A digest of the key of a message with these attributes; raises InvalidValue."""
    parts = []
    for name in sorted(key_names(text)):
        if name not in attributes:
            raise InvalidValue(
                f"the attribute {name!r} is part of the key of this last value, and is not there"
            )
        parts.append((name, _plain(attributes[name])))
    return blake2b(repr(parts).encode(), digest_size=KEY_BYTES).digest()


def _plain(value: Any) -> tuple[str, object]:
    """A value as it is in a key: equal ones are the same."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    kind = "number" if type(value) in (int, float) else type(value).__name__
    return kind, value


def may_be_retained(data: bytes) -> bool:
    """Whether there may be a header of this module in these bytes. It takes no time."""
    return MARK in data


def is_about_last_values(headers: Headers) -> bool:
    return not _OWN.isdisjoint(headers)


def stamped(headers: Headers, time_us: int, key: bytes) -> Headers:
    """The headers of a last value, as its first broker passes them on."""
    return {**unstamped(headers), RETAINED_US: time_us, RETAINED_KEY: key}


def unstamped(headers: Headers) -> Headers:
    """Headers without what only brokers set."""
    return {name: value for name, value in headers.items() if name not in _SET_BY_BROKERS}


def without_retain(payload: bytes) -> bytes:
    """The payload of a message that is no last value any more."""
    headers = headers_of(payload)
    if not is_about_last_values(headers):
        return payload
    rest = {name: value for name, value in headers.items() if name not in _OWN}
    return packed(rest, SIZE_MAX) + body_of(payload)


def marked(payload: bytes) -> bytes:
    """The payload of a last value as a new subscriber gets it."""
    headers = {**headers_of(payload), RETAINED: True}
    try:
        return packed(headers, SIZE_MAX) + body_of(payload)
    except InvalidValue:  # no broker that stamps leaves so little room
        return payload


def forgetting(time_us: int, key: bytes) -> bytes:
    """A payload that says that a key is gone."""
    return packed(stamped({RETAIN: "", RETAIN_FORGET: True}, time_us, key), SIZE_MAX)


class Stamp(NamedTuple):
    """What the broker of the publisher has set."""

    key: bytes
    time_us: int


def stamp_of(headers: Headers) -> Stamp | None:
    """None: it is no last value, or its broker knew nothing of last values."""
    key, time_us = headers.get(RETAINED_KEY), headers.get(RETAINED_US)
    is_one = isinstance(headers.get(RETAIN), str) and isinstance(key, bytes)
    if not is_one or len(key) != KEY_BYTES or not isinstance(time_us, int):  # type: ignore[arg-type]
        return None
    return Stamp(key, time_us)  # type: ignore[arg-type]
