"""Packets as values. Both versions have the same ones; in 3.1.1 properties and reason codes are empty."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import msgspec

from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.properties import NONE, PacketType, Properties


class Version(IntEnum):
    V311 = 4
    V5 = 5


class Will(msgspec.Struct, frozen=True):
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NONE


class ConnectPacket(msgspec.Struct, frozen=True):
    version: Version
    client_id: str
    clean_start: bool
    keep_alive_s: int
    properties: Properties = NONE
    will: Will | None = None
    user_name: str | None = None
    password: bytes | None = None


class Connack(msgspec.Struct, frozen=True):
    session_present: bool
    code: ReasonCode
    properties: Properties = NONE


class PublishPacket(msgspec.Struct, frozen=True):
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    packet_id: int = 0
    properties: Properties = NONE


class Ack(msgspec.Struct, frozen=True):
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""

    type: PacketType
    packet_id: int
    code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


class SubscriptionOptions(msgspec.Struct, frozen=True):
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class SubscribePacket(msgspec.Struct, frozen=True):
    packet_id: int
    filters: tuple[tuple[str, SubscriptionOptions], ...]
    properties: Properties = NONE


class UnsubscribePacket(msgspec.Struct, frozen=True):
    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = NONE


class SubscribeAck(msgspec.Struct, frozen=True):
    """SUBACK or UNSUBACK."""

    type: PacketType
    packet_id: int
    codes: tuple[ReasonCode, ...]
    properties: Properties = NONE


class PingRequest(msgspec.Struct, frozen=True):
    pass


class PingResponse(msgspec.Struct, frozen=True):
    pass


class DisconnectPacket(msgspec.Struct, frozen=True):
    code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


class Auth(msgspec.Struct, frozen=True):
    code: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NONE


_Requests: TypeAlias = (
    SubscribePacket | SubscribeAck | UnsubscribePacket | PingRequest | PingResponse
)
Packet: TypeAlias = (
    ConnectPacket | Connack | PublishPacket | Ack | _Requests | DisconnectPacket | Auth
)
