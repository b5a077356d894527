"""The messages of a durable subscription for a worker. What no sink takes is rejected: its home broker makes a dead
letter of it. Sinks get no dead letters: else two of them could send each other theirs for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from palio.net.client.client import Client
from palio.net.client.subscription import Note, Subscription
from palio.protocol.wire.control import REJECTION_MAX

DEAD_LETTER = "dead_letter"


class ActingClient(Protocol):
    """A client in this process that acts for an identity."""

    @property
    def client(self) -> Client: ...

    def taken(self) -> None:
        """All that has arrived for it is on its way."""
        ...


class NoteMessage:
    """A `PendingMessage`."""

    def __init__(self, note: Note) -> None:
        self._note = note

    @property
    def id(self) -> str:
        """The same for each delivery, and for all sinks."""
        note = self._note
        return f"{note.publisher}/{note.session}/{note.number}"

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self._note.attributes

    @property
    def headers(self) -> Mapping[str, Any]:
        return self._note.headers

    @property
    def body(self) -> bytes:
        return self._note.body

    async def ack(self) -> None:
        await self._note.ack()

    async def dead_letter(self, reason: str) -> None:
        await self._note.reject(reason[:REJECTION_MAX])


class NoteSource:
    """A `MessageSource`. `taken`: all that has arrived is on its way."""

    def __init__(self, notes: Subscription, taken: Callable[[], None]) -> None:
        self._notes, self._taken = notes, taken

    async def next(self) -> NoteMessage | None:
        while True:
            try:
                note = await anext(self._notes)
            except StopAsyncIteration:
                return None
            if not self._notes.waiting:
                self._taken()
            if DEAD_LETTER not in note.attributes:
                return NoteMessage(note)
            await note.ack()
