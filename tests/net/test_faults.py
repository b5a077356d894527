"""The line that fails does what it says; the chaos test rests on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.net.faults import Line
from tests.net.running import in_loop

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def echo() -> AsyncIterator[Line]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1000):
                writer.write(data)
        except OSError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with Line(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as line:
        yield line
    server.close()


async def dialled(line: Line) -> Ends:
    host, port = line.address.split(":")
    return await asyncio.open_connection(host, int(port))


async def asked(ends: Ends, data: bytes) -> bytes:
    ends[1].write(data)
    return await asyncio.wait_for(ends[0].readexactly(len(data)), 5)


async def assert_reset(ends: Ends) -> None:
    with pytest.raises(ConnectionResetError):
        await ends[0].read()


@in_loop
async def test_a_sound_line_passes_everything() -> None:
    async with echo() as line:
        assert await asked(await dialled(line), b"x" * 300_000) == b"x" * 300_000


@in_loop
async def test_cut() -> None:
    async with echo() as line:
        ends = await dialled(line)
        await asked(ends, b"x")
        line.cut()
        await assert_reset(ends)
        await assert_reset(await dialled(line))
        line.heal()
        assert await asked(await dialled(line), b"x") == b"x"


@in_loop
@pytest.mark.parametrize("resets", [False, True])
async def test_stall_and_silence(resets: bool) -> None:
    async with echo() as line:
        ends = await dialled(line)
        await asked(ends, b"x")
        line.silence() if resets else line.stall()
        ends[1].write(b"y")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ends[0].read(1), 0.1)
        line.heal()
        if resets:
            await assert_reset(ends)
        else:
            assert await ends[0].readexactly(1) == b"y"
        assert await asked(await dialled(line), b"z") == b"z"


@in_loop
async def test_delay() -> None:
    async with echo() as line:
        ends = await dialled(line)
        line.delay(0.05)
        began = asyncio.get_running_loop().time()
        await asked(ends, b"x")
        assert asyncio.get_running_loop().time() - began >= 0.1  # there and back


@in_loop
async def test_a_break_lets_so_many_bytes_pass() -> None:
    async with echo() as line:
        ends = await dialled(line)
        await asked(ends, b"x" * 10)
        line.break_at(100)
        ends[1].write(b"y" * 500)
        await assert_reset(ends)
        assert await asked(await dialled(line), b"z") == b"z"
