"""The frames of a WebSocket (RFC 6455), by the sans-IO protocol of the package `websockets`.

    Exchange: the request ─▶ open: 101 ─▶ receive, send: whole text messages ─▶ close

Messages are bounded (`body`, in [http]), and so is what is read ahead. The other end must answer a Ping within
`stalled`. Compression is not offered: it lets a few bytes become many.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections import deque

from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.utils import accept_key

from palio.net.config.values import HttpSettings
from palio.net.listeners.http.exchange import Exchange, Headers, Request
from palio.net.listeners.http.problems import Problem

_AHEAD_MAX = 64
"""Messages that are read ahead; then nothing more is read until half of them are taken."""
_AHEAD_BYTES_MAX = 1 << 20
"""The same in bytes; the last one may be larger."""
_FRAGMENTS_MAX = 1024
_PIECE_BYTES = 4096
_TURN_S = 0.01
"""How long one turn parses: 256 KiB can be 40,000 frames."""
_VERSION = "13"


class SocketFrames:
    """Made of a request; raises Problem if it asks for no WebSocket."""

    def __init__(self, exchange: Exchange, settings: HttpSettings) -> None:
        self._exchange, self._settings = exchange, settings
        self._answer = handshake(exchange.request)
        self._protocol = Protocol(Side.SERVER, state=State.OPEN, max_size=settings.body_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._unparsed = bytearray()
        self._arrived: deque[bytes] = deque()
        self._ahead = 0  # their bytes
        self._fragments: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_gone = False
        self._is_parsing = False  # a task or a call does it soon
        self._heartbeat: asyncio.Task[None] | None = None
        self._has_answered = True
        self._waits: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()

    async def open(self) -> None:
        await self._exchange.begin(101, self._answer)
        early = self._exchange.upgrade(self)
        if early:
            self.data_received(early)
        self._heartbeat = self._loop.create_task(self._keep_alive())

    # ---- called by the connection

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        if not self._is_parsing:
            self._parse()

    def _parse(self) -> None:
        """Parse what has arrived, as long as a turn allows, and as long as it is taken."""
        self._is_parsing = False
        until_s = self._loop.time() + _TURN_S
        while self._unparsed and self._takes_more and not self._is_gone:
            if not self._exchange.is_read:  # it gets Pongs, and does not read them
                self._is_parsing = True
                self._exchange.set_reading(False)
                self._waits = self._loop.create_task(self._parse_when_read())
                return
            if self._loop.time() > until_s:
                self._is_parsing = True
                self._exchange.set_reading(False)
                self._loop.call_soon(self._parse)
                return
            piece = bytes(self._unparsed[:_PIECE_BYTES])
            del self._unparsed[:_PIECE_BYTES]
            self._protocol.receive_data(piece)
            for event in self._protocol.events_received():
                if isinstance(event, Frame):
                    self._take(event)
            self._flush()
        self._exchange.set_reading(not self._unparsed)

    @property
    def _takes_more(self) -> bool:
        return len(self._arrived) < _AHEAD_MAX and self._ahead < _AHEAD_BYTES_MAX

    async def _parse_when_read(self) -> None:
        await self._exchange.drained()
        self._parse()

    def connection_lost(self) -> None:
        self._is_gone = True
        self._wake()

    def _take(self, frame: Frame) -> None:
        match frame.opcode:
            case Opcode.TEXT | Opcode.CONT:
                self._fragments.append(bytes(frame.data))
                if len(self._fragments) > _FRAGMENTS_MAX:
                    self._protocol.fail(CloseCode.POLICY_VIOLATION, "too many fragments")
                elif frame.fin:
                    self._arrived.append(b"".join(self._fragments))
                    self._ahead += len(self._arrived[-1])
                    self._fragments = []
                    self._wake()
            case Opcode.BINARY:
                self._protocol.fail(CloseCode.UNSUPPORTED_DATA, "messages are texts in JSON")
            case Opcode.PONG:
                self._has_answered = True
            case Opcode.CLOSE:
                self._wake()

    def _flush(self) -> None:
        """Send what the protocol answers: Pong, Close."""
        data = b"".join(self._protocol.data_to_send())
        if data:
            self._exchange.write_soon(data)
        if self._protocol.state is not State.OPEN:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def _is_open(self) -> bool:
        return not self._is_gone and self._protocol.state is State.OPEN

    # ---- called by the conversation

    async def receive(self) -> bytes | None:
        """The next message; None: there will be none."""
        while not self._arrived:
            if not self._is_open:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        text = self._arrived.popleft()
        self._ahead -= len(text)
        if len(self._arrived) * 2 <= _AHEAD_MAX and not self._is_parsing:
            self._parse()
        return text

    async def send(self, text: bytes) -> None:
        """Returns when the other end reads."""
        async with self._sending:
            if not self._is_open:
                raise ConnectionResetError("the other end is gone")
            self._protocol.send_text(text)
            await self._exchange.write(b"".join(self._protocol.data_to_send()))

    async def close(self) -> None:
        """Say goodbye; the connection closes then."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self._is_open:
            self._protocol.send_close(CloseCode.GOING_AWAY)
            self._flush()

    async def _keep_alive(self) -> None:
        """Ping now and then; who does not answer in time is gone."""
        while True:
            await asyncio.sleep(self._settings.heartbeat_us / 1e6)
            if not self._is_open:
                return
            self._has_answered = False
            self._protocol.send_ping(b"palio")
            self._flush()
            await asyncio.sleep(self._settings.stalled_us_max / 1e6)
            if not self._has_answered:
                self._exchange.cut_off()
                return


def handshake(request: Request) -> Headers:
    """The header fields that accept the request of a WebSocket; raises Problem."""
    headers = request.headers
    words = [word.strip().lower() for word in headers.get("connection", "").split(",")]
    if headers.get("upgrade", "").lower() != "websocket" or "upgrade" not in words:
        upgrade = (("Upgrade", "websocket"), ("Connection", "Upgrade"))
        raise Problem(426, "websocket", "this path is for WebSockets", upgrade)
    if headers.get("sec-websocket-version") != _VERSION:
        version = (("Sec-WebSocket-Version", _VERSION),)
        raise Problem(426, "websocket", f"the version of the WebSocket is {_VERSION}", version)
    key = headers.get("sec-websocket-key", "")
    try:
        size = len(b64decode(key, validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if size != 16 or "sec-websocket-key" in request.repeated:
        raise Problem(400, "websocket", "Sec-WebSocket-Key is 16 bytes in base64")
    return (
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", accept_key(key)),
    )
