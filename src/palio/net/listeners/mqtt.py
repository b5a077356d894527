"""The listener of MQTT, on TCP or TLS, and over WebSocket."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from palio.errors import MissingSoftware
from palio.net.endpoint import Endpoint
from palio.net.listeners.listener import ConnectionHost
from palio.net.listeners.mqtt_connection import ServedMqtt
from palio.net.listeners.native import listening_refused
from palio.net.listeners.shared_turns import SharedTurns
from palio.net.listeners.tls import SecuredConnection, TlsHandshake
from palio.net.monitoring.measures import Measure
from palio.net.monitoring.mqtt_metrics import mqtt_measures
from palio.protocol.durability.last_values import LastValues
from palio.protocol.durability.storage import Store
from palio.protocol.mqtt.connection import MqttConnection
from palio.protocol.mqtt.retained import RetainedMessages
from palio.protocol.mqtt.session_records import SessionRecords
from palio.protocol.mqtt.sessions import Sessions
from palio.protocol.mqtt.settings import MqttSettings
from palio.protocol.mqtt.shared import QueueName
from palio.protocol.wire.frames import Limits

if TYPE_CHECKING:
    from palio.net.listeners.mqtt_websocket import WebSocketHandshake

_BACKLOG = 1024
_EXPIRE_S = 1.0
_WILLS_AT_ONCE = 200


class MqttListener:
    """Sessions and retained messages are shared by all its connections, whatever they come over.
    `forget` ends a durable subscription."""

    def __init__(
        self,
        endpoint: Endpoint,
        setting: str,
        settings: MqttSettings,
        limits: Limits,
        congested_bytes: int,
        now_us: Callable[[], int],
        store: Store,
        last_values: LastValues,
        forget: Callable[[QueueName], None],
        after_commit: Callable[[Callable[[], None]], None],
        tls: ssl.SSLContext | None,
        tls_handshake_s: float,
        websocket: Endpoint | None = None,
        origins: tuple[str, ...] = (),
    ) -> None:
        self.websocket_endpoint, self._origins = websocket, origins
        self.endpoint = endpoint
        self._forget, self._after_commit = forget, after_commit
        self.sessions = Sessions(settings.sessions_max, SessionRecords(store), now_us(), _client_id)
        self.retained = RetainedMessages(last_values, limits)
        self._setting, self._settings, self._limits = setting, settings, limits
        self._congested_bytes, self._now_us = congested_bytes, now_us
        self._tls, self._tls_handshake_s = tls, tls_handshake_s
        self._host: ConnectionHost | None = None
        self._servers: list[asyncio.Server] = []
        self._turns = SharedTurns()
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, host: ConnectionHost) -> None:
        self._host = host
        self.endpoint = await self._listen(self.endpoint, self._connect)
        if self.websocket_endpoint is not None:
            frames = _websocket_handshake()

            def accept() -> SecuredConnection:
                settings = self._settings
                size_max, waiting_max = settings.packet_bytes_max, settings.waiting_bytes_max
                return frames(self._connect(), self._origins, size_max, waiting_max)

            self.websocket_endpoint = await self._listen(self.websocket_endpoint, accept)
        self._expire()

    async def _listen(self, endpoint: Endpoint, make: Callable[[], SecuredConnection]) -> Endpoint:
        """Accept connections; gives the endpoint with its real port."""

        def accept() -> asyncio.BaseProtocol:
            connection = make()
            if self._tls is None:
                return cast(asyncio.Protocol, connection)
            return TlsHandshake(connection, self._tls, self._tls_handshake_s)

        try:
            server = await asyncio.get_running_loop().create_server(
                accept, endpoint.host, endpoint.port, backlog=_BACKLOG
            )
        except OSError as error:
            raise listening_refused(endpoint, error, self._setting) from None
        self._servers.append(server)
        return Endpoint(endpoint.host, server.sockets[0].getsockname()[1])

    def _expire(self) -> None:
        """End the durable subscriptions of sessions that have expired, from time to time; take care of
        the wills of clients that a restart has cut off."""
        for name in self.sessions.expired(self._now_us()):
            self._forget(name)
        for key in self.sessions.bereaved(_WILLS_AT_ONCE):
            self._connect().restore(key)
        self._timer = asyncio.get_running_loop().call_later(_EXPIRE_S, self._expire)

    def _connect(self) -> ServedMqtt:
        assert self._host is not None
        connection = MqttConnection(
            self._settings, self.sessions, self.retained, self._limits, self._now_us(),
            self._turns.is_over,
        )  # fmt: skip
        return ServedMqtt(
            self._host,
            connection,
            self._now_us,
            self._congested_bytes,
            self._turns,
            self._after_commit,
        )

    def stop_accepting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for server in self._servers:
            server.close()

    async def wait_closed(self) -> None:
        for server in self._servers:
            await server.wait_closed()

    def measures(self) -> Iterable[Measure]:
        return mqtt_measures(self.sessions, self.retained)


def _client_id() -> str:
    return "palio-" + secrets.token_hex(8)


def _websocket_handshake() -> type[WebSocketHandshake]:
    try:
        from palio.net.listeners.mqtt_websocket import WebSocketHandshake
    except ModuleNotFoundError as error:
        if error.name != "websockets":
            raise
        raise MissingSoftware(
            "`websocket` in [mqtt] needs the package websockets: pip install 'palio[http]', or leave the key out"
        ) from None
    return WebSocketHandshake
