"""What tests of the network share: configurations, and a peer that speaks frames."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

import uvloop

from palio.net import config as configuration
from palio.net.config import Config
from palio.net.endpoint import Endpoint
from palio.protocol.wire.control import ControlMessage
from palio.protocol.wire.frames import FrameReader, MessageFrame, control_frame, message_frame
from palio.protocol.wire.headers import PublishHeader

T = TypeVar("T")
SECRET = 'secret = "0123456789abcdef"\n'
"""A line of broker.toml."""
METRICS = '[metrics]\nlisten = "127.0.0.1:0"\n'
PATIENCE_S = 30
"""Far more than anything here takes: a bound for what would hang, not a measure."""


def configured(folder: Path, text: str = "", name: str = "milan") -> Config:
    """A configuration on a free port; `text` follows [broker]."""
    path = folder / f"{name}.toml"
    head = f'[broker]\nname = "{name}"\nlisten = "127.0.0.1:0"\n'
    path.write_text(head + text)
    return configuration.read(path)


LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
loops = ["uvloop"]
"""The one that `run` takes; a test that runs on both sets it."""


def run(coroutine: Coroutine[object, object, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(PATIENCE_S):
            return await coroutine

    with asyncio.Runner(loop_factory=LOOPS[loops[0]]) as runner:
        return runner.run(bounded())


class Peer:
    """A client that sends what it is told and collects what comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._frames = FrameReader()
        self._items: list[ControlMessage | MessageFrame] = []

    @classmethod
    async def at(
        cls, address: Endpoint, tls: ssl.SSLContext | None = None, name: str = "localhost"
    ) -> Peer:
        return cls(
            *await asyncio.open_connection(
                address.host, address.port, ssl=tls, server_hostname=name if tls else None
            )
        )

    def say(self, *control_messages: ControlMessage) -> None:
        self.writer.write(b"".join(map(control_frame, control_messages)))

    def publish(self, number: int, durable: bool = False, body: bytes = b"") -> None:
        self.writer.write(message_frame(PublishHeader(number, 0, durable), b'{"x":1}', body))

    async def next(self) -> ControlMessage | MessageFrame | None:
        """What comes next; None: the connection has ended."""
        while not self._items:
            data = await self._reader.read(1 << 16)
            if not data:
                return None
            self._items += self._frames.feed(data)
        return self._items.pop(0)

    async def rest(self) -> list[ControlMessage | MessageFrame]:
        """All that comes until the end."""
        found = []
        while (item := await self.next()) is not None:
            found.append(item)
        return found

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            return


async def until(condition: object) -> None:
    """Let the loop turn until the condition holds; `run` bounds the wait."""
    assert callable(condition)
    while not condition():
        await asyncio.sleep(0.001)


async def asked(address: Endpoint | None, request: bytes) -> tuple[int, dict[str, str], bytes]:
    assert address is not None
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
