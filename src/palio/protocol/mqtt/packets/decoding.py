"""Bytes to packets: strict, for every packet type that clients and servers send."""

from __future__ import annotations

from collections.abc import Callable, Sized

from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode, malformed, protocol_error
from palio.protocol.mqtt.packets.fields import Cursor
from palio.protocol.mqtt.packets.properties import NONE, PacketType, Properties, read_properties
from palio.protocol.mqtt.packets.values import (
    Ack,
    Auth,
    Connack,
    ConnectPacket,
    DisconnectPacket,
    Packet,
    PingRequest,
    PingResponse,
    PublishPacket,
    SubscribeAck,
    SubscribePacket,
    SubscriptionOptions,
    UnsubscribePacket,
    Version,
    Will,
)

_NAME = "MQTT"
FILTERS_MAX = 1000
"""Of one packet."""
_SUBACK_311 = {PacketType.SUBACK: {0, 1, 2, 0x80}, PacketType.UNSUBACK: set[int]()}
_CONNACK_311 = {
    0: ReasonCode.SUCCESS,
    1: ReasonCode.UNSUPPORTED_VERSION,
    2: ReasonCode.INVALID_CLIENT_ID,
    3: ReasonCode.SERVER_UNAVAILABLE,
    4: ReasonCode.BAD_USER_NAME_OR_PASSWORD,
    5: ReasonCode.NOT_AUTHORIZED,
}


def decode(first: int, data: bytes, version: Version) -> Packet:
    """The packet with this first byte and these bytes after its length; raises PacketError."""
    type, flags = first >> 4, first & 15
    if type == PacketType.PUBLISH:
        return decode_publish(flags, data, version)
    expected, read = _READERS.get(type, (0, None))
    if read is None:
        raise malformed("packets of type 0 do not exist")
    if flags != expected:
        raise malformed(f"{PacketType(type).name} has the flags {flags:#x}, not {expected:#x}")
    cursor = Cursor(data)
    packet = read(cursor, PacketType(type), version)
    cursor.finish(PacketType(type).name)
    return packet


def _properties(cursor: Cursor, type: PacketType, version: Version) -> Properties:
    return read_properties(cursor, type) if version is Version.V5 else NONE


def _packet_id(cursor: Cursor) -> int:
    found = cursor.u16("the packet id")
    if not found:
        raise protocol_error("a packet id must not be 0")
    return found


def _code(value: int, type: PacketType) -> ReasonCode:
    try:
        return ReasonCode(value)
    except ValueError:
        raise protocol_error(f"{type.name} has the reason code {value:#04x}") from None


def decode_publish(flags: int, data: bytes, version: Version) -> PublishPacket:
    qos = flags >> 1 & 3
    if qos == 3:
        raise malformed("PUBLISH has QoS 3")
    if flags & 8 and not qos:
        raise malformed("PUBLISH with QoS 0 is marked as a duplicate")
    cursor = Cursor(data)
    topic = cursor.text("the topic")
    packet_id = _packet_id(cursor) if qos else 0
    properties = _properties(cursor, PacketType.PUBLISH, version)
    return PublishPacket(
        topic, data[cursor.at :], qos, bool(flags & 1), bool(flags & 8), packet_id, properties
    )


def _connect(cursor: Cursor, type: PacketType, _: Version) -> ConnectPacket:
    name = cursor.text("the protocol name")
    level = cursor.byte("the protocol version")
    if name != _NAME or level not in (Version.V311, Version.V5):
        raise PacketError(
            ReasonCode.UNSUPPORTED_VERSION,
            f"the protocol is {name[:20]!r} version {level}; there are MQTT 3.1.1 (4) and 5",
        )
    version = Version(level)
    flags = cursor.byte("the connect flags")
    keep_alive_s = cursor.u16("the keep alive")
    properties = _properties(cursor, type, version)
    if "authentication_data" in properties and "authentication_method" not in properties:
        raise protocol_error("there is authentication data and no method")
    client_id = cursor.text("the client id")
    will = _will(cursor, flags, version)
    user_name = cursor.text("the user name") if flags & 0x80 else None
    if flags & 0x40 and user_name is None and version is Version.V311:
        raise malformed("CONNECT has a password and no user name")
    password = cursor.binary("the password") if flags & 0x40 else None
    return ConnectPacket(
        version, client_id, bool(flags & 2), keep_alive_s, properties, will, user_name, password
    )


def _will(cursor: Cursor, flags: int, version: Version) -> Will | None:
    if flags & 1:
        raise malformed("the reserved connect flag is set")
    qos = flags >> 3 & 3
    if not flags & 4:
        if flags & 0x38:
            raise malformed("CONNECT says how its will is published, and has none")
        return None
    if qos == 3:
        raise malformed("the will has QoS 3")
    properties = _properties(cursor, PacketType.WILL, version)
    topic = cursor.text("the topic of the will")
    payload = cursor.binary("the payload of the will")
    return Will(topic, payload, qos, bool(flags & 0x20), properties)


