"""The native clients behind requests and streams, each with a link inside the process.

A stream or a WebSocket has a client of its own: so the core bounds the streams of an identity, what waits for
each, and ends those whose grants are gone. Publishing and requests of one credential share a client, which is
kept for a while: the store remembers each publisher for days, so a request must not be a new one.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from palio.errors import NetworkError, RefusedByBroker
from palio.net.client.client import Client
from palio.net.client.connection import Connection
from palio.net.listeners.http.problems import unauthorized
from palio.net.listeners.in_process import HERE, InProcessClientEnd
from palio.net.listeners.listener import ConnectionHost
from palio.net.listeners.shared_turns import SharedTurns
from palio.protocol.client.session import Session, SessionSettings
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.frames import Limits

SHARED_MAX = 1000
IDLE_S = 600.0
_SWEEP_S = 60.0
_CLOSE_S = 1.0


class Credential(NamedTuple):
    """Who asks, as the core can check it: a token, and the name in a certificate."""

    token: str
    certificate: str


class StreamClient(NamedTuple):
    client: Client
    end: InProcessClientEnd

    def taken(self) -> None:
        """All that has arrived for it is on its way."""
        self.end.taken()


class BrokerClients:
    def __init__(
        self,
        host: ConnectionHost,
        limits: Limits,
        congested_bytes: int,
        answer_s: float,
        ending: asyncio.Event,
    ) -> None:
        """`ending`: set when the broker stops."""
        self.answer_s = answer_s
        self._host, self._congested_bytes, self._ending = host, congested_bytes, ending
        self._turns = SharedTurns()
        self._settings = SessionSettings(limits)
        self._shared: dict[Credential, _Shared] = {}  # the one used last at the end
        self._retired: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_later()

    @asynccontextmanager
    async def shared(self, who: Credential) -> AsyncIterator[Client]:
        """A client for requests; raises Problem if the broker does not know who it is."""
        shared = self._shared.pop(who, None)
        if shared is not None and shared.is_lost:
            self._retire(shared)
            shared = None
        if shared is None:
            shared = _Shared(self._client(who, "http", "http", reads_at_once=True).client)
        self._shared[who] = shared
        shared.use()
        try:
            await shared.open()
            yield shared.client
        except RefusedByBroker as error:
            if not shared.is_opened:
                self._forget(who, shared)
                raise _as_unauthorized(error) from None
            raise
        except NetworkError:
            if not shared.is_opened:
                self._forget(who, shared)
            raise
        finally:
            shared.leave()
        while len(self._shared) > SHARED_MAX:
            self._retire(self._shared.pop(next(iter(self._shared))))

    @asynccontextmanager
    async def stream(self, who: Credential, peer: str) -> AsyncIterator[StreamClient]:
        """A client for one stream; raises Problem if the broker does not know who it is."""
        stream = self._client(who, f"http-{peer}", f"http {peer}")
        try:
            await stream.client.open()
        except RefusedByBroker as error:
            raise _as_unauthorized(error) from None
        try:
            yield stream
        finally:
            self._close_soon(stream.client)

    def acting_for(self, identity: str, name: str) -> StreamClient:
        """A client that acts for an identity of this broker, without its token."""
        return self._client(Credential("", ""), name, f"sink {name}", identity)

    async def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        for shared in self._shared.values():
            self._close_soon(shared.client)
        self._shared.clear()
        if self._retired:
            await asyncio.wait(self._retired, timeout=_CLOSE_S)

    def _client(
        self,
        who: Credential,
        name: str,
        peer: str,
        acts_for: str = "",
        *,
        reads_at_once: bool = False,
    ) -> StreamClient:
        end = InProcessClientEnd(
            self._host,
            self._turns,
            self._congested_bytes,
            peer,
            who.certificate,
            self._ending,
            acts_for,
            reads_at_once=reads_at_once,
        )
        session = Session(name, who.token, self._settings, session=secrets.token_hex(8))
        return StreamClient(Client(Connection((HERE,), session, end.dial, self.answer_s)), end)

    # ---- the end of clients

    def _forget(self, who: Credential, shared: _Shared) -> None:
        if self._shared.get(who) is shared:
            del self._shared[who]

    def _retire(self, shared: _Shared) -> None:
        """Close it when its last user leaves."""
        shared.when_unused(lambda: self._close_soon(shared.client))

    def _close_soon(self, client: Client) -> None:
        task = asyncio.get_running_loop().create_task(_closed(client))
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep_idle)

    def _sweep_idle(self) -> None:
        before_s = asyncio.get_running_loop().time() - IDLE_S
        for who, shared in list(self._shared.items()):
            if shared.used_s < before_s and not shared.users:
                del self._shared[who]
                self._retire(shared)
        self._sweep_later()


class _Shared:
    """A client that several requests use at once."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.users = 0
        self.used_s = 0.0
        self.is_opened = False
        self._opening: asyncio.Task[Client] | None = None
        self._unused: list[object] = []

    @property
    def is_lost(self) -> bool:
        """It was open, and is no more."""
        return self.is_opened and not self.client.is_connected

    async def open(self) -> None:
        if self.is_opened:
            return
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self.client.open())
        await asyncio.shield(self._opening)
        self.is_opened = True

    def use(self) -> None:
        self.users += 1

    def leave(self) -> None:
        self.users -= 1
        self.used_s = asyncio.get_running_loop().time()
        if not self.users:
            for call in self._unused:
                call()  # type: ignore[operator]
            self._unused = []

    def when_unused(self, call: object) -> None:
        self._unused.append(call)
        if not self.users:
            self.users = 1
            self.leave()


async def _closed(client: Client) -> None:
    with suppress(NetworkError):
        async with asyncio.timeout(_CLOSE_S):
            await client.close()


def _as_unauthorized(error: RefusedByBroker) -> Exception:
    return unauthorized(error) if error.code == CloseCode.DENIED else error
