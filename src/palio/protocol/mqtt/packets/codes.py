"""Reason codes of MQTT 5 (2.4), the return codes of 3.1.1, and the error that carries one."""

from __future__ import annotations

from enum import IntEnum

from palio.errors import PalioError


class ReasonCode(IntEnum):
    SUCCESS = 0x00  # also: normal disconnection, granted QoS 0
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    REAUTHENTICATE = 0x19
    UNSPECIFIED = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC = 0x83
    UNSUPPORTED_VERSION = 0x84
    INVALID_CLIENT_ID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    INVALID_TOPIC_FILTER = 0x8F
    INVALID_TOPIC_NAME = 0x90
    PACKET_ID_IN_USE = 0x91
    PACKET_ID_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    INVALID_TOPIC_ALIAS = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    INVALID_PAYLOAD_FORMAT = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDS_NOT_SUPPORTED = 0xA1
    WILDCARDS_NOT_SUPPORTED = 0xA2

    @property
    def is_error(self) -> bool:
        return self >= ReasonCode.UNSPECIFIED


_CONNACK_311 = {
    ReasonCode.SUCCESS: 0,
    ReasonCode.UNSUPPORTED_VERSION: 1,
    ReasonCode.INVALID_CLIENT_ID: 2,
    ReasonCode.SERVER_UNAVAILABLE: 3,
    ReasonCode.SERVER_BUSY: 3,
    ReasonCode.SERVER_SHUTTING_DOWN: 3,
    ReasonCode.QUOTA_EXCEEDED: 3,
    ReasonCode.BAD_USER_NAME_OR_PASSWORD: 4,
    ReasonCode.NOT_AUTHORIZED: 5,
    ReasonCode.BANNED: 5,
}


def connack_code_311(code: ReasonCode) -> int:
    """The return code of a CONNACK of 3.1.1 that says the same."""
    return _CONNACK_311.get(code, 3)


class PacketError(PalioError):
    """Bytes that are not a packet, or a packet that must not come now. `code` goes into DISCONNECT."""

    def __init__(self, code: ReasonCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def malformed(reason: str) -> PacketError:
    return PacketError(ReasonCode.MALFORMED_PACKET, reason)


def protocol_error(reason: str) -> PacketError:
    return PacketError(ReasonCode.PROTOCOL_ERROR, reason)