def _connack(cursor: Cursor, type: PacketType, version: Version) -> Connack:
    flags = cursor.byte("the connack flags")
    if flags > 1:
        raise malformed("a reserved connack flag is set")
    value = cursor.byte("the reason code")
    if version is Version.V5:
        return Connack(bool(flags), _code(value, type), read_properties(cursor, type))
    if value not in _CONNACK_311:
        raise malformed(f"there is no return code {value}")
    return Connack(bool(flags), _CONNACK_311[value])


def _ack(cursor: Cursor, type: PacketType, version: Version) -> Ack:
    packet_id = _packet_id(cursor)
    code, properties = _ending(cursor, type, version)
    return Ack(type, packet_id, code, properties)


def _ending(cursor: Cursor, type: PacketType, version: Version) -> tuple[ReasonCode, Properties]:
    """A reason code and properties, of which MQTT 5 may leave out both or the second."""
    code, properties = ReasonCode.SUCCESS, NONE
    if version is Version.V5 and cursor.left:
        code = _code(cursor.byte("the reason code"), type)
        if cursor.left:
            properties = read_properties(cursor, type)
    return code, properties


def _subscribe(cursor: Cursor, type: PacketType, version: Version) -> SubscribePacket:
    packet_id = _packet_id(cursor)
    properties = _properties(cursor, type, version)
    filters = []
    while cursor.left:
        topic_filter = cursor.text("a topic filter")
        filters.append((topic_filter, _options(cursor.byte("the options"), version)))
        _check_count(filters)
    if not filters:
        raise protocol_error("SUBSCRIBE has no topic filter")
    return SubscribePacket(packet_id, tuple(filters), properties)


def _options(byte: int, version: Version) -> SubscriptionOptions:
    qos, handling = byte & 3, byte >> 4 & 3
    if byte & (0xC0 if version is Version.V5 else 0xFC):
        raise malformed("a reserved subscription option is set")
    if qos == 3:
        raise malformed("SUBSCRIBE asks for QoS 3")
    if handling == 3:
        raise protocol_error("the retain handling is 0, 1 or 2")
    return SubscriptionOptions(qos, bool(byte & 4), bool(byte & 8), handling)


def _unsubscribe(cursor: Cursor, type: PacketType, version: Version) -> UnsubscribePacket:
    packet_id = _packet_id(cursor)
    properties = _properties(cursor, type, version)
    filters = []
    while cursor.left:
        filters.append(cursor.text("a topic filter"))
        _check_count(filters)
    if not filters:
        raise protocol_error("UNSUBSCRIBE has no topic filter")
    return UnsubscribePacket(packet_id, tuple(filters), properties)


def _check_count(filters: Sized) -> None:
    if len(filters) > FILTERS_MAX:
        raise PacketError(
            ReasonCode.QUOTA_EXCEEDED, f"a packet has {FILTERS_MAX:,} topic filters at most here"
        )


def _subscribe_ack(cursor: Cursor, type: PacketType, version: Version) -> SubscribeAck:
    packet_id = _packet_id(cursor)
    properties = _properties(cursor, type, version)
    values = cursor.rest()
    if version is Version.V311 and not set(values) <= _SUBACK_311[type]:
        raise malformed(f"{type.name} of MQTT 3.1.1 has a reserved return code")
    codes = tuple([_code(value, type) for value in values])
    return SubscribeAck(type, packet_id, codes, properties)


def _ping_request(*_: object) -> PingRequest:
    return PingRequest()


def _ping_response(*_: object) -> PingResponse:
    return PingResponse()


def _disconnect(cursor: Cursor, type: PacketType, version: Version) -> DisconnectPacket:
    return DisconnectPacket(*_ending(cursor, type, version))


def _auth(cursor: Cursor, type: PacketType, version: Version) -> Auth:
    if version is not Version.V5:
        raise malformed("AUTH is a packet of MQTT 5")
    return Auth(*_ending(cursor, type, version))


_READERS: dict[int, tuple[int, Callable[[Cursor, PacketType, Version], Packet]]] = {
    PacketType.CONNECT: (0, _connect),
    PacketType.CONNACK: (0, _connack),
    PacketType.PUBACK: (0, _ack),
    PacketType.PUBREC: (0, _ack),
    PacketType.PUBREL: (2, _ack),
    PacketType.PUBCOMP: (0, _ack),
    PacketType.SUBSCRIBE: (2, _subscribe),
    PacketType.SUBACK: (0, _subscribe_ack),
    PacketType.UNSUBSCRIBE: (2, _unsubscribe),
    PacketType.UNSUBACK: (0, _subscribe_ack),
    PacketType.PINGREQ: (0, _ping_request),
    PacketType.PINGRESP: (0, _ping_response),
    PacketType.DISCONNECT: (0, _disconnect),
    PacketType.AUTH: (0, _auth),
}
