"""A connection of MQTT: it moves bytes between its socket, the host and `protocol.mqtt`, which decides.

Its link to the core can outlive its socket, for a will that is delayed or a session that stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from palio.net.listeners.listener import ConnectionHost, Dismissal
from palio.net.listeners.native_connection import cancel_all, peer_of
from palio.net.listeners.shared_turns import SharedTurns
from palio.net.monitoring.logs import log_bug
from palio.net.security import certificate_name
from palio.protocol.mqtt.connection import MqttConnection
from palio.protocol.mqtt.session import SessionKey
from palio.protocol.mqtt.states import AWAY, ENDED, ENDING, WELCOMING
from palio.protocol.wire.codes import CloseCode

_LINGER_S = 0.25


class ServedMqtt(asyncio.Protocol):
    """A `ServedConnection`. `after_commit` calls when what was stored until now is safe; then nothing may
    be told to the host before the next turn."""

    is_in_process = False

    def __init__(
        self,
        host: ConnectionHost,
        connection: MqttConnection,
        now_us: Callable[[], int],
        congested_bytes: int,
        turns: SharedTurns,
        after_commit: Callable[[Callable[[], None]], None],
    ) -> None:
        self._turns, self._after_commit = turns, after_commit
        self._host, self._mqtt, self._now_us = host, connection, now_us
        self._congested_bytes = congested_bytes
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._unsecured: asyncio.Transport | None = None  # the socket, during a TLS handshake
        self._early = b""  # data that came with the end of it
        self._timer: asyncio.TimerHandle | None = None
        self._is_flush_due = False
        self._is_read = True
        self._is_closing = False
        self._link = 0
        self.dials: str | None = None
        self.is_congested = False
        self.peer = ""
        self.closed: asyncio.Future[None] = self._loop.create_future()

    def restore(self, key: SessionKey) -> None:
        """There is no socket: the client was cut off by a restart, and its will waits."""
        self._link = self._host.attach(self, "", key.identity)
        self._mqtt.restore(key)
        self._flush()

    # ---- called by the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.peer = peer_of(transport)
        self._transport.set_write_buffer_limits(high=self._congested_bytes)
        certificate = certificate_name(transport.get_extra_info("ssl_object"))
        self._link = self._host.attach(self, certificate)
        self._set_timer()

    def accepted(self, socket: asyncio.Transport) -> None:
        """The TLS handshake begins (tls.py)."""
        self._unsecured, self.peer = socket, peer_of(socket)
        self._link = self._host.attach(self, "")
        self._set_timer()

    def handshake_received(self, size: int) -> bool:
        self._host.secure(self._link, size, "")
        return self._unsecured is not None and not self._unsecured.is_closing()

    def secured(self, transport: asyncio.Transport) -> None:
        self._unsecured, self._transport = None, transport
        transport.set_write_buffer_limits(high=self._congested_bytes)
        self._host.secure(self._link, 0, certificate_name(transport.get_extra_info("ssl_object")))
        self._regulate()
        early, self._early = self._early, b""
        if early:
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            self._early += data
            return
        if self._is_closing or not self._link:
            return
        self._mqtt.receive(data, self._now_us())
        self._flush()

    def pause_writing(self) -> None:
        self.is_congested = True
        self._host.congested(self._link, True)

    def resume_writing(self) -> None:
        self.is_congested = False
        self._host.congested(self._link, False)
        self._flush_later()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = self._unsecured = None
        if self.closed.done():
            return
        if self.is_congested:
            self.is_congested = False
            self._host.congested(self._link, False)
        self._turns.soon(self.end_if_lost)

    def end_if_lost(self) -> None:
        """The socket is gone; what came before that counts."""
        if self._transport is not None or self._unsecured is not None or not self.peer:
            return  # it is open; without a peer there was none
        if not self._link:  # the core knows the link no more
            self._mqtt.lost(self._now_us())
            self._detach()
        elif not self._mqtt.has_more and self._mqtt.state not in (AWAY, ENDED):
            self._mqtt.lost(self._now_us())
            self._flush()

    # ---- called by the host

    @property
    def waiting_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, frames: list[bytes]) -> int:
        """Frames of the core. What they make it say is told to the host after its turn."""
        data = frames[0] if len(frames) == 1 else b"".join(frames)
        try:
            self._mqtt.deliver(data, self._now_us())
        except Exception as error:  # one client's message must not end the broker
            log_bug("an MQTT connection is closed: this is a bug", error)
            if self._transport is not None:
                self._loop.call_soon(self._transport.abort)
            return 0
        size = self._write_packets()
        self._flush_later()
        return size

    def pause_reading(self) -> None:
        self._is_read = False
        self._regulate()

    def resume_reading(self) -> None:
        self._is_read = True
        self._regulate()
        self._flush_later()

    def _regulate(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        mqtt = self._mqtt
        if self._is_closing or (
            self._is_read and mqtt.state is not WELCOMING and not mqtt.has_more
        ):
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def dismiss(self, dismissal: Dismissal, wait_s: float) -> None:
        self._mqtt.gone(dismissal.code, dismissal.reason, self._now_us())
        self.finish(wait_s)

    def finish(self, wait_s: float) -> None:
        """The core knows the link no more."""
        self._mqtt.gone(CloseCode.REMOTE, "the connection is closed", self._now_us())
        self._write_packets()
        self._link = 0
        if self._unsecured is not None:  # nothing can be said yet
            self._unsecured.abort()
        elif self._transport is None:
            self._detach()
        else:
            self._close_socket(wait_s)

    def abort(self) -> None:
        self._link = 0
        socket = self._unsecured or self._transport
        if socket is not None:
            socket.abort()
        else:
            self._detach()

    # ---- the ends

    def _detach(self) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
            if self._timer is not None:
                self._timer.cancel()
            if self._link:
                self._host.detach(self._link, None)

    def _close_socket(self, wait_s: float) -> None:
        """Close when everything is sent. What the client still sends is read and dropped, so that it can
        read the last packets (native_connection.py)."""
        transport = self._transport
        if transport is None or self._is_closing:
            return
        self._is_closing = True
        self._regulate()
        if transport.can_write_eof():
            try:
                transport.write_eof()
            except OSError:
                transport.abort()
        timers = [
            self._loop.call_later(_LINGER_S, transport.close),
            self._loop.call_later(wait_s, transport.abort),
        ]
        self.closed.add_done_callback(lambda _: cancel_all(timers))

    # ---- what the machine says

    def _write_packets(self) -> int:
        packets = self._mqtt.client.take()
        transport = self._transport
        if not packets or transport is None or transport.is_closing() or self._is_closing:
            return 0
        data = packets[0] if len(packets) == 1 else b"".join(packets)
        transport.write(data)
        return len(data)

    def _flush_later(self) -> None:
        """Go on in the next turn with what has arrived, unless the host or the client does not read."""

        def turn() -> None:
            self._is_flush_due = False
            if self._mqtt.has_more and self._is_read and not self.is_congested and self._link:
                self._mqtt.read(self._now_us())
            self._flush()

        if not self._is_flush_due:
            self._is_flush_due = True
            self._turns.soon(turn)

    def _flush(self) -> None:
        frames = self._mqtt.core.take()
        ticket = self._mqtt.ticket()  # what it writes is committed with the frames, or before
        if frames and self._link:
            self._host.received(self._link, frames)
        if ticket and self._link:

            def committed() -> None:
                self._mqtt.client.committed(ticket)
                self._flush_later()

            self._after_commit(committed)
        self._write_packets()
        state = self._mqtt.state
        if state in (ENDING, AWAY, ENDED):
            self._close_socket(5.0)
        self._regulate()
        self._set_timer()
        if self._mqtt.has_more and self._is_read and not self.is_congested and self._link:
            self._flush_later()
        self.end_if_lost()

    def _set_timer(self) -> None:
        """A timer at the deadline, or before: a deadline that moves away leaves the timer as it is."""
        deadline_us = self._mqtt.deadline_us
        if deadline_us is None or self.closed.done():
            return
        at = self._loop.time() + max(0.0, (deadline_us - self._now_us()) / 1e6)
        if self._timer is not None:
            if not self._timer.cancelled() and self._loop.time() < self._timer.when() <= at:
                return
            self._timer.cancel()

        def wake() -> None:
            self._timer = None
            self._mqtt.wake(self._now_us())
            self._flush()

        self._timer = self._loop.call_at(at, wake)
