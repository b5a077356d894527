"""Properties of MQTT 5 (2.2.2): one table says each one's number, type, and where it may stand.

Properties are a dict by name. `user` is a tuple of pairs, `subscription_identifier` a tuple of
numbers; all others have one value and may come once. `WILL` stands for the properties of a will,
which are those of the message that it becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode, malformed, protocol_error
from palio.protocol.mqtt.packets.fields import (
    Cursor,
    put_binary,
    put_text,
    put_u16,
    put_u32,
    put_varint,
)

Properties = Mapping[str, Any]
NONE: Properties = {}


class PacketType(IntEnum):
    WILL = 0  # not a packet: the will in CONNECT
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


class _PropertyType(NamedTuple):
    read: Callable[[Cursor, str], Any]
    write: Callable[[bytearray, Any], None]


def _read_flag(cursor: Cursor, what: str) -> int:
    value = cursor.byte(what)
    if value > 1:
        raise protocol_error(f"{what} is 0 or 1, not {value}")
    return value


def _read_positive_u16(cursor: Cursor, what: str) -> int:
    return _positive(cursor.u16(what), what)


def _read_positive_u32(cursor: Cursor, what: str) -> int:
    return _positive(cursor.u32(what), what)


def _read_positive_varint(cursor: Cursor, what: str) -> int:
    return _positive(cursor.varint(what), what)


def _positive(value: int, what: str) -> int:
    if not value:
        raise protocol_error(f"{what} must not be 0")
    return value


def _read_pair(cursor: Cursor, what: str) -> tuple[str, str]:
    return cursor.text(what), cursor.text(what)


def _write_pair(out: bytearray, pair: tuple[str, str]) -> None:
    put_text(out, pair[0])
    put_text(out, pair[1])


_FLAG = _PropertyType(_read_flag, bytearray.append)
_U16, _U16_POSITIVE = _PropertyType(Cursor.u16, put_u16), _PropertyType(_read_positive_u16, put_u16)
_U32, _U32_POSITIVE = _PropertyType(Cursor.u32, put_u32), _PropertyType(_read_positive_u32, put_u32)
_VARINT = _PropertyType(_read_positive_varint, put_varint)
_TEXT, _BINARY = _PropertyType(Cursor.text, put_text), _PropertyType(Cursor.binary, put_binary)
_PAIR = _PropertyType(_read_pair, _write_pair)

_P = PacketType
_MESSAGE = (_P.PUBLISH, _P.WILL)
_GREETING = (_P.CONNECT, _P.CONNACK)
_SIGNED = (_P.CONNECT, _P.CONNACK, _P.AUTH)
_ACKS = (_P.PUBACK, _P.PUBREC, _P.PUBREL, _P.PUBCOMP, _P.SUBACK, _P.UNSUBACK)

# number, name, type, where it may stand
_TABLE: tuple[tuple[int, str, _PropertyType, tuple[PacketType, ...]], ...] = (
    (0x01, "payload_format", _FLAG, _MESSAGE),
    (0x02, "message_expiry", _U32, _MESSAGE),
    (0x03, "content_type", _TEXT, _MESSAGE),
    (0x08, "response_topic", _TEXT, _MESSAGE),
    (0x09, "correlation_data", _BINARY, _MESSAGE),
    (0x0B, "subscription_identifier", _VARINT, (_P.PUBLISH, _P.SUBSCRIBE)),
    (0x11, "session_expiry", _U32, (*_GREETING, _P.DISCONNECT)),
    (0x12, "assigned_client_id", _TEXT, (_P.CONNACK,)),
    (0x13, "server_keep_alive", _U16, (_P.CONNACK,)),
    (0x15, "authentication_method", _TEXT, _SIGNED),
    (0x16, "authentication_data", _BINARY, _SIGNED),
    (0x17, "request_problem_information", _FLAG, (_P.CONNECT,)),
    (0x18, "will_delay", _U32, (_P.WILL,)),
    (0x19, "request_response_information", _FLAG, (_P.CONNECT,)),
    (0x1A, "response_information", _TEXT, (_P.CONNACK,)),
    (0x1C, "server_reference", _TEXT, (_P.CONNACK, _P.DISCONNECT)),
    (0x1F, "reason_string", _TEXT, (_P.CONNACK, *_ACKS, _P.DISCONNECT, _P.AUTH)),
    (0x21, "receive_maximum", _U16_POSITIVE, _GREETING),
    (0x22, "topic_alias_maximum", _U16, _GREETING),
    (0x23, "topic_alias", _U16, (_P.PUBLISH,)),  # what it may be, the connection decides
    (0x24, "maximum_qos", _FLAG, (_P.CONNACK,)),
    (0x25, "retain_available", _FLAG, (_P.CONNACK,)),
    (0x26, "user", _PAIR, tuple(set(_P) - {_P.PINGREQ, _P.PINGRESP})),
    (0x27, "maximum_packet_size", _U32_POSITIVE, _GREETING),
    (0x28, "wildcards_available", _FLAG, (_P.CONNACK,)),
    (0x29, "subscription_identifiers_available", _FLAG, (_P.CONNACK,)),
    (0x2A, "shared_subscriptions_available", _FLAG, (_P.CONNACK,)),
)
_BY_NUMBER = {number: (name, kind, where) for number, name, kind, where in _TABLE}
_BY_NAME = {name: (number, kind) for number, name, kind, _ in _TABLE}


USER_MAX = 1000
"""User properties of one packet."""


def _is_list(name: str, packet: PacketType) -> bool:
    return name == "user" or (name == "subscription_identifier" and packet is PacketType.PUBLISH)


def read_properties(cursor: Cursor, packet: PacketType) -> Properties:
    size = cursor.varint("the length of the properties")
    if not size:
        return NONE
    part = cursor.part(size, "the properties")
    found: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {}
    while part.left:
        number = part.varint("the number of a property")
        known = _BY_NUMBER.get(number)
        if known is None:
            raise malformed(f"there is no property {number:#04x}")
        name, kind, where = known
        if packet not in where:
            raise protocol_error(f"the property {name} does not belong into {packet.name}")
        value = kind.read(part, f"the property {name}")
        if _is_list(name, packet):
            values = lists.setdefault(name, [])
            values.append(value)
            if len(values) > USER_MAX:
                raise PacketError(
                    ReasonCode.QUOTA_EXCEEDED,
                    f"there are more than {USER_MAX:,} properties {name}",
                )
        elif name in found:
            raise protocol_error(f"the property {name} comes twice")
        else:
            found[name] = (value,) if name == "subscription_identifier" else value
    for name, values in lists.items():
        found[name] = tuple(values)
    return found


def put_properties(out: bytearray, properties: Properties) -> None:
    if not properties:
        out.append(0)
        return
    body = bytearray()
    for name, value in properties.items():
        number, kind = _BY_NAME[name]
        values = value if name in ("user", "subscription_identifier") else (value,)
        for one in values:
            body.append(number)
            kind.write(body, one)
    put_varint(out, len(body))
    out += body
