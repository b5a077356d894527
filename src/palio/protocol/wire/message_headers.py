"""Message headers: what a message carries beside its attributes, and nobody matches.

    payload of a message    u16 size │ headers: a msgpack map of so many bytes │ body

The size is little-endian; 0: there are no headers. Brokers pass payloads on unchanged. The broker of
the publisher refuses messages whose headers cannot be read, by two bytes of each message where there
are none. Whoever else meets one takes its headers for empty.

The names below have a meaning for brokers and clients; an application adds its own. Listeners keep what
is theirs under a prefix, for instance `mqtt.user`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from palio.errors import InvalidValue

HeaderValue: TypeAlias = bool | int | float | str | bytes | list[list[str]]
Headers: TypeAlias = Mapping[str, HeaderValue]

REPLY_TO: Final = "reply_to"
CORRELATION: Final = "correlation"
CONTENT_TYPE: Final = "content_type"
EXPIRES_US: Final = "expires_us"
"""The instant from which on it is not delivered, in microseconds since 1970."""
NOT_BEFORE_US: Final = "not_before_us"
"""The instant before which it is not published."""
RETAIN: Final = "retain"
"""It is the last value of a key: the names of the attributes whose values are the key (last_values.py)."""
RETAIN_FORGET: Final = "retain_forget"
"""With `retain`: forget the last value of the key."""
RETAINED_US: Final = "retained_us"
"""By which the values of a key are ordered; the broker of the publisher sets it,"""
RETAINED_KEY: Final = "retained_key"
"""and this: a digest of the key."""
RETAINED: Final = "retained"
"""A broker gives it to a new subscriber, because it is the last value of its key."""
STANDARD: Final[Mapping[str, type]] = MappingProxyType(
    {
        REPLY_TO: str,
        CORRELATION: bytes,
        CONTENT_TYPE: str,
        EXPIRES_US: int,
        NOT_BEFORE_US: int,
        RETAIN: str,
        RETAIN_FORGET: bool,
        RETAINED_US: int,
        RETAINED_KEY: bytes,
        RETAINED: bool,
    }
)
"""The headers that brokers and clients know, with their types."""

INSTANT_MAX: Final = (1 << 63) - 1
SIZE_BYTES: Final = 2
SIZE_MAX: Final = (1 << 16) - 1
NO_HEADERS: Final = b"\x00\x00"
EMPTY: Final[Headers] = MappingProxyType({})

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode
_PLAIN = (bool, int, float, str, bytes)


def packed(headers: Headers, size_max: int) -> bytes:
    """Headers as they stand before the body; raises InvalidValue.

    >>> packed({"a": 1}, 100)
    b'\\x04\\x00\\x81\\xa1a\\x01'
    """
    if not headers:
        return NO_HEADERS
    try:
        block = _encode(dict(headers))
        read(block)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise InvalidValue(f"headers {headers!r:.200}: {error}", remedy=_REMEDY) from None
    if len(block) > size_max:
        raise InvalidValue(
            f"headers of {len(block)} bytes; the most are {size_max}",
            remedy="put large values into the body",
        )
    return len(block).to_bytes(SIZE_BYTES, "little") + block


_REMEDY = (
    "names are texts; values are bool, int, float, str, bytes or lists of pairs of texts; "
    f"the types of {', '.join(STANDARD)} are "
    f"{', '.join(type.__name__ for type in STANDARD.values())}"
)


def read(block: bytes) -> dict[str, HeaderValue]:
    """The headers in msgpack; raises ValueError or RecursionError if they are not as they must be."""
    found = _decode(block)
    for name, value in found.items():
        kind = type(value)
        if kind not in _PLAIN and not (kind is list and all(map(_is_pair, value))):
            raise ValueError(f"{name!r:.50} is a {kind.__name__}")
        if STANDARD.get(name, kind) is not kind:
            raise ValueError(f"{name} is a {kind.__name__}, not {STANDARD[name].__name__}")
    return found


def _is_pair(value: object) -> bool:
    return type(value) is list and len(value) == 2 and all(type(one) is str for one in value)


def payload_bytes(headers: int, body: int) -> int:
    """The size of a payload with headers and a body of these sizes."""
    return SIZE_BYTES + headers + body


def headers_of(payload: bytes) -> Headers:
    """The headers of a message; empty if they cannot be read.

    >>> dict(headers_of(b"\\x04\\x00\\x81\\xa1a\\x01body")), dict(headers_of(b"\\xff\\xffbody"))
    ({'a': 1}, {})
    """
    end = _end(payload)
    if end <= SIZE_BYTES or end > len(payload):
        return EMPTY
    try:
        return MappingProxyType(read(payload[SIZE_BYTES:end]))
    except (ValueError, RecursionError):
        return EMPTY


def body_of(payload: bytes) -> bytes:
    """The body of a message: what follows the headers; empty if they reach beyond the payload."""
    return payload[_end(payload) :]


def without(payload: bytes, name: str) -> bytes:
    """The same payload without a header.

    >>> without(b"\\x04\\x00\\x81\\xa1a\\x01body", "a")
    b'\\x00\\x00body'
    """
    headers = headers_of(payload)
    if name not in headers:
        return payload
    rest = {other: value for other, value in headers.items() if other != name}
    return packed(rest, SIZE_MAX) + body_of(payload)


def _end(payload: bytes) -> int:
    """Where the headers end."""
    return SIZE_BYTES + int.from_bytes(payload[:SIZE_BYTES], "little")


def not_before(payload: bytes) -> int:
    """The instant before which a message is not published; 0: there is none."""
    if payload.startswith(NO_HEADERS):
        return 0
    found: Any = headers_of(payload).get(NOT_BEFORE_US, 0)
    return min(max(0, int(found)), INSTANT_MAX)


def expiry(payload: bytes) -> int:
    """The instant from which on a message is not delivered; 0: there is none."""
    if payload.startswith(NO_HEADERS):
        return 0
    found: Any = headers_of(payload).get(EXPIRES_US, 0)
    return min(max(1, int(found)), INSTANT_MAX) if found else 0
