"""The interfaces between listeners, their connections and the host.

    socket ─▶ connection of a listener ──attach, received, congested, detach──▶ ConnectionHost
                                       ◀──write, pause_reading, finish, dismiss── (by link number)

The host knows connections only by `ServedConnection`. Towards the host every connection speaks
native frames, whatever it speaks on its socket, so there is one kind of link to the core:

    native   passes bytes through in both directions
    MQTT     CONNECT becomes Hello (the password is the token), SUBSCRIBE becomes
             SubscribeRequest, PUBLISH a message frame; `write` gets whole frames and encodes them as MQTT packets. The connection
             answers the core's Ping by itself, because MQTT has a keepalive of its own.
    HTTP     the socket is unknown to the host; each stream is a native client with a link inside the process
             (`in_process.py`), and requests of one credential share one

A connection calls its host only from the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from palio.net.endpoint import Endpoint
from palio.net.monitoring.measures import Measure
from palio.protocol.wire.codes import CloseCode


class Dismissal(NamedTuple):
    """Why the host ends or refuses a connection. A listener translates it to its protocol."""

    code: CloseCode
    reason: str


class ServedConnection(Protocol):
    """A connection, as the host sees it."""

    @property
    def peer(self) -> str:
        """The address of the other end, for log lines."""
        ...

    @property
    def dials(self) -> str | None:
        """The neighbour at the other end, if this broker dialled it."""
        ...

    @property
    def is_in_process(self) -> bool:
        """Its other end is in this process, and cannot vanish without a word."""
        ...

    @property
    def is_congested(self) -> bool:
        """Whether too many bytes wait to be sent: the other end reads slowly."""
        ...

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait in memory because the other end does not read them."""
        ...

    @property
    def closed(self) -> asyncio.Future[None]:
        """Done when the socket is closed."""
        ...

    def write(self, frames: list[bytes]) -> int:
        """Send whole native frames, some in several pieces; gives the number of bytes that went to the
        socket. Pieces may be shared with other connections."""
        ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def finish(self, wait_s: float) -> None:
        """Close when everything is sent, at the latest after `wait_s` seconds."""
        ...

    def dismiss(self, dismissal: Dismissal, wait_s: float) -> None:
        """Tell the other end why the connection ends, then `finish`."""
        ...

    def abort(self) -> None:
        """Close at once; what waits to be sent is lost."""
        ...


class ConnectionHost(Protocol):
    """The host, as a connection sees it."""

    def attach(self, connection: ServedConnection, certificate: str, identity: str = "") -> int:
        """A connection is open. `certificate` is the verified name of the other end, or empty;
        `identity`: that of a client whose listener knows it already, from before a restart.

        Gives its link number for all other calls; 0: the host refused and dismissed it.
        """
        ...

    def secure(self, link: int, size: int, certificate: str) -> None:
        """So many bytes of a TLS handshake arrived; when it is complete, with the verified name of the
        other end."""
        ...

    def received(self, link: int, data: bytes) -> None:
        """Native frames arrived, in any pieces."""
        ...

    def congested(self, link: int, is_congested: bool) -> None:
        """`ServedConnection.is_congested` changed."""
        ...

    def detach(self, link: int, error: Exception | None) -> None:
        """The socket is closed, whoever closed it."""
        ...


class Listener(Protocol):
    @property
    def endpoint(self) -> Endpoint:
        """Where it listens; after `start` with the real port, if the configuration says 0."""
        ...

    async def start(self, host: ConnectionHost) -> None:
        """Accept connections from now on; raises PalioError if the address cannot be used."""
        ...

    def stop_accepting(self) -> None:
        """Accept no more connections; those that are open stay."""
        ...

    async def wait_closed(self) -> None:
        """Return when all its connections are closed."""
        ...

    def measures(self) -> Iterable[Measure]:
        """What it counts, besides what the host counts of connections."""
        ...
