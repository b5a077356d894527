"""MQTT over WebSocket: a handshake and frames, whole and in pieces, in front of a recorder.

    a request that upgrades, mostly ─▶ frames: packets in binary frames, fragments, control frames, noise

What comes out behind the frames is the same however the bytes are cut, is what lay in the binary frames where
nothing is wrong with them, and is never more than what came in.
"""

from __future__ import annotations

import asyncio
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import Any, ClassVar, cast

from palio.net.listeners.mqtt_connection import ServedMqtt
from palio.net.listeners.mqtt_websocket import WebSocketHandshake
from palio.protocol.mqtt.packets.values import Version
from tests.fuzz.http_readers import Wire
from tests.fuzz.mqtt_grammar import MqttPackets
from tests.fuzz.target import Target
from tests.protocol.wire.mutation import mutated

MESSAGE_MAX, WAITING_MAX = 4_000, 1 << 20
ORIGINS = ("https://app.example.org",)
_TURNS_MAX = 10_000
_HEADS = [
    b"GET /mqtt HTTP/1.1\r\nHost: 127.0.0.1:8083\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n%s\r\n" % fields
    for fields in (
        b"Sec-WebSocket-Protocol: mqtt\r\n",
        b"Sec-WebSocket-Protocol: mqttv3.1, mqtt\r\nOrigin: https://app.example.org\r\n",
        b"Sec-WebSocket-Protocol: mqtt\r\nOrigin: http://127.0.0.1:8083\r\n",
        b"Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Extensions: permessage-deflate\r\n",
        b"Sec-WebSocket-Protocol: mqtt\r\nOrigin: https://evil.example\r\n",
        b"Sec-WebSocket-Protocol: chat\r\n",
        b"",
    )
]
_BINARY, _CONTINUATION, _TEXT, _CLOSE, _PING, _PONG = 2, 0, 1, 8, 9, 10


class _Recorder:
    """In the place of the connection of MQTT."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.transport: asyncio.Transport | None = None

    def accepted(self, socket: asyncio.Transport) -> None: ...

    def handshake_received(self, size: int) -> bool:
        return True

    def secured(self, transport: asyncio.Transport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None, "data before the handshake"
        self.data += data

    def connection_lost(self, error: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class ServedSockets:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._failed)
        self._failure: BaseException | str | None = None

    def _failed(self, _: Any, context: dict[str, Any]) -> None:
        self._failure = context.get("exception") or context["message"]

    def read(self, pieces: list[bytes]) -> tuple[bytes, bytes, bool]:
        """What came out, the first line of the answer, and whether the socket is closed."""
        self._failure = None
        found = self._loop.run_until_complete(self._read(pieces))
        assert self._failure is None, self._failure
        return found

    async def _read(self, pieces: list[bytes]) -> tuple[bytes, bytes, bool]:
        wire, recorder = Wire(), _Recorder()
        socket = WebSocketHandshake(cast(ServedMqtt, recorder), ORIGINS, MESSAGE_MAX, WAITING_MAX)
        socket.connection_made(wire)
        for piece in pieces:
            if wire.is_closing():
                break
            socket.data_received(piece)
            for _ in range(_TURNS_MAX):
                if not socket._is_parsing:
                    break
                await asyncio.sleep(0)
        if recorder.transport is not None:
            recorder.transport.write(b"\x20\x02\x00\x00")
        is_over = socket._protocol.state.name != "OPEN" or wire.is_closing()
        socket.connection_lost(None)
        assert not socket._is_parsing
        return bytes(recorder.data), bytes(wire.written).partition(b"\r\n")[0], is_over


def frame(opcode: int, data: bytes, key: bytes, *, is_final: bool = True) -> bytes:
    size, first = len(data), 0x80 * is_final | opcode
    if size < 126:
        head = bytes([first, 0x80 | size])
    elif size < 1 << 16:
        head = bytes([first, 0x80 | 126]) + size.to_bytes(2)
    else:
        head = bytes([first, 0x80 | 127]) + size.to_bytes(8)
    return head + key + bytes(byte ^ key[i % 4] for i, byte in enumerate(data))


class MqttSockets(Target):
    """A case is the request, and then frames."""

    name, goal, chunk = "mqtt_sockets", 10_000_000, 2_000

    @cached_property
    def _loop(self) -> ServedSockets:
        return ServedSockets()

    def run(self, seed: int) -> int:
        random = Random(f"{self.name} {seed}")
        grammar, count = MqttPackets(random), 0
        while count < self.chunk:
            case = self._draw(random, grammar)
            type(self)._drawn = case
            self._seed = random.random()
            self.check_small(case)
            count += len(case)
        return count

    def draw(self, random: Random) -> list[bytes]:
        return self._draw(random, MqttPackets(random))

    def _draw(self, random: Random, grammar: MqttPackets) -> list[bytes]:
        head = random.choice(_HEADS[:4]) if random.random() < 0.95 else random.choice(_HEADS)
        frames, inside = [], b""
        for _ in range(random.choice((1, 2, 5, 20))):
            if random.random() < 0.15:
                data = random.choice((b"", b"x" * 125))
                frames.append(frame(random.choice((_PING, _PONG)), data, random.randbytes(4)))
                continue
            data = grammar.bytes(Version.V5)[: random.choice((5, 300, MESSAGE_MAX))]
            inside += data
            cuts = sorted(
                random.randrange(len(data) + 1) for _ in range(random.choice((0, 0, 1, 3)))
            )
            parts = [data[a:b] for a, b in pairwise((0, *cuts, len(data)))]
            for at, part in enumerate(parts):
                opcode = _CONTINUATION if at else _BINARY
                is_final = at == len(parts) - 1
                frames.append(frame(opcode, part, random.randbytes(4), is_final=is_final))
        self._inside = inside if head in _HEADS[:4] else None
        if random.random() < 0.4:
            self._inside = None
            at = random.randrange(len(frames))
            wrong = [
                frames[at],
                frame(random.choice((_TEXT, _CLOSE, 3, 15)), random.choice((b"", b"\x03\xe8", b"\xff")), b"\0\0\0\0"),
                frame(_PING, b"", b"abcd", is_final=False),
                b"\x82\xff" + random.choice((1 << 63, 1 << 40, 5)).to_bytes(8) + b"\0\0\0\0",
            ]  # fmt: skip
            frames[at] = mutated(random, wrong) if random.random() < 0.6 else random.choice(wrong)
        if random.random() < 0.05:
            self._inside, head = None, mutated(random, [head])
        return [head, *frames]

    def check(self, case: list[bytes]) -> None:
        data, random = b"".join(case), Random(self._seed)
        whole = self._loop.read([data])
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.choice((1, 2, 8))))
        pieces = self._loop.read([data[a:b] for a, b in pairwise((0, *cuts, len(data)))])
        assert whole == pieces, (whole, pieces)
        assert len(whole[0]) <= len(data)
        if self._inside is not None and case == self._drawn:
            assert whole[0] == self._inside, "what lies in the frames"

    _seed = 0.0
    _inside: bytes | None = None
    """What comes out of the case that was drawn; None: something is wrong with it."""
    _drawn: ClassVar[list[bytes]] = []
