"""Quenching: a publisher learns what subscribers want, and need not send anything else.

The knowledge is valid for one connection. Until the broker has sent it, everything is published.
"""

from __future__ import annotations

from contextlib import suppress

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.protocol.client.requests import SessionRequests
from palio.protocol.client.send_buffer import SendBuffer
from palio.protocol.wire import control


class QuenchFilter:
    __slots__ = ("_buffer", "_id", "_requests", "wanted")

    def __init__(self, requests: SessionRequests, buffer: SendBuffer) -> None:
        self._requests = requests
        self._buffer = buffer
        self._id: int | None = None
        """Of the request that turned quenching on; None: it is off."""
        self.wanted: Predicate | None = None
        """What subscribers want; None: unknown."""

    def switch(self, on: bool) -> int:
        """Turn quenching on or off; Done answers. Returns the id of the request."""
        id = self._requests.quench(on)
        self._id = id if on else None
        if not on:
            self.wanted = None
        return id

    def wants(self, message: Message) -> bool:
        """Whether a subscriber wants the message; True if that is unknown."""
        return self.wanted is None or self.wanted.matches(message)

    def learn(self, predicate: str | None) -> None:
        """The broker tells what subscribers want; None: it does not know."""
        self.wanted = None
        if self._id is not None and predicate is not None:
            # A newer broker may write what this client cannot read: then everything is sent.
            with suppress(PalioError):
                self.wanted = parse(predicate)

    def restate(self) -> None:
        """Turn quenching on for a new connection, unless the request is repeated anyway."""
        if self._id is not None and not self._requests.is_in_flight(self._id):
            self._buffer.send_if_ready(control.Quench(self._id, True))

    def disconnect(self) -> None:
        self.wanted = None
