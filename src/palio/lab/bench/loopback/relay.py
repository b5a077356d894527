"""A bare relay of frames: what a broker's transport can do at most.

It cuts what comes in into frames, as a broker must, and passes each on to one of the connections
that asked for messages, in turn; one write per connection and turn of the loop. It looks into
nothing and keeps nothing. Run as `python -m palio.lab.bench.loopback.relay PORT`.
"""

from __future__ import annotations

import asyncio
import sys
from struct import Struct
from typing import cast

from palio.net.broker.server import loop_factory

_SIZE = Struct("<I")
SINK, SOURCE = b"S", b"P"
"""The first byte of a connection says what it is."""


class _Relay:
    def __init__(self) -> None:
        self._sinks: list[asyncio.Transport] = []
        self._out: list[list[bytes]] = []
        self._next = 0
        self._is_due = False

    def add(self, sink: asyncio.Transport) -> None:
        self._sinks.append(sink)
        self._out.append([])

    def pass_on(self, data: bytes) -> bytes:
        """What is left when all whole frames are on their way."""
        unpack, out, at, size = _SIZE.unpack_from, self._out, 0, len(data)
        turn = self._next
        while size - at >= 4:
            end = at + 4 + unpack(data, at)[0]
            if end > size:
                break
            out[turn].append(data[at:end])
            turn = turn + 1 if turn + 1 < len(out) else 0
            at = end
        self._next = turn
        if at and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._flush)
        return data[at:]

    def _flush(self) -> None:
        self._is_due = False
        for sink, frames in zip(self._sinks, self._out, strict=True):
            if frames:
                sink.write(b"".join(frames))
                frames.clear()


class _Connection(asyncio.Protocol):
    def __init__(self, relay: _Relay) -> None:
        self._relay = relay
        self._rest = b""
        self._is_known = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_known:
            self._is_known = True
            if data[:1] == SINK:
                self._relay.add(self._transport)
            data = data[1:]
        self._rest = self._relay.pass_on(self._rest + data) if data else self._rest


async def serve(port: int) -> None:
    relay = _Relay()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(relay), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(int(sys.argv[1])))
