"""A link between the host of a broker and a client in the same process: no socket, the same frames.

    Client ─▶ BrokerSocket ──InProcessLink.write──▶ host.received
                           ◀──data_received──────── host: ServedConnection.write, in the next turn

Listeners of other protocols give each of their streams such a client. So whatever the core bounds, counts
and checks for native clients holds for theirs. A link has two faces: `InProcessLink` is the connection that
the host serves; its `transport` is what the client's socket writes to.

What waits: frames from the broker count until the application has taken them (`taken`). When that is more
than `congested_bytes` the link is congested, as a socket is that nobody reads. A client that passes nothing on
to another end, as one that only publishes, reads at once.
"""

from __future__ import annotations

import asyncio
from collections import deque

from palio.errors import Unreachable
from palio.net.client.address import Address
from palio.net.client.broker_socket import WRITE_BYTES_HIGH, BrokerSocket, Dial
from palio.net.listeners.listener import ConnectionHost, Dismissal
from palio.net.listeners.shared_turns import SharedTurns
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import Bye
from palio.protocol.wire.frames import control_frame
from palio.protocol.wire.parts import cut


class ThisBroker(Address, frozen=True):
    """The address of the broker in whose process the client is."""

    def __str__(self) -> str:
        return "this broker"


_PART_BYTES = 16 << 10
"""What a client is given at once, and one frame more."""

HERE = ThisBroker("this broker", 0)


class InProcessClientEnd:
    """What the client's end of its links shares over reconnects: who it is, and what it has taken."""

    def __init__(
        self,
        host: ConnectionHost,
        turns: SharedTurns,
        congested_bytes: int,
        peer: str,
        certificate: str,
        ending: asyncio.Event,
        acts_for: str = "",
        *,
        reads_at_once: bool = False,
    ) -> None:
        """`peer` is for log lines; `certificate`: the verified name of who uses the client; `ending`: when
        the broker stops, it dials no more; `acts_for`: an identity, for which no token is needed."""
        self._acts_for, self._reads_at_once = acts_for, reads_at_once
        self._ending = ending
        self._host, self._turns, self._congested_bytes = host, turns, congested_bytes
        self._peer, self._certificate = peer, certificate
        self._link: InProcessLink | None = None

    @property
    def dial(self) -> Dial:
        return self._dial

    async def _dial(self, address: Address, socket: BrokerSocket, limit_s: float) -> None:
        if self._ending.is_set():
            raise Unreachable("this broker stops", code=CloseCode.STOPPING)
        self._link = InProcessLink(
            self._host, self._turns, socket, self._congested_bytes, self._peer, self._acts_for,
            reads_at_once=self._reads_at_once,
        )  # fmt: skip
        self._link.open(self._certificate)

    def taken(self) -> None:
        """The application has taken all that has arrived."""
        if self._link is not None:
            self._link.taken()


class InProcessLink:
    """A `ServedConnection`."""

    dials = None
    is_in_process = True

    def __init__(
        self,
        host: ConnectionHost,
        turns: SharedTurns,
        socket: BrokerSocket,
        congested_bytes: int,
        peer: str,
        acts_for: str = "",
        *,
        reads_at_once: bool = False,
    ) -> None:
        self.peer, self._acts_for = peer, acts_for
        self._reads_at_once = reads_at_once
        self.is_congested = False
        self.waiting_bytes = 0
        self._host, self._turns = host, turns
        self._socket, self._congested_bytes = socket, congested_bytes
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._link = 0
        self._inward: deque[bytes] = deque()  # to the client, in the next turns
        self._outward: list[bytes] = []  # to the host, while it does not read
        self.unsent_bytes = 0
        self._is_full = False  # the client has been told to pause
        self._is_read = True
        self._is_ending = False  # nothing more is sent in either direction
        self._transport = _Transport(self)

    def open(self, certificate: str) -> None:
        self._link = self._host.attach(self, certificate, self._acts_for)
        self._socket.connection_made(self._transport)

    # ---- called by the host

    def write(self, frames: list[bytes]) -> int:
        if self._is_ending:
            return 0
        size = sum(map(len, frames))
        if not self._inward:
            self._turns.soon(self._deliver)
        self._inward += frames
        self.waiting_bytes += size
        if self.waiting_bytes > self._congested_bytes and not self.is_congested:
            self._loop.call_soon(self._regulate)
        return size

    def pause_reading(self) -> None:
        self._is_read = False

    def resume_reading(self) -> None:
        if not self._is_read:
            self._is_read = True
            self._loop.call_soon(self._send)

    def finish(self, wait_s: float) -> None:
        self.end()

    def dismiss(self, dismissal: Dismissal, wait_s: float) -> None:
        self.write([control_frame(Bye(cut(dismissal.reason), dismissal.code))])
        self.end()

    def abort(self) -> None:
        self.end()

    # ---- called by the client

    def send(self, data: bytes) -> None:
        """To the host, in the next turn at the latest; in parts while it does not read."""
        if self._is_ending:
            return
        self._outward.append(data)
        self.unsent_bytes += len(data)
        if self._is_read and self._link:
            self._send()
        elif self.unsent_bytes > WRITE_BYTES_HIGH and not self._is_full:
            self._is_full = True
            self._loop.call_soon(self._socket.pause_writing)

    @property
    def is_ending(self) -> bool:
        return self._is_ending

    def taken(self) -> None:
        self.waiting_bytes = sum(map(len, self._inward))
        self._regulate()

    def end(self) -> None:
        """Close, after what has been sent to the client has arrived there."""
        if not self._is_ending:
            self._is_ending = True
            self._loop.call_soon(self._close)

    # ---- turns

    def _send(self) -> None:
        while self._outward and self._is_read and not self.closed.done():
            data = self._outward.pop(0)
            self.unsent_bytes -= len(data)
            self._host.received(self._link, data)
        if self._is_full and not self._outward and not self.closed.done():
            self._is_full = False
            self._loop.call_soon(self._socket.resume_writing)

    def _deliver(self) -> None:
        """A part of what waits: the client must write it, too, and others wait."""
        frames: list[bytes] = []
        size = 0
        while self._inward and size < _PART_BYTES:
            frames.append(self._inward.popleft())
            size += len(frames[-1])
        if frames and not self.closed.done():
            self._socket.data_received(frames[0] if len(frames) == 1 else b"".join(frames))
            if self._reads_at_once:
                self.taken()
        if self._inward:
            self._turns.soon(self._deliver)

    def _regulate(self) -> None:
        is_congested = self.waiting_bytes > self._congested_bytes
        if is_congested != self.is_congested and not self._is_ending:
            self.is_congested = is_congested
            self._host.congested(self._link, is_congested)

    def _close(self) -> None:
        if self.closed.done():
            return
        if self._inward:  # the client gets it all before the end
            self._turns.soon(self._close)
            return
        self.closed.set_result(None)
        self._outward.clear()
        self._socket.connection_lost(None)
        if self._link:
            self._host.detach(self._link, None)


class _Transport(asyncio.Transport):
    """What the socket of the client writes to."""

    def __init__(self, link: InProcessLink) -> None:
        super().__init__()
        self._link = link

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._link.send(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self._link.unsent_bytes

    def is_closing(self) -> bool:
        return self._link.is_ending

    def close(self) -> None:
        self._link.end()

    def abort(self) -> None:
        self._link.end()
