"""Packets to bytes. Values that no packet can hold are the caller's mistake and raise ValueError."""

from __future__ import annotations

from palio.protocol.mqtt.packets.codes import ReasonCode, connack_code_311
from palio.protocol.mqtt.packets.fields import put_binary, put_text, put_u16, put_varint
from palio.protocol.mqtt.packets.properties import PacketType, Properties, put_properties
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
)

_PING_REQUEST, _PING_RESPONSE = b"\xc0\x00", b"\xd0\x00"
_FAILURE_311 = 0x80


def encode(packet: Packet, version: Version) -> bytes:
    if isinstance(packet, PublishPacket):
        return encode_publish(packet, version)
    if isinstance(packet, PingResponse):
        return _PING_RESPONSE
    if isinstance(packet, PingRequest):
        return _PING_REQUEST
    out = bytearray()
    first = _body(out, packet, version)
    return _framed(first, out)


def _framed(first: int, body: bytearray) -> bytes:
    head = bytearray((first,))
    put_varint(head, len(body))
    return bytes(head + body)


def encode_publish(packet: PublishPacket, version: Version) -> bytes:
    topic = packet.topic.encode()
    middle = bytearray()
    put_binary(middle, topic)
    if packet.qos:
        put_u16(middle, packet.packet_id)
    if version is Version.V5:
        put_properties(middle, packet.properties)
    head = bytearray((0x30 | packet.duplicate << 3 | packet.qos << 1 | packet.retain,))
    put_varint(head, len(middle) + len(packet.payload))
    return b"".join((head, middle, packet.payload))


def _body(out: bytearray, packet: Packet, version: Version) -> int:
    """Write what follows the length; gives the first byte."""
    is_new = version is Version.V5
    if isinstance(packet, Ack):
        put_u16(out, packet.packet_id)
        _put_ending(out, packet.code, packet.properties, version)
        return packet.type << 4 | (2 if packet.type is PacketType.PUBREL else 0)
    if isinstance(packet, SubscribeAck):
        put_u16(out, packet.packet_id)
        if is_new:
            put_properties(out, packet.properties)
        if is_new or packet.type is PacketType.SUBACK:
            out += bytes([_granted(code, version) for code in packet.codes])
        return packet.type << 4
    if isinstance(packet, Connack):
        out.append(packet.session_present)
        out.append(packet.code if is_new else connack_code_311(packet.code))
        if is_new:
            put_properties(out, packet.properties)
        return PacketType.CONNACK << 4
    if isinstance(packet, DisconnectPacket | Auth):
        _put_ending(out, packet.code, packet.properties, version)
        type = PacketType.AUTH if isinstance(packet, Auth) else PacketType.DISCONNECT
        return type << 4
    if isinstance(packet, ConnectPacket):
        _put_connect(out, packet)
        return PacketType.CONNECT << 4
    assert isinstance(packet, SubscribePacket | UnsubscribePacket)
    put_u16(out, packet.packet_id)
    if is_new:
        put_properties(out, packet.properties)
    if isinstance(packet, UnsubscribePacket):
        for one in packet.filters:
            put_text(out, one)
        return PacketType.UNSUBSCRIBE << 4 | 2
    for one, options in packet.filters:
        put_text(out, one)
        out.append(_options_byte(options))
    return PacketType.SUBSCRIBE << 4 | 2


def _granted(code: ReasonCode, version: Version) -> int:
    return _FAILURE_311 if version is Version.V311 and code.is_error else code


def _options_byte(options: SubscriptionOptions) -> int:
    flags = options.no_local << 2 | options.retain_as_published << 3
    return options.qos | flags | options.retain_handling << 4


def _put_ending(out: bytearray, code: ReasonCode, properties: Properties, version: Version) -> None:
    if version is Version.V311 or (code is ReasonCode.SUCCESS and not properties):
        return
    out.append(code)
    if properties:
        put_properties(out, properties)


def _put_connect(out: bytearray, packet: ConnectPacket) -> None:
    put_text(out, "MQTT")
    out.append(packet.version)
    will, flags = packet.will, packet.clean_start << 1
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
    flags |= (packet.password is not None) << 6 | (packet.user_name is not None) << 7
    out.append(flags)
    put_u16(out, packet.keep_alive_s)
    if packet.version is Version.V5:
        put_properties(out, packet.properties)
    put_text(out, packet.client_id)
    if will is not None:
        if packet.version is Version.V5:
            put_properties(out, will.properties)
        put_text(out, will.topic)
        put_binary(out, will.payload)
    if packet.user_name is not None:
        put_text(out, packet.user_name)
    if packet.password is not None:
        put_binary(out, packet.password)
