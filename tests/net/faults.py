"""A line between two programs that can fail: a small TCP proxy with faults to order.

    async with Line("127.0.0.1:7400") as line:       # dial line.address instead
        line.cut()        connections are reset, new ones too, until it heals
        line.silence()    nothing passes and nothing is said; what was connected is reset by heal()
        line.stall()      nothing passes until heal(), then all of it does
        line.delay(0.1)   each piece takes so long
        line.break_at(n)  the connections are reset after n bytes more, wherever in a frame that is
        line.heal()

Bytes arrive in order and whole, or not at all: what two ends of a TCP connection may rely on.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Self

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing drops what is under way and tells the other end so."""
_PIECE = 1 << 16
_DIAL_S_MAX = 5.0


class Line:
    def __init__(self, target: str) -> None:
        self._host, port = target.rsplit(":", 1)
        self._port = int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._is_cut = self._is_silent = False
        self._delay_s = 0.0
        self._left: int | None = None
        self._server: asyncio.Server | None = None
        self.address = ""
        self.resets = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        self._passing.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- faults

    def cut(self) -> None:
        self._is_cut = True
        self._reset()

    def silence(self) -> None:
        self._is_silent = True
        self._passing.clear()

    def stall(self) -> None:
        self._passing.clear()

    def delay(self, seconds: float) -> None:
        self._delay_s = seconds

    def break_at(self, count: int) -> None:
        self._left = count

    def heal(self) -> None:
        """All is as at the beginning; after `silence` the connections are gone."""
        if self._is_silent:
            self._reset()
        self._is_cut = self._is_silent = False
        self._delay_s, self._left = 0.0, None
        self._passing.set()

    def _reset(self) -> None:
        self.resets += bool(self._writers)
        for writer in list(self._writers):
            _abort(writer)
        self._writers.clear()

    # ---- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._is_cut:
            _abort(writer)
            return
        self._writers.add(writer)
        try:
            async with asyncio.timeout(_DIAL_S_MAX):
                far_reader, far = await asyncio.open_connection(self._host, self._port)
        except (OSError, TimeoutError):
            self._drop(writer)
            return
        if writer not in self._writers:  # cut meanwhile
            _abort(far)
            return
        self._writers.add(far)
        pumps = [self._pump(reader, far), self._pump(far_reader, writer)]
        try:
            await asyncio.gather(*pumps)
        except OSError:
            pass  # one end is gone: so is the other
        finally:
            self._drop(writer)
            self._drop(far)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction, until it ends; the end travels as everything else."""
        while data := await reader.read(_PIECE):
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            await self._passing.wait()
            if self._left is not None:
                data = data[: self._left]
                self._left -= len(data)
            if writer.is_closing():  # cut meanwhile; uvloop raises RuntimeError where it is closed
                raise ConnectionResetError
            writer.write(data)
            if self._left == 0:
                self._left = None
                await writer.drain()
                self._reset()
                raise ConnectionResetError
            await writer.drain()
        await self._passing.wait()
        if not writer.is_closing():
            writer.close()

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        _abort(writer)


def _abort(writer: asyncio.StreamWriter) -> None:
    found = writer.get_extra_info("socket")
    if found is not None and not writer.is_closing():
        with suppress(OSError):  # it is gone already
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
