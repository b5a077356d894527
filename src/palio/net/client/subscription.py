"""Subscriptions and watches: asynchronous iterators over what arrives.

They begin when they are made and survive reconnects. They end when they are closed, when the
client is closed, or when nobody refers to them, or to one of their notes, any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar

from palio.errors import (
    InvalidPredicate,
    InvalidValue,
    LivesElsewhere,
    RefusedByBroker,
    SubscriptionEnded,
)
from palio.model.covering import covers
from palio.model.predicate import Predicate
from palio.net.client.feeds import Feeds
from palio.net.client.inbox import InboxClosed
from palio.net.client.notes import ReceivedMessage
from palio.net.client.replying import reply_to
from palio.net.client.times import Duration, microseconds_of
from palio.protocol.wire.control import REJECTION_MAX, PatternItem, Subscribed
from palio.protocol.wire.message_headers import NO_HEADERS, Headers

Publish: TypeAlias = Callable[
    [Mapping[str, object], bytes, bool, Headers | None], Coroutine[Any, Any, int | None]
]
"""`ClientPublishing.publish`, for replies."""

log = logging.getLogger("palio.client")

Out = TypeVar("Out")


def check_rejection(reason: object) -> None:
    """Raise InvalidValue unless this may be the reason of a rejection."""
    if not isinstance(reason, str) or len(reason) > REJECTION_MAX:
        raise InvalidValue(
            f"the reason {reason!r:.60}: a text of at most {REJECTION_MAX} characters is needed"
        )


class Note(ReceivedMessage):
    """A message that arrived for a subscription."""

    __slots__ = ("_source",)

    def __init__(
        self, source: Subscription | PatternSubscription, header: Any, text: Any, payload: bytes
    ) -> None:
        super().__init__(header, text, payload)
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

    async def nack(self, delay: Duration = 0.0) -> None:
        """Give the message back: a durable subscription sends it again, to any consumer, not before the
        delay (seconds, or a timedelta) is over. It has no effect where there is nothing to acknowledge,
        or after `ack`."""
        self.nack_soon(delay)

    def nack_soon(self, delay: Duration = 0.0) -> None:
        """The same, for code that cannot await."""
        delay_us = microseconds_of("delay", delay)
        if self.position:
            self._source._nack(self.position, delay_us)

    async def reject(self, reason: str = "") -> None:
        """Say that the message will never be processed: it leaves the queue of its durable subscription,
        and is published as a dead letter with this reason. It has no effect where there is nothing to
        acknowledge, or after `ack`."""
        self.reject_soon(reason)

    def reject_soon(self, reason: str = "") -> None:
        """The same, for code that cannot await."""
        check_rejection(reason)
        if self.position:
            self._source._reject(self.position, reason)

    async def reply(
        self,
        body: bytes = b"",
        *,
        attributes: Mapping[str, object] | None = None,
        headers: Headers | None = None,
        durable: bool = False,
    ) -> None:
        """Answer a request: the reply goes to whoever asked, and to nobody else who does not subscribe
        to its topic. Raises InvalidValue if the message asks for no reply."""
        content, named = reply_to(self, attributes, headers)
        await self._source._publish(content, body, durable, named)

    def check(self) -> None:
        """Raise what `ack` would raise now."""
        self._source._check_open()


class _NoteIterator(Generic[Out]):
    """What subscriptions and watches share: the iteration, its beginning and its end."""

    def __init__(self, feeds: Feeds, what: str, publish: Publish, **request: Any) -> None:
        self._feeds = feeds
        self._publish = publish
        self._what = what
        self._credit: int = request["credit"]
        self._id, self._inbox = feeds.open(**request)
        self._request = request
        self.follow: Callable[[LivesElsewhere], Coroutine[Any, Any, Feeds]] | None = None
        """Gets to the broker where it lives."""
        self._following: asyncio.Task[None] | None = None
        self._taken = 0
        self._is_closed = False
        self._has_warned = False

    @property
    def waiting(self) -> int:
        """How many have arrived and are not taken."""
        return len(self._inbox.items)

    async def ready(self) -> None:
        """Wait until the broker has accepted it; if not, raises ParseError for a text that is wrong,
        RefusedByBroker with the reason for anything else."""
        try:
            await self._feeds.wait_for_confirmation(self._inbox)
        except InboxClosed:
            raise SubscriptionEnded(f"{self._what} is closed") from None
        except LivesElsewhere as error:
            await self._follow(error)
            await self.ready()

    async def _follow(self, error: LivesElsewhere) -> None:
        """Begin anew at the broker where it lives; several tasks may wait for that."""
        if self.follow is None or self._is_closed:
            raise error
        if self._following is None:
            self._following = asyncio.create_task(self._begin_at_home(error, self.follow))
        elif (
            self._following.done() and self._inbox.failure is error
        ):  # sent from there to elsewhere
            raise error
        await asyncio.shield(self._following)

    async def _begin_at_home(
        self, error: LivesElsewhere, follow: Callable[[LivesElsewhere], Coroutine[Any, Any, Feeds]]
    ) -> None:
        self._feeds = await follow(error)
        self._id, self._inbox = self._feeds.open(**self._request)

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
            except LivesElsewhere as error:
                await self._follow(error)
                return await self.__anext__()
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

    def __init__(self, feeds: Feeds, what: str, publish: Publish, **request: Any) -> None:
        super().__init__(feeds, what, publish, **request)
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

    @property
    def took_over(self) -> bool:
        """Whether it has taken its durable subscription over from another client when it began, or when
        it was last connected again. That client's iteration has ended with SubscriptionEnded, whose code is
        `taken_over`."""
        confirmation = self.subscribed
        return confirmation is not None and confirmation.took_over

    async def acknowledge(self, positions: Iterable[int]) -> None:
        """Acknowledge many notes at once, by their positions."""
        self._check_open()
        self._feeds.acknowledge_all(self._id, positions)

    async def nack(self, positions: Iterable[int], delay: Duration = 0.0) -> None:
        """Give many notes back at once, by their positions; see `Note.nack`."""
        self._give_back(positions, microseconds_of("delay", delay))

    async def reject(self, positions: Iterable[int], reason: str = "") -> None:
        """Reject many notes at once, by their positions; see `Note.reject`."""
        check_rejection(reason)
        if not self._feeds.reject(self._id, positions, reason):
            raise self._ended()

    def _nack(self, position: int, delay_us: int) -> None:
        self._give_back((position,), delay_us)

    def _give_back(self, positions: Iterable[int], delay_us: int) -> None:
        if not self._feeds.nack(self._id, positions, delay_us):
            raise self._ended()

    def _reject(self, position: int, reason: str) -> None:
        if not self._feeds.reject(self._id, (position,), reason):
            raise self._ended()

    def _acknowledge(self, position: int) -> None:
        if not self._feeds.acknowledge(self._id, position):
            raise self._ended()


class PatternSubscription(_NoteIterator[list[Note]]):
    """Compounds of a pattern: the messages that match it together."""

    def _pop(self) -> list[Note]:
        parts: tuple[PatternItem, ...] = self._inbox.items.popleft()
        self._consume()
        return [Note(self, part, part.attributes, NO_HEADERS) for part in parts]

    def _acknowledge(self, position: int) -> None:
        """There is nothing to acknowledge."""

    def _nack(self, position: int, delay_us: int) -> None:
        """There is nothing to give back."""

    def _reject(self, position: int, reason: str) -> None:
        """There is nothing to reject."""
