"""Real brokers in a thread of the test, on sockets and with disks of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from palio.net.broker.server import Server, serving
from tests.net.peers import configured

PATIENCE_S = 60
_SECRET = 'secret = "0123456789abcdef"\n'
_TIMES = '[times]\nredial = "5 ms"\nredial_max = "50 ms"\n'


@contextmanager
def brokers(folder: Path, *names: str) -> Iterator[list[str]]:
    """The addresses of brokers in a line, each linked to the next."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    stack = AsyncExitStack()
    try:
        started = asyncio.run_coroutine_threadsafe(_start(stack, folder, names), loop)
        yield [f"palio://{server.endpoint}" for server in started.result(PATIENCE_S)]
    finally:
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _start(stack: AsyncExitStack, folder: Path, names: tuple[str, ...]) -> list[Server]:
    servers: list[Server] = []
    for i, name in enumerate(names):
        near = [*names[max(0, i - 1) : i], *names[i + 1 : i + 2]]
        text = "".join(f"[neighbours.{other}]\n{_SECRET}" for other in near) + _TIMES
        config = configured(folder, text, name)
        servers.append(await stack.enter_async_context(serving(config)))
    for server, other, name in zip(servers[1:], servers, names, strict=False):
        server.dial(name, other.endpoint)
    return servers
