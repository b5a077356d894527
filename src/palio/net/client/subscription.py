"""Subscriptions and watches: asynchronous iterators over what arrives.

They begin when they are made and survive reconnects. They end when they are closed, when the
client is closed, or when nobody refers to them, or to one of their notes, any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from palio.errors import InvalidPredicate, RefusedByBroker, SubscriptionEnded
from palio.model.covering import covers
from palio.model.predicate import Predicate
from palio.net.client.feeds import Feeds
from palio.net.client.inbox import InboxClosed
from palio.net.client.notes import ReceivedMessage
from palio.protocol.wire.control import PatternItem, Subscribed

log = logging.getLogger("palio.client")

Out = TypeVar("Out")


class Note(ReceivedMessage):
    """A message that arrived for a subscription."""

    __slots__ = ("_source",)

    def __init__(
        self, source: Subscription | PatternSubscription, header: Any, text: Any, body: bytes
    ) -> None:
        super().__init__(header, text, body)
        self._source = source

    async def ack(self) -> None:
        """Acknowledge the message as processed: a durable subscription never sends it again.

        It has no effect where there is nothing to acknowledge. Acknowledgements gather until the
        end of the loop's turn.
        """
        self.ack_soon()

    def ack_soon(self) -> None:
        """The same, for code that cannot await."""
        if self.position:
            self._source._acknowledge(self.position)

    def check(self) -> None:
        """Raise what `ack` would raise now."""
        self._source._check_open()


class _NoteIterator(Generic[Out]):
    """What subscriptions and watches share: the iteration, its beginning and its end."""

    def __init__(self, feeds: Feeds, what: str, **request: Any) -> None:
        self._feeds = feeds
        self._what = what
        self._credit: int = request["credit"]
        self._id, self._inbox = feeds.open(**request)
        self._taken = 0
        self._is_closed = False
        self._has_warned = False

    async def ready(self) -> None:
        """Wait until the broker has accepted it; if not, raises ParseError for a text that is wrong,
        RefusedByBroker with the reason for anything else."""
        try:
            await self._feeds.wait_for_confirmation(self._inbox)
        except InboxClosed:
            raise SubscriptionEnded(f"{self._what} is closed") from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Out:
        inbox = self._inbox
        if not inbox.items:
            self._grant_credit()
            self._warn_if_stuck()
            try:
                await inbox.wait_for_item()
            except InboxClosed:
                raise StopAsyncIteration from None
        return self._pop()

    async def many(self, most: int = 1000) -> list[Out]:
        """Wait for one and take all that are there, up to `most`. An empty list: it has ended."""
        try:
            first = await self.__anext__()
        except StopAsyncIteration:
            return []
        more = min(most - 1, len(self._inbox.items))
        return [first, *(self._pop() for _ in range(more))]

    def _pop(self) -> Out:
        raise NotImplementedError

    def _consume(self) -> None:
        """The application took one that needs no acknowledgement."""
        self._taken += 1
        if self._taken * 4 >= self._credit:
            self._grant_credit()

    def _grant_credit(self) -> None:
        """As many more may arrive as the application has taken."""
        if self._taken and not self._is_closed:
            self._feeds.consumed(self._id, self._taken)
            self._taken = 0

    def _warn_if_stuck(self) -> None:
        """An application that acknowledges nothing waits for ever: warn once."""
        if self._has_warned or self._is_closed:
            return
        if self._feeds.unacknowledged(self._id) >= self._credit:
            self._has_warned = True
            log.warning(
                "%s waits for acknowledgements: %d notes are unacknowledged, and no more arrive "
                "until some of them are acknowledged with `await note.ack()`; "
                "a larger credit allows more",
                self._what,
                self._credit,
            )

    async def close(self, forget: bool = False) -> None:
        """End it. A durable one continues at the broker and keeps messages, unless `forget`."""
        if self._is_closed:
            return
        if forget and self._feeds.failure is not None:
            raise self._feeds.failure
        if self._end(forget):
            try:
                await self._feeds.wait_for_end(self._id)
            except RefusedByBroker:
                if forget:
                    raise

    def _end(self, forget: bool = False) -> bool:
        """End it here. True: the broker will answer."""
        self._is_closed = True
        self._inbox.items.clear()
        self._inbox.end(InboxClosed())
        return self._feeds.end(self._id, forget)

    def _check_open(self) -> None:
        """Raise unless notes can be acknowledged."""
        if not self._feeds.is_open(self._id):
            raise self._ended()

    def _ended(self) -> SubscriptionEnded:
        return SubscriptionEnded(
            f"{self._what} has ended, so its notes cannot be acknowledged; the broker sends "
            "unacknowledged messages again to the next subscription of this name"
        )

    async def __aenter__(self) -> Self:
        try:
            await self.ready()
        except BaseException:
            if not self._is_closed:
                self._end()
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
        if not getattr(self, "_is_closed", True):
            self._feeds.abandon(self._id)

    def __repr__(self) -> str:
        return f"<{self._what}>"


class Subscription(_NoteIterator[Note]):
    """Notes of the messages that a predicate selects."""

    def __init__(self, feeds: Feeds, what: str, **request: Any) -> None:
        super().__init__(feeds, what, **request)
        self.predicate: str = request["predicate"]
        self.durable: str = request["durable"]
        """The name of a durable subscription; empty for a live one."""

    def is_covered_by(self, predicate: Predicate) -> bool:
        """Does it stand, and does the predicate select whatever it selects? No: it is not sure."""
        if self._is_closed or not self._feeds.is_open(self._id):
            return False
        try:
            return covers(predicate, self.predicate)
        except InvalidPredicate:  # the broker refuses it, or it is too large to decide
            return False

    def _pop(self) -> Note:
        note = Note(self, *self._inbox.items.popleft())
        if not note.position:
            self._consume()
        return note

    @property
    def subscribed(self) -> Subscribed | None:
        """The broker's last confirmation: where the queue begins and ends, and its version."""
        return self._feeds.confirmation(self._id)

    async def acknowledge(self, positions: Iterable[int]) -> None:
        """Acknowledge many notes at once, by their positions."""
        self._check_open()
        self._feeds.acknowledge_all(self._id, positions)

    def _acknowledge(self, position: int) -> None:
        if not self._feeds.acknowledge(self._id, position):
            raise self._ended()


class PatternSubscription(_NoteIterator[list[Note]]):
    """Compounds of a pattern: the messages that match it together."""

    def _pop(self) -> list[Note]:
        parts: tuple[PatternItem, ...] = self._inbox.items.popleft()
        self._consume()
        return [Note(self, part, part.attributes, b"") for part in parts]

    def _acknowledge(self, position: int) -> None:
        """There is nothing to acknowledge."""
