"""Connections to sinks, by httpcore with a resolver between: an address is checked, and then it is that one
which is connected to. TLS checks the name of the URL as ever.

httpcore, not httpx or aiohttp: it is the small part of httpx that makes connections, follows no redirects,
reads no proxies from the environment, and lets us make the connections.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import httpcore

from palio.errors import PalioError
from palio.protocol.cloudevents.sinks import SinkRules, check_addresses

Resolver: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
SocketOptions: TypeAlias = Iterable[httpcore.SOCKET_OPTION]


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, each once, as the system orders them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class CheckedConnections(httpcore.AsyncNetworkBackend):
    """Connects to the addresses that the rules allow."""

    def __init__(self, rules: SinkRules, resolver: Resolver = resolve) -> None:
        self._rules = rules
        self._resolver = resolver
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: SocketOptions | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            found = await self._resolver(host, port)
            addresses = check_addresses(host, found, self._rules)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} has no address: {error}") from None
        failed: Exception | None = None
        for address in addresses[:_TRIED]:
            try:
                return await self._inner.connect_tcp(
                    str(address), port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed if failed is not None else httpcore.ConnectError("no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: SocketOptions | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise PalioError("a sink is no socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_TRIED = 4
"""Addresses of a name, one after the other."""
