"""The client: what applications use to publish and subscribe.

    async with palio.connect("palio://127.0.0.1:7400") as client:
        await client.publish({"price": 450}, body=b"...")
        async for note in client.subscribe("price < 500", durable="desk-7"):
            await note.ack()

A client belongs to one event loop and serves any number of its tasks at once. It reconnects by
itself: it sends unacknowledged messages again, and its subscriptions continue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Coroutine, Generator, Iterable
from datetime import datetime
from math import inf
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from palio.errors import InvalidPredicate, InvalidValue, Unreachable
from palio.model.advertisement import Advertisement, parse_advertisement
from palio.model.covering import as_predicate, covers
from palio.model.language import parse
from palio.model.predicate import Constraint, Predicate
from palio.net.client.connection import Connection
from palio.net.client.home_brokers import HomeBrokers, name_and_home
from palio.net.client.last_values import with_retain
from palio.net.client.notes import microseconds
from palio.net.client.operator_requests import OperatorRequests
from palio.net.client.publishing import Attributes, ClientPublishing, Outgoing
from palio.net.client.requesting import Requester, Requesting
from palio.net.client.subscription import PatternSubscription, Subscription
from palio.net.client.times import Duration, check_delayed, with_delay, with_expiry
from palio.protocol.wire.message_headers import Headers
from palio.protocol.wire.queue_control import ForgetDurable
from palio.routing.patterns.language import parse as parse_pattern
from palio.routing.patterns.pattern import Pattern

log = logging.getLogger("palio.client")

CREDIT = 1000
DELIVERIES_MAX = 1_000_000
CLOSE_AFTER_ERROR_S_MAX = 1.0
"""How long a client that is closed because of an error waits for acknowledgements."""


class Client(Requester, OperatorRequests):
    """A client of one broker. `connect` makes it."""

    def __init__(
        self, connection: Connection, wait: float = 0.0, home_brokers: HomeBrokers | None = None
    ) -> None:
        super().__init__(connection)
        session = connection.session
        self._session = session
        self._status = connection.status
        self._publishing = ClientPublishing(
            session.publisher,
            session.outbox,
            session.quenching,
            connection.writer,
            connection.acknowledgements,
            connection.status,
        )
        self._subscriptions: WeakValueDictionary[int, Subscription] = WeakValueDictionary()
        self._requesting = Requesting(self._publishing, self.subscribe, lambda: self.identity)
        self._home_brokers = home_brokers
        self.feeds = connection.feeds
        """For subscriptions."""
        self._wait = wait
        self._is_open = False

    @property
    def name(self) -> str:
        return self._session.name

    @property
    def broker(self) -> str:
        """The name of the broker; empty before the first connection."""
        return self._session.welcome.broker if self._session.welcome else ""

    @property
    def identity(self) -> str:
        """Who this client is to the broker; empty before the first connection."""
        return self._session.welcome.identity if self._session.welcome else ""

    @property
    def is_connected(self) -> bool:
        return self._session.is_ready

    @property
    def unacknowledged(self) -> int:
        """Durable messages that were published and are not known to be stored."""
        return self._session.outbox.unstored

    @property
    def rejected(self) -> int:
        """Messages that the broker rejected while nobody waited for them."""
        return self._connection.acknowledgements.rejected

    @property
    def quenched(self) -> int:
        """Messages that were not sent because nobody wanted them."""
        return self._publishing.quenched

    # ---- opening and closing

    async def open(self) -> Self:
        """Connect; raises Unreachable or RefusedByBroker."""
        if not self._is_open:
            await self._connection.open(self._wait)
            self._is_open = True
        return self

    async def close(self) -> None:
        """Wait for at most `max_wait` until all durable messages are stored, then leave."""
        await self._close(self._status.max_wait)

    async def _close(self, wait: float) -> None:
        if self._is_open:
            self._is_open = False
            self._requesting.end()
            if self._home_brokers is not None:
                await self._home_brokers.close()
            await self._connection.close(None if wait == inf else wait)

    def __await__(self) -> Generator[object, None, Self]:
        return self.open().__await__()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
            return
        try:
            await self._close(min(CLOSE_AFTER_ERROR_S_MAX, self._status.max_wait))
        except Unreachable as unreachable:
            log.warning("%s", unreachable)  # the first error is the one to raise

    # ---- publishing

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
    ) -> Coroutine[Any, Any, int | None]:
        """Publish a message. Returns its number; None: nobody wants it (see `quench`).

        Headers are carried and not matched: bool, int, float, str, bytes, or lists of pairs of texts.
        After `expires_in` (seconds, or a timedelta) the message is not delivered any more. With `delay`
        (likewise), or `not_before`, it is stored now and published then, to whoever subscribes then.
        `retain` names attributes whose values are a key: the message is the last value of that key, which
        `subscribe(last=True)` gives to new subscribers; with `forget` the key has none any more.

        A durable message is stored when this returns. If this is cancelled, or raises
        Unreachable, the message may be stored or not. A message that is not durable is on its
        way when this returns, and may be lost.
        """
        if expires_in is not None:
            headers = with_expiry(headers, expires_in)
        if delay is not None or not_before is not None:
            check_delayed(durable)
            headers = with_delay(headers, delay, not_before)
        if retain or forget:
            headers = with_retain(headers, retain, forget, durable)
        # Hot: handing on the coroutine is cheaper than awaiting it in one more coroutine.
        return self._publishing.publish(attributes, body, durable, headers)

    async def publish_many(
        self, messages: Iterable[Outgoing] | AsyncIterable[Outgoing], *, durable: bool = True
    ) -> int:
        """Publish messages, or tuples of message, body and headers, with one wait at the end.

        Returns how many were sent. All durable messages are stored when this returns. If the
        broker rejects some, the others are stored, and RefusedByBroker tells how many and why.
        """
        return await self._publishing.publish_many(messages, durable)

    async def quench(self, on: bool = True) -> None:
        """From now on, do not send messages that nobody wants (or send everything again).

        A message that nobody wants now is missing from a later replay too.
        """
        self._status.check()
        await self._connection.answers.wait_for(self._session.quenching.switch(on))

    # ---- subscribing

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
    ) -> Subscription:
        """Notes of the messages that a predicate selects, from now on.

        durable  the name of a subscription that the broker keeps while this client is away; each
                 note must be acknowledged, or it is sent again on the next connection. With
                 "name@broker" it lives at that broker, to which the client connects for it
        since    durable: also messages published from this time on (datetime, or microseconds)
        group    each message goes to only one member of the group; all have the same predicate. Each
                 group of a durable name has its own queue, and so has the name without a group
        credit   the most messages in flight: not taken by this program, or not acknowledged
        full     what the broker does when too many messages wait: "drop" or "end", and if durable
                 "block" (default: the broker's `[queues] full`; live: "drop")
        deliveries_max  durable: a message that was delivered so often and not acknowledged is published
                 as a dead letter (default: the broker's `[queues] deliveries`)
        zone     the time zone of the text: of its TIMESTAMP literals, and of what `hour(at)` shows
                 (default: UTC)
        last     live, without a group: first the last value of each key that it selects (`note.retained`);
                 of messages of one key none comes after a newer one

        `async with` waits until the broker has accepted it; iterating does not.
        """
        self._status.check()
        if not isinstance(predicate, str | Predicate):
            raise InvalidValue(f"a predicate is a text or a Predicate, not {predicate!r}")
        for word, value in (("durable", durable), ("group", group), ("full", full)):
            if value is not None and not isinstance(value, str):
                raise InvalidValue(f"{word}={value!r}: a text is needed, or None")
        if durable == "":
            raise InvalidValue(
                "durable='': a durable subscription needs a name; None makes it live"
            )
        if since is not None and durable is None:
            raise InvalidValue("`since` needs a durable subscription: give it a name, durable=...")
        if last and (durable is not None or group is not None):
            raise InvalidValue("`last` needs a live subscription without a group")
        if deliveries_max is not None:
            check_deliveries(deliveries_max, durable)
        text = str(predicate if zone is None else parse(predicate, zone=zone))
        name, home = name_and_home(durable or "")
        subscription = Subscription(
            self.feeds,
            f"subscription {durable or text!r}",
            self._publishing.publish,
            predicate=text,
            durable=name,
            home=home,
            since=None if since is None else microseconds(since),
            group=group or "",
            credit=credit,
            full=full or "",
            deliveries_max=deliveries_max or 0,
            last=last,
        )
        if home and self._home_brokers is not None:
            subscription.follow = self._home_brokers.feeds
        self._subscriptions[id(subscription)] = subscription
        return subscription

    async def unsubscribe_covered(
        self, predicate: str | Predicate, *, forget: bool = False
    ) -> list[Subscription]:
        """End all subscriptions of this client that a predicate covers. Returns those, oldest first.

        Each ends as by its `close`: a durable one continues at the broker and keeps messages,
        unless `forget`. Subscriptions of other clients, and watches, are not touched, nor is one of
        which it is not sure that it is covered.
        """
        self._status.check()
        wide = as_predicate(predicate)
        ended = [one for one in list(self._subscriptions.values()) if one.is_covered_by(wide)]
        outcomes = await asyncio.gather(
            *(one.close(forget) for one in ended), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return ended

    def watch(
        self, pattern: str | Pattern, *, credit: int = CREDIT, zone: str | None = None
    ) -> PatternSubscription:
        """Compounds of a pattern (`[x = 1] then [x = 2]`, ...): lists of notes without a body.
        `zone` is the time zone of the text (default: UTC)."""
        self._status.check()
        read = pattern if zone is None else parse_pattern(pattern, zone=zone)
        feeds, text = self._connection.feeds, str(read)
        publish = self._publishing.publish
        return PatternSubscription(feeds, f"watch {text}", publish, pattern=text, credit=credit)

    # ---- requests

    async def advertise(self, *constraints: str | Constraint | Advertisement) -> int:
        """Declare what this client publishes. Returns an id for `unadvertise`.

        Constraints on one name are alternatives; what they do not allow must not be published.
        """
        self._status.check()
        id = self._session.requests.advertise(_texts(constraints))
        await self._connection.answers.wait_for(id)
        return id

    async def unadvertise(self, id: int) -> None:
        """Withdraw an advertisement."""
        self._status.check()
        if self._session.requests.unadvertise(id):
            await self._connection.answers.wait_for(id)

    async def unadvertise_covered(
        self, *constraints: str | Constraint | Advertisement
    ) -> list[int]:
        """Withdraw all advertisements of this client that this one covers. Returns their ids."""
        self._status.check()
        wide = parse_advertisement(_texts(constraints))
        covered = [
            id
            for id, texts in self._session.requests.advertised.items()
            if _is_covered(texts, wide)
        ]
        await asyncio.gather(*map(self.unadvertise, covered))
        return covered

    async def forget_durable(self, durable: str, group: str | None = None) -> None:
        """End a durable subscription of this client's identity for good, with its queue; each group of
        its name is one.

        Raises RefusedByBroker with the code `unknown` if there is none of this name and group.
        """
        self._status.check()
        id = self._session.requests.ask(ForgetDurable, durable, group or "")
        await self._connection.answers.wait_for(id)

    def __repr__(self) -> str:
        return f"<client {self.name} of {self._status.address}>"


def check_deliveries(deliveries_max: object, durable: str | None) -> None:
    if type(deliveries_max) is not int or not 1 <= deliveries_max <= DELIVERIES_MAX:
        raise InvalidValue(
            f"deliveries_max={deliveries_max!r}: a number from 1 to {DELIVERIES_MAX:,} is needed, or None"
        )
    if durable is None:
        raise InvalidValue(
            "`deliveries_max` needs a durable subscription: give it a name, durable=..."
        )


def _texts(constraints: Iterable[str | Constraint | Advertisement]) -> tuple[str, ...]:
    """The constraints of an advertisement as SQL."""
    texts: list[str] = []
    for each in constraints:
        texts += map(str, each) if isinstance(each, Advertisement) else [str(each)]
    return tuple(texts)


def _is_covered(texts: tuple[str, ...], wide: Advertisement) -> bool:
    try:
        return covers(wide, parse_advertisement(texts))
    except InvalidPredicate:  # the broker is about to refuse it
        return False
