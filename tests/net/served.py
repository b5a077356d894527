"""The stand-in broker on a socket, with connections that are cut wherever a seed says."""

from __future__ import annotations

import asyncio
import random
import ssl
from itertools import count

from tests.protocol.stand_in import StandIn


class _Link(asyncio.Protocol):
    def __init__(self, served: Served) -> None:
        self._served = served
        self.number = next(served.numbers)
        self.transport: asyncio.Transport | None = None
        self.in_left = self.out_left = served.lifetime()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self._served.connections[self.number] = self
        self._served.core.open(self.number)

    def data_received(self, data: bytes) -> None:
        self.in_left -= len(data)
        self._served.core.receive(self.number, data[: self.in_left] if self.in_left < 0 else data)
        if self.in_left <= 0:
            self.cut()
        self._served.flush()

    def write(self, data: bytes) -> None:
        assert self.transport is not None
        self.out_left -= len(data)
        self.transport.write(data[: self.out_left] if self.out_left < 0 else data)
        if self.out_left <= 0:
            self.cut()

    def cut(self) -> None:
        assert self.transport is not None
        self._served.cuts += 1
        self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._served.connections.pop(self.number, None)
        self._served.core.close(self.number)
        self._served.flush()


class Served:
    """`async with Served() as served: connect(served.url)`"""

    def __init__(
        self,
        core: StandIn | None = None,
        *,
        seed: int | None = None,
        cut_bytes: int = 4000,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.core = core or StandIn()
        self.numbers = count(1)
        self.connections: dict[int, _Link] = {}
        self.cuts = 0
        self._random = None if seed is None else random.Random(seed)
        self._cut_bytes = cut_bytes
        self._tls = tls
        self._port = port
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"palio{'s' * (self._tls is not None)}://127.0.0.1:{self._port}"

    def lifetime(self) -> int:
        return 1 << 60 if self._random is None else self._random.randrange(1, self._cut_bytes)

    def be_reliable(self) -> None:
        self._random = None
        for link in self.connections.values():
            link.in_left = link.out_left = 1 << 60

    def flush(self) -> None:
        for number, link in list(self.connections.items()):
            data, self.core.out[number] = self.core.out[number], []
            assert link.transport is not None
            if data and not link.transport.is_closing():
                link.write(b"".join(data))
            if number in self.core.closes:
                link.transport.close()

    def cut_all(self) -> None:
        for link in list(self.connections.values()):
            link.cut()

    async def __aenter__(self) -> Served:
        await self.start()
        return self

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Link(self), "127.0.0.1", self._port, ssl=self._tls
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut_all()
        await asyncio.sleep(0)

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
