"""The client for threads: each call runs in the event loop of the asynchronous client.

Its methods are those of `Client`, without `async`; the documentation there holds here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from types import TracebackType
from typing import Self
from weakref import WeakValueDictionary

from palio.model.advertisement import Advertisement
from palio.model.predicate import Constraint, Predicate
from palio.net.blocking.loop_thread import LoopThread
from palio.net.blocking.operator_requests import BlockingOperatorRequests
from palio.net.blocking.subscription import (
    BlockingNote,
    BlockingPatternSubscription,
    BlockingSubscription,
)
from palio.net.client.client import CREDIT, Client
from palio.net.client.publishing import Attributes, Outgoing
from palio.net.client.subscription import PatternSubscription, Subscription
from palio.net.client.times import Duration
from palio.protocol.wire.message_headers import Headers
from palio.routing.patterns.pattern import Pattern


class BlockingClient(BlockingOperatorRequests):
    """A client of one broker. `connect` makes it; `Client` documents the methods in full."""

    def __init__(self, client: Client, loop: LoopThread) -> None:
        super().__init__(client, loop)
        self._subscriptions: WeakValueDictionary[int, BlockingSubscription] = WeakValueDictionary()

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def broker(self) -> str:
        return self._client.broker

    @property
    def identity(self) -> str:
        return self._client.identity

    @property
    def is_connected(self) -> bool:
        return self._client.is_connected

    @property
    def unacknowledged(self) -> int:
        return self._client.unacknowledged

    @property
    def rejected(self) -> int:
        return self._client.rejected

    @property
    def quenched(self) -> int:
        return self._client.quenched

    def close(self) -> None:
        """Wait for at most `max_wait` until all durable messages are stored, then leave."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._loop.is_alive:
            return
        try:
            self._loop.call(self._client.__aexit__(kind, error, trace))
        finally:
            self._loop.stop()

    def publish(
        self,
        attributes: Attributes,
        body: bytes = b"",
        *,
        durable: bool = True,
        headers: Headers | None = None,
        expires_in: Duration | None = None,
        delay: Duration | None = None,
        not_before: datetime | None = None,
        retain: str | Iterable[str] | None = None,
        forget: bool = False,
    ) -> int | None:
        """Publish a message. Returns its number; None: nobody wants it (see `quench`)."""
        return self._loop.call(
            self._client.publish(
                attributes,
                body,
                durable=durable,
                headers=headers,
                expires_in=expires_in,
                delay=delay,
                not_before=not_before,
                retain=retain,
                forget=forget,
            )
        )

    def request(
        self,
        attributes: Attributes,
        body: bytes = b"",
        *,
        timeout: Duration = 10.0,
        headers: Headers | None = None,
        durable: bool = True,
    ) -> BlockingNote:
        """Publish a message and wait for the first reply to it; raises NoReply."""
        note = self._loop.call(
            self._client.request(
                attributes, body, timeout=timeout, headers=headers, durable=durable
            )
        )
        return BlockingNote(note, self._loop)

    def publish_many(self, messages: Iterable[Outgoing], *, durable: bool = True) -> int:
        """Publish messages, or tuples of message, body and headers, with one wait at the end.

        The iterable is read in the thread of the event loop.
        """
        return self._loop.call(self._client.publish_many(messages, durable=durable))

    def quench(self, on: bool = True) -> None:
        """From now on, do not send messages that nobody wants (or send everything again)."""
        self._loop.call(self._client.quench(on))

    def subscribe(
        self,
        predicate: str | Predicate,
        *,
        durable: str | None = None,
        since: datetime | int | None = None,
        group: str | None = None,
        credit: int = CREDIT,
        full: str | None = None,
        deliveries_max: int | None = None,
        zone: str | None = None,
        last: bool = False,
        timeout: float | None = None,
    ) -> BlockingSubscription:
        """Notes of the messages that a predicate selects; the broker has accepted it on return.

        With a timeout, the iteration ends after that many seconds of silence.
        """

        async def begin() -> Subscription:
            return await self._client.subscribe(
                predicate,
                durable=durable,
                since=since,
                group=group,
                credit=credit,
                full=full,
                deliveries_max=deliveries_max,
                zone=zone,
                last=last,
            ).__aenter__()

        source = self._loop.call(begin())
        subscription = BlockingSubscription(source, self._loop, timeout)
        self._subscriptions[id(source)] = subscription  # which keeps its source
        return subscription

    def unsubscribe_covered(
        self, predicate: str | Predicate, *, forget: bool = False
    ) -> list[BlockingSubscription]:
        """End all subscriptions of this client that a predicate covers. Returns those.

        A durable one continues at the broker and keeps messages, unless `forget`.
        """
        ended = self._loop.call(self._client.unsubscribe_covered(predicate, forget=forget))
        known = (self._subscriptions.get(id(source)) for source in ended)
        return [subscription for subscription in known if subscription is not None]

    def watch(
        self,
        pattern: str | Pattern,
        *,
        credit: int = CREDIT,
        zone: str | None = None,
        timeout: float | None = None,
    ) -> BlockingPatternSubscription:
        """Compounds of a pattern: lists of notes without a body."""

        async def begin() -> PatternSubscription:
            return await self._client.watch(pattern, credit=credit, zone=zone).__aenter__()

        return BlockingPatternSubscription(self._loop.call(begin()), self._loop, timeout)

    def advertise(self, *constraints: str | Constraint | Advertisement) -> int:
        """Declare what this client publishes. Returns an id for `unadvertise`."""
        return self._loop.call(self._client.advertise(*constraints))

    def unadvertise(self, id: int) -> None:
        """Withdraw an advertisement."""
        self._loop.call(self._client.unadvertise(id))

    def unadvertise_covered(self, *constraints: str | Constraint | Advertisement) -> list[int]:
        """Withdraw all advertisements of this client that this one covers. Returns their ids."""
        return self._loop.call(self._client.unadvertise_covered(*constraints))

    def forget_durable(self, durable: str, group: str | None = None) -> None:
        """End a durable subscription of this client's identity for good, with its queue; each group of
        its name is one."""
        self._loop.call(self._client.forget_durable(durable, group))

    def __repr__(self) -> str:
        return repr(self._client)
