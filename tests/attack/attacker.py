"""An attacker: a connection that says anything, and follows what comes back.

It answers Ping, so that nobody takes it for dead unless the attack wants that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Self, TypeVar

from palio.net.endpoint import Endpoint
from palio.protocol.wire.control import VERSION, Bye, ControlMessage, Hello, Ping, Pong, Welcome
from palio.protocol.wire.frames import FrameReader, MessageFrame, control_frame, message_frame
from palio.protocol.wire.headers import PublishHeader

T = TypeVar("T")
PATIENCE_S = 120.0
KEPT_MAX = 100_000


class Attacker:
    """`async with await Attacker.at(endpoint) as one: one.say(...)`"""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.came: list[ControlMessage | MessageFrame] = []
        """What came, without pings and at most so much."""
        self.counts: Counter[type] = Counter()
        self.is_closed = False
        self._news = asyncio.Event()
        self._number = 0
        self.is_reading = asyncio.Event()
        self.is_reading.set()
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def stranger(cls, endpoint: Endpoint) -> Self:
        """One that says nothing yet."""
        return cls(*await asyncio.open_connection(*endpoint, limit=1 << 20))

    @classmethod
    async def at(cls, endpoint: Endpoint, name: str = "eve", token: str = "") -> Self:
        """One that was welcomed as a client."""
        made = await cls.stranger(endpoint)
        made.say(Hello(VERSION, "client", name, token))
        await made.got(Welcome)
        return made

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Cut the connection."""
        self._task.cancel()
        self._writer.transport.abort()

    async def _read(self) -> None:
        frames = FrameReader()
        try:
            while data := await self._reader.read(1 << 20):
                for item in frames.feed(data):
                    if isinstance(item, Ping):
                        self.say(Pong(item.number))
                        continue
                    self.counts[type(item)] += 1
                    if len(self.came) < KEPT_MAX:
                        self.came.append(item)
                self._news.set()
                await self.is_reading.wait()
        except OSError:
            pass
        self.is_closed = True
        self._news.set()

    # ---- saying

    def send(self, data: bytes) -> None:
        if not self.is_closed:
            self._writer.write(data)

    def say(self, *messages: ControlMessage) -> None:
        self.send(b"".join(map(control_frame, messages)))

    def publish(
        self, attributes: bytes, body: bytes = b"", *, durable: bool = False, time_us: int = 1
    ) -> int:
        self._number += 1
        header = PublishHeader(self._number, time_us, durable)
        self.send(message_frame(header, attributes, body))
        return self._number

    async def drain(self) -> None:
        """Wait until the broker has taken most of what was said, or has closed the connection."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._writer.drain()
        except OSError:
            self.is_closed = True

    # ---- hearing

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                assert not self.is_closed, f"closed: {self.came[-1:]}"
                self._news.clear()
                await self._news.wait()

    async def got(self, kind: type[T], count: int = 1) -> list[T]:
        """Wait until so many of a kind have come in all."""
        await self.until(lambda: self.counts[kind] >= count)
        return self.all(kind)

    async def answered(self, count: int, *kinds: type[Any]) -> None:
        """Wait until so many answers of these kinds have come in all."""
        await self.until(lambda: sum(self.counts[kind] for kind in kinds) >= count)

    async def closed(self) -> Bye | None:
        """Wait until the broker has closed the connection; the reason that it gave."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait([self._task])
        last = self.came[-1] if self.came else None
        return last if isinstance(last, Bye) else None

    def all(self, kind: type[T]) -> list[T]:
        return [item for item in self.came if isinstance(item, kind)]

    async def alive(self) -> bool:
        """Whether the connection still answers."""
        before = self.counts[Pong]
        self.say(Ping(7))
        try:
            await self.got(Pong, before + 1)
        except AssertionError:
            return False
        return True
