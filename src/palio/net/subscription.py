"""Subscriptions and watches: asynchronous iterators over what comes.

They begin when they are made, survive reconnects, and end when they are closed, when the client
is, or when nobody refers to them or to one of their notes any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from palio.errors import RefusedByBroker, SubscriptionEnded
from palio.net.connection import Connection
from palio.net.inbox import Ended, Inbox
from palio.net.notes import Received
from palio.protocol.words import Item, Subscribed

log = logging.getLogger("palio.client")

Out = TypeVar("Out")


class Note(Received):
    """A message that came to a subscription."""

    __slots__ = ("_source",)

    def __init__(self, source: Subscription | Watch, header: Any, text: Any, body: bytes) -> None:
        super().__init__(header, text, body)
        self._source = source

    async def ack(self) -> None:
        """Say that it is dealt with: a durable subscription never sends it again.

        Nothing happens where there is nothing to acknowledge. Acknowledgements gather until the
        end of the loop's turn.
        """
        self.ack_soon()

    def ack_soon(self) -> None:
        """The same for code that cannot wait."""
        if self.position:
            self._source._acknowledge(self.position)

    def check(self) -> None:
        """Raises what acknowledging it would raise now."""
        self._source._check_open()


class _Incoming(Generic[Out]):
    """What subscriptions and watches share: the iterator, its beginning and its end."""

    def __init__(self, connection: Connection, what: str, **wish: Any) -> None:
        self._connection = connection
        self._what = what
        self._credit: int = wish["credit"]
        self._id = connection.session.subscribe(**wish)
        self._inbox: Inbox[Any] = Inbox()
        connection.inboxes[self._id] = self._inbox
        self._taken = 0
        self._is_closed = False
        self._has_warned = False
        connection.touch()

    async def ready(self) -> None:
        """Wait until the broker has taken it; raises RefusedByBroker with its reason if it does not."""
        try:
            await self._connection.in_time(self._inbox.ready())
        except Ended:
            raise SubscriptionEnded(f"{self._what} is closed") from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Out:
        inbox = self._inbox
        if not inbox.items:
            self._pay()
            self._warn()
            try:
                await inbox.wait()
            except Ended:
                raise StopAsyncIteration from None
        return self._pop()

    async def many(self, most: int = 1000) -> list[Out]:
        """Wait for one, and take all that are there, at most so many. Empty: it has ended."""
        try:
            first = await self.__anext__()
        except StopAsyncIteration:
            return []
        more = min(most - 1, len(self._inbox.items))
        return [first, *(self._pop() for _ in range(more))]

    def _pop(self) -> Out:
        raise NotImplementedError

    def _consume(self) -> None:
        """One was taken that nobody acknowledges."""
        self._taken += 1
        if self._taken * 4 >= self._credit:
            self._pay()

    def _pay(self) -> None:
        """Tell the broker that as many more may come."""
        if self._taken and not self._is_closed:
            self._connection.session.consumed(self._id, self._taken)
            self._taken = 0
            self._connection.touch()

    def _warn(self) -> None:
        """It waits for ever when the application acknowledges nothing; better say so once."""
        if self._has_warned or self._is_closed:
            return
        if self._connection.session.unacknowledged(self._id) >= self._credit:
            self._has_warned = True
            log.warning(
                "%s waits for acknowledgements: %d notes were given and none comes before some of "
                "them are acknowledged with `await note.ack()`; a larger credit allows more",
                self._what,
                self._credit,
            )

    async def close(self, forget: bool = False) -> None:
        """End it. A durable one goes on at the broker and keeps what comes, unless `forget`."""
        if self._is_closed:
            return
        if forget and self._connection.failure is not None:
            raise self._connection.failure
        is_to_answer = self._leave(forget)
        if is_to_answer and self._connection.failure is None:
            try:
                await self._connection.ask(self._id)
            except RefusedByBroker:
                if forget:
                    raise

    def _leave(self, forget: bool = False) -> bool:
        self._is_closed = True
        self._inbox.items.clear()
        self._inbox.end(Ended())
        self._connection.inboxes.pop(self._id, None)
        return self._connection.session.unsubscribe(self._id, forget)

    def _check_open(self) -> None:
        if self._connection.failure is not None:
            raise self._connection.failure
        if not self._connection.session.is_subscribed(self._id):
            raise SubscriptionEnded(
                f"{self._what} has ended, so its notes cannot be acknowledged; "
                "what is not acknowledged is sent again when it is used the next time"
            )

    async def __aenter__(self) -> Self:
        try:
            await self.ready()
        except BaseException:
            if not self._is_closed:
                self._leave()
                self._connection.touch()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        if getattr(self, "_is_closed", True):
            return
        connection, id = self._connection, self._id

        def leave() -> None:
            connection.inboxes.pop(id, None)
            connection.session.unsubscribe(id)
            connection.touch()

        connection.call_from_anywhere(leave)

    def __repr__(self) -> str:
        return f"<{self._what}>"


class Subscription(_Incoming[Note]):
    """Notes of the messages that a predicate selects."""

    def _pop(self) -> Note:
        note = Note(self, *self._inbox.items.popleft())
        if not note.position:
            self._consume()
        return note

    @property
    def subscribed(self) -> Subscribed | None:
        """What the broker said last when it took it: where its queue begins and ends, its version."""
        return self._connection.session.subscribed(self._id)

    async def acknowledge(self, positions: Iterable[int]) -> None:
        """Say of many notes at once that they are dealt with."""
        self._check_open()
        for position in positions:
            self._connection.session.acknowledge(self._id, position)
        self._connection.touch()

    def _acknowledge(self, position: int) -> None:
        self._check_open()
        self._connection.session.acknowledge(self._id, position)
        self._connection.touch()


class Watch(_Incoming[list[Note]]):
    """Compounds of a pattern: the messages that together are what it waits for."""

    def _pop(self) -> list[Note]:
        parts: tuple[Item, ...] = self._inbox.items.popleft()
        self._consume()
        return [Note(self, part, part.attributes, b"") for part in parts]

    def _acknowledge(self, position: int) -> None:
        """There is nothing to acknowledge."""
