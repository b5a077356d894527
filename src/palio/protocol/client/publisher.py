"""Publishing: messages get their numbers here, and durable ones go through the outbox.

The numbers of one session grow: the broker recognises by them what it has stored already. Where they
start is known with the first Welcome.
"""

from __future__ import annotations

from palio.errors import NetworkError
from palio.protocol.client.outbox import Outbox
from palio.protocol.client.send_buffer import SendBuffer
from palio.protocol.wire.frames import Limits, message_frame
from palio.protocol.wire.headers import PublishHeader
from palio.protocol.wire.message_headers import NO_HEADERS


class SessionPublisher:
    __slots__ = ("_buffer", "_first", "_is_numbered", "_limits", "_number", "_outbox", "dropped")

    def __init__(
        self, limits: Limits, outbox: Outbox, buffer: SendBuffer, first: int | None
    ) -> None:
        self._limits = limits
        self._outbox = outbox
        self._buffer = buffer
        self._first = first
        self._number = 0 if first is None else first - 1
        self._is_numbered = False
        self.dropped = 0
        """Best-effort messages that were published while there was no connection."""

    @property
    def headers_max(self) -> int:
        """The most bytes of message headers."""
        return self._limits.headers

    def has_room(self, durable: bool) -> bool:
        """May a message be published now? Best-effort messages need a connection to go to."""
        return self._outbox.has_room if durable else self._buffer.is_ready

    def publish(
        self,
        attributes: bytes,
        body: bytes,
        now_us: int,
        durable: bool = True,
        headers: bytes = NO_HEADERS,
    ) -> int:
        """Send a message and return its number. A durable one is kept until it is stored. `headers` are
        packed (message_headers.py)."""
        if not self._is_numbered:
            raise NetworkError(
                "nothing can be published before the first Welcome: "
                "it tells with which number this client continues"
            )
        self._limits.check(attributes, body)
        outbox = self._outbox
        if durable and not outbox.has_room:
            raise NetworkError(
                f"the outbox is full: {outbox.unstored} durable messages wait for the broker; "
                "check `has_room` before publishing"
            )
        self._number = number = self._number + 1
        if durable and number <= outbox.settled:
            return number  # an earlier client with this name, and `first`, had stored it
        frame = message_frame(PublishHeader(number, now_us, durable), attributes, body, headers)
        if durable:
            outbox.add(number, frame)
        if self._buffer.is_ready:
            self._buffer.frames.append(frame)
        elif not durable:
            self.dropped += 1
        return number

    def continue_from(self, published: int, now_us: int) -> None:
        """A connection is ready; the broker has stored all messages up to `published`."""
        if self._first is None:
            # The clock makes numbers grow over restarts of a client that has a name and no session.
            # That covers best-effort messages too, whose numbers no broker remembers.
            start = self._number if self._is_numbered else now_us
            self._number = max(self._number, published, start)
        self._is_numbered = True

    def resend(self) -> None:
        """Send the whole outbox on a new connection."""
        self._buffer.frames.extend(self._outbox)
