"""MQTT over WebSocket (section 6), by the sans-IO protocol of the package `websockets`.

    socket ─(TLS)─▶ WebSocketHandshake: the HTTP request, the subprotocol `mqtt` ─▶ binary frames ─▶ ServedMqtt
                                                              FrameTransport: packets ─▶ binary frames

ServedMqtt sees a connection whose handshake takes a little longer, and then a transport. So all bounds of
strangers hold, and packets may lie in frames as they like. A turn of the loop parses a bounded part of what
has arrived. Pages of browsers may only connect if the operator has named their origin.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from palio.net.listeners.mqtt_connection import ServedMqtt

_PIECE_BYTES = 4096
_TURN_S = 0.005
_REFUSAL_S = 1.0
_SUBPROTOCOL = Subprotocol("mqtt")


class WebSocketHandshake(asyncio.Protocol):
    """`origins`: whose pages may connect. Who has no origin is no browser."""

    def __init__(
        self, inner: ServedMqtt, origins: tuple[str, ...], message_bytes_max: int, waiting_bytes_max: int
    ) -> None:  # fmt: skip
        self._inner, self._waiting_bytes_max = inner, waiting_bytes_max
        self._loop = asyncio.get_running_loop()
        self._protocol = ServerProtocol(subprotocols=[_SUBPROTOCOL], max_size=message_bytes_max)
        self._origins = origins
        self._socket: asyncio.Transport | None = None
        self._unparsed = bytearray()
        self._is_parsing = False
        self._is_open = False
        self._has_failed = False
        self._is_read = True

    # ---- called by the socket, or by its TLS handshake

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.accepted(cast(asyncio.Transport, transport))
        self.secured(cast(asyncio.Transport, transport))

    def accepted(self, socket: asyncio.Transport) -> None:
        self._inner.accepted(socket)

    def handshake_received(self, size: int) -> bool:
        return self._inner.handshake_received(size)

    def secured(self, transport: asyncio.Transport) -> None:
        self._socket = transport
        if self._unparsed:  # it came with the end of the TLS handshake
            self._parse()

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if not self._is_open and not self._inner.handshake_received(len(data)):
            return
        if not self._is_parsing:
            self._parse()

    def _parse(self) -> None:
        """Parse what has arrived, as long as a turn allows, and the other end reads what it is answered."""
        self._is_parsing = False
        ends_s = self._loop.time() + _TURN_S
        while self._unparsed and self._socket is not None and self._is_read:
            if self._socket.get_write_buffer_size() > self._waiting_bytes_max:
                break  # `resume_writing` goes on
            if self._loop.time() > ends_s:
                self._is_parsing = True
                self._loop.call_soon(self._parse)
                break
            self._protocol.receive_data(self._next_piece())
            for event in self._protocol.events_received():
                if isinstance(event, Request):
                    self._answer(event)
                elif isinstance(event, Frame):
                    self._take(event)
            self.flush()
        self._regulate()

    def _next_piece(self) -> bytes:
        """Of the request one line: `websockets` would read a frame behind it before it is answered, and could
        not answer any more."""
        size = _PIECE_BYTES
        if not self._is_open:
            size = self._unparsed.find(b"\n", 0, _PIECE_BYTES) + 1 or _PIECE_BYTES
        piece = bytes(self._unparsed[:size])
        del self._unparsed[:size]
        return piece

    def _answer(self, request: Request) -> None:
        hosts = request.headers.get_all("Host")
        if len(hosts) > 1:
            response = self._protocol.reject(400, "a request has one Host\n")
        elif self._is_welcome(request.headers.get_all("Origin"), "".join(hosts)):
            response = self._protocol.accept(request)
        else:
            reason = "pages of this origin may not connect: websocket_origins, in [mqtt], names those that may\n"
            response = self._protocol.reject(403, reason)
        self._protocol.send_response(response)
        self.flush()
        if self._socket is None:
            return
        if response.status_code != 101:
            self._socket.close()
        else:
            self._is_open = True
            self._inner.secured(FrameTransport(self._socket, self))

    def _is_welcome(self, origins: list[str], host: str) -> bool:
        """Named by the operator, or of the address that is connected to; a name may be an attacker's who
        lets it lead here."""
        if not origins or origins[0] in self._origins:
            return len(origins) < 2
        own = host.rpartition(":")[0] or host
        is_address = own == "localhost" or not any(char.isalpha() for char in own) or "[" in own
        return len(origins) == 1 and is_address and origins[0].partition("://")[2] == host

    def _take(self, frame: Frame) -> None:
        if self._has_failed:
            return  # it came behind that, in one piece with it
        if frame.opcode is Opcode.TEXT:
            self._has_failed = True
            self._protocol.fail(CloseCode.UNSUPPORTED_DATA, "packets are binary (MQTT-6.0.0-1)")
        elif frame.opcode in (Opcode.BINARY, Opcode.CONT) and frame.data:
            self._inner.data_received(bytes(frame.data))

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
        if not self._is_parsing:
            self._parse()

    def connection_lost(self, error: Exception | None) -> None:
        self._socket = None
        self._inner.connection_lost(error)

    # ---- called by the transport

    def send(self, data: bytes) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_binary(data)
            self.flush()

    def flush(self) -> None:
        """Send what the protocol says, of itself too: Pong, Close."""
        socket = self._socket
        if socket is None or socket.is_closing():
            return
        for data in self._protocol.data_to_send():
            if data:
                socket.write(data)
        if self._protocol.close_expected() and self._protocol.state is not State.OPEN:
            self._loop.call_later(_REFUSAL_S, socket.close)
        if self._protocol.handshake_exc is not None:  # what came is no request
            socket.close()

    def set_reading(self, is_read: bool) -> None:
        self._is_read = is_read
        self._regulate()
        if is_read and self._unparsed and not self._is_parsing:
            self._is_parsing = True
            self._loop.call_soon(self._parse)

    def _regulate(self) -> None:
        if self._socket is None or self._socket.is_closing():
            return
        if self._is_read and not self._unparsed:
            self._socket.resume_reading()
        else:
            self._socket.pause_reading()

    def end(self) -> None:
        """Say Close; the socket closes when that is sent."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
            self.flush()
        if self._socket is not None:
            self._socket.close()


class FrameTransport(asyncio.Transport):
    """What ServedMqtt writes to."""

    def __init__(self, socket: asyncio.Transport, frames: WebSocketHandshake) -> None:
        super().__init__()
        self._socket, self._frames = socket, frames

    def write(self, data: Any) -> None:
        self._frames.send(bytes(data))

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self._frames.end()

    def abort(self) -> None:
        self._socket.abort()

    def is_closing(self) -> bool:
        return self._socket.is_closing()

    def pause_reading(self) -> None:
        self._frames.set_reading(False)

    def resume_reading(self) -> None:
        self._frames.set_reading(True)

    def get_write_buffer_size(self) -> int:
        return self._socket.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.set_write_buffer_limits(high=high, low=low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket.get_extra_info(name, default)
