"""CONNECT, checked: who the client is, what it may ask for, and what it is told in CONNACK."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from palio.model.topics import reply_topic
from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode
from palio.protocol.mqtt.packets.properties import NONE, Properties
from palio.protocol.mqtt.packets.values import ConnectPacket, Version
from palio.protocol.mqtt.settings import MqttSettings
from palio.protocol.mqtt.subscribing import own_name
from palio.protocol.mqtt.topics import check_topic
from palio.protocol.wire.codes import CloseCode, EndCode, HelloRole
from palio.protocol.wire.control import VERSION, Hello
from palio.protocol.wire.handshake import TOKEN_BYTES_MAX

_CLIENT_ID_MAX = 1024

_CONNACK = {
    CloseCode.DENIED: ReasonCode.NOT_AUTHORIZED,
    CloseCode.STOPPING: ReasonCode.SERVER_SHUTTING_DOWN,
    CloseCode.TOO_MANY_CONNECTIONS: ReasonCode.QUOTA_EXCEEDED,
    CloseCode.OVERLOAD: ReasonCode.SERVER_BUSY,
    CloseCode.DISPLACED: ReasonCode.SERVER_BUSY,
    CloseCode.HANDSHAKE_TIMEOUT: ReasonCode.SERVER_BUSY,
    CloseCode.PROTOCOL: ReasonCode.IMPLEMENTATION_SPECIFIC,
}
_DISCONNECT = {
    CloseCode.REPLACED: ReasonCode.SESSION_TAKEN_OVER,
    CloseCode.DENIED: ReasonCode.NOT_AUTHORIZED,
    CloseCode.STOPPING: ReasonCode.SERVER_SHUTTING_DOWN,
    CloseCode.SILENT: ReasonCode.KEEP_ALIVE_TIMEOUT,
    CloseCode.OVERLOAD: ReasonCode.MESSAGE_RATE_TOO_HIGH,
    CloseCode.STORE_FULL: ReasonCode.QUOTA_EXCEEDED,
    CloseCode.PROTOCOL: ReasonCode.IMPLEMENTATION_SPECIFIC,
}

_ENDED = {EndCode.DENIED: ReasonCode.NOT_AUTHORIZED, EndCode.FULL: ReasonCode.QUOTA_EXCEEDED}


def connack_code(code: CloseCode) -> ReasonCode:
    """What a client that is not connected yet is told."""
    return _CONNACK.get(code, ReasonCode.SERVER_UNAVAILABLE)


def disconnect_code(code: CloseCode) -> ReasonCode:
    """What a client that is connected is told."""
    return _DISCONNECT.get(code, ReasonCode.SERVER_BUSY)


def end_code(code: EndCode) -> ReasonCode:
    """What a client is told whose subscription has ended."""
    return _ENDED.get(code, ReasonCode.ADMINISTRATIVE_ACTION)


class Greeting:
    """A CONNECT. Raises PacketError with the code for CONNACK."""

    def __init__(
        self, connect: ConnectPacket, settings: MqttSettings, new_client_id: Callable[[], str]
    ) -> None:
        self.connect, self._settings = connect, settings
        if len(connect.client_id) > _CLIENT_ID_MAX:
            raise PacketError(
                ReasonCode.INVALID_CLIENT_ID, f"a client id has {_CLIENT_ID_MAX} characters at most"
            )
        if not connect.client_id and not connect.clean_start and connect.version is Version.V311:
            raise PacketError(
                ReasonCode.INVALID_CLIENT_ID, "a session that stays needs a client id"
            )
        if "authentication_method" in connect.properties:
            raise PacketError(
                ReasonCode.BAD_AUTHENTICATION_METHOD,
                "there is no enhanced authentication here: use a password or a certificate",
            )
        if connect.will is not None:
            check_topic(connect.will.topic, settings.levels_max)
        self.client_id = connect.client_id or new_client_id()
        self.name = own_name(self.client_id)
        self.token = self._token()
        most_s = settings.keepalive_s_max
        self.keep_alive_s = connect.keep_alive_s
        if most_s and connect.version is Version.V5:
            self.keep_alive_s = min(connect.keep_alive_s or most_s, most_s)
        self.expiry_s = self._expiry_s()

    def _token(self) -> str:
        password = self.connect.password or b""
        try:
            token = password.decode()
        except UnicodeDecodeError:
            token = ""
        if (password and not token) or len(password) > TOKEN_BYTES_MAX:
            raise PacketError(
                ReasonCode.BAD_USER_NAME_OR_PASSWORD, "the password is not a token: it is text"
            )
        return token

    def _expiry_s(self) -> int:
        if self.connect.version is Version.V311:
            return 0 if self.connect.clean_start else self._settings.session_expiry_s_max
        asked_s = self.connect.properties.get("session_expiry", 0)
        return min(int(asked_s), self._settings.session_expiry_s_max)

    def hello(self) -> Hello:
        return Hello(VERSION, HelloRole.CLIENT, self.name, self.token)

    def is_user(self, identity: str) -> bool:
        """With a password, the user name is that of the identity that the token belongs to."""
        user = self.connect.user_name
        return not user or not self.connect.password or user == identity

    def properties(self, identity: str) -> Properties:
        """Of CONNACK."""
        if self.connect.version is Version.V311:
            return NONE
        settings = self._settings
        found: dict[str, Any] = {
            "receive_maximum": settings.receive_maximum,
            "topic_alias_maximum": settings.topic_alias_maximum,
            "maximum_packet_size": settings.packet_bytes_max,
        }
        if self.connect.properties.get("request_response_information"):
            own = blake2b(self.client_id.encode(), digest_size=8).hexdigest()
            found["response_information"] = reply_topic(identity, own)
        if not self.connect.client_id:
            found["assigned_client_id"] = self.client_id
        if self.keep_alive_s != self.connect.keep_alive_s:
            found["server_keep_alive"] = self.keep_alive_s
        if self.expiry_s != self.connect.properties.get("session_expiry", 0):
            found["session_expiry"] = self.expiry_s
        return found
