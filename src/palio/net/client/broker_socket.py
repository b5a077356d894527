"""One socket to a broker, and the errors of a dial that fails.

A socket reports to its owner until it is left; after that it is silent.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from palio.errors import Unreachable
from palio.net.client.address import Address

DIAL_S_MAX = 10.0
DIAL_S_MAX_OF_SEVERAL = 2.0
"""Where there are other addresses to try."""
LINGER_S = 1.0
"""How long a socket that is left may take to write what it still holds."""
WRITE_BYTES_HIGH = 1 << 20


class BrokerSocket(asyncio.Protocol):
    def __init__(
        self,
        open: Callable[[BrokerSocket, asyncio.Transport], None],
        receive: Callable[[bytes], None],
        pause: Callable[[bool], None],
        lose: Callable[[str], None],
    ) -> None:
        """`open` is called before anything else, then `receive` gets data, `pause` whether writing
        is paused, `lose` why the socket is gone."""
        self._open = open
        self._receive, self._pause, self._lose = receive, pause, lose
        self._is_left = False
        self.transport: asyncio.Transport | None = None
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)  # type: ignore[attr-defined]
        if not self._is_left:
            self._open(self, transport)  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        if not self._is_left:
            self._receive(data)

    def pause_writing(self) -> None:
        if not self._is_left:
            self._pause(True)

    def resume_writing(self) -> None:
        if not self._is_left:
            self._pause(False)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.gone.done():
            self.gone.set_result(None)
        if not self._is_left:
            self._is_left = True
            self._lose("the connection was lost" + (f": {error}" if error else ""))

    def leave(self) -> None:
        """Write what is left to write, close, and report nothing more."""
        self._is_left = True
        if self.transport is not None:
            self.transport.close()
            asyncio.get_running_loop().call_later(LINGER_S, self.transport.abort)


Dial: TypeAlias = Callable[[Address, BrokerSocket, float], Awaitable[None]]
"""Connects a socket to a broker within so many seconds; raises Unreachable."""


def dial_with(tls: ssl.SSLContext | None) -> Dial:
    """Over TCP; `tls`: the context for TLS."""

    async def dialled(address: Address, socket: BrokerSocket, limit_s: float) -> None:
        await dial(address, tls, socket, limit_s)

    return dialled


async def dial(
    address: Address, tls: ssl.SSLContext | None, socket: BrokerSocket, limit_s: float = DIAL_S_MAX
) -> None:
    """Connect a socket; raises Unreachable with the likely cause."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(limit_s):
            await loop.create_connection(lambda: socket, address.host, address.port, ssl=tls)
    except (OSError, TimeoutError) as error:
        raise Unreachable(_why_unreachable(address, error, limit_s)) from None


def _why_unreachable(address: Address, error: Exception, limit_s: float) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"the certificate of {address} is not trusted: {error.verify_message}; "
                "give the file of its authority as tls=..., and use the name that it is for"
            )
        case ssl.SSLError():
            return f"no TLS with {address}: {error.reason or error}; is it a plain palio:// port?"
        case TimeoutError():
            return f"no broker answers at {address} within {limit_s:g} s; is the host right?"
        case _:
            return (
                f"no broker at {address} ({error.strerror or error}); "  # type: ignore[attr-defined]
                "start one with `palio broker --config broker.toml`"
            )
