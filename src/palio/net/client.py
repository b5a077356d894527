"""The client: what applications use to publish and subscribe.

    async with palio.connect("palio://127.0.0.1:7400") as client:
        await client.publish({"price": 450}, body=b"...")
        async for note in client.subscribe("price < 500", durable="desk-7"):
            await note.ack()

One client belongs to one event loop, and serves any number of its tasks at once. Reconnects are
its own affair: publishes that were not acknowledged are sent again, subscriptions go on.
`palio.net.blocking` is the same without asyncio.
"""

from __future__ import annotations

import ipaddress
import logging
import secrets
import time
from collections.abc import AsyncIterable, Generator, Iterable, Mapping
from datetime import datetime
from itertools import islice
from math import inf
from types import TracebackType
from typing import Self, TypeAlias

from palio.errors import InvalidValue, RefusedByBroker, Unreachable
from palio.model.advertisement import Advertisement
from palio.model.message import Message, as_message
from palio.model.predicate import Constraint, Predicate
from palio.net.acknowledgements import Batch
from palio.net.address import Address, Trust, parse_address, tls_context
from palio.net.attributes import to_bytes
from palio.net.connection import Connection
from palio.net.notes import microseconds
from palio.net.subscription import Note, Subscription, Watch
from palio.protocol.client.session import Session, Settings
from palio.protocol.words import Explained, Place, Shown
from palio.routing.patterns.pattern import Pattern

__all__ = ["Client", "Note", "Outgoing", "Subscription", "Watch", "connect"]

log = logging.getLogger("palio.client")

CREDIT = 1000
CHUNK = 256
TURN_BYTES = 1 << 20
HURRY_S = 1.0
"""How long a client that is left because of an error waits for acknowledgements."""

Attributes: TypeAlias = Message | Mapping[str, object]
Outgoing: TypeAlias = Attributes | tuple[Attributes, bytes]
"""A message, or one with its body."""


def connect(
    url: str = "palio://127.0.0.1:7400",
    *,
    token: str | None = None,
    name: str | None = None,
    tls: Trust = None,
    certificate: tuple[str, str] | None = None,
    wait: float = 0.0,
    max_wait: float = 60.0,
    settings: Settings | None = None,
    first: int | None = None,
) -> Client:
    """A client of the broker at `url`; use it in `async with`, or `await` it and close it.

    token        who the client is, where the broker wants to know
    name         under which the numbers of its messages go on after a restart; no two clients
                 that run at once may share it (default: a new one each time)
    tls          with palios://: an SSLContext, or the file of the authorities to trust
    certificate  with palios://: files of the client's own certificate and key
    wait         seconds to keep trying when no broker answers at first
    max_wait     seconds after which what waits for the broker raises Unreachable
    first        the number of its first message: for a program that publishes the same messages in
                 the same order again after a crash, under the same name; those that the broker has
                 are not sent again (default: numbers that were never used)
    """
    address = parse_address(url)
    if token is not None and not address.is_secure and not _is_local(address):
        log.warning("the token for %s travels in the clear; use palios://", address)
    if first is not None and name is None:
        raise InvalidValue("`first` needs the name under which the numbers go on: name=...")
    session = Session(name or f"client-{secrets.token_hex(6)}", token or "", settings, first)
    connection = Connection(address, session, tls_context(address, tls, certificate), max_wait)
    return Client(connection, wait)


def _is_local(address: Address) -> bool:
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return address.host == "localhost"


class Client:
    """A client of one broker. `connect` makes it."""

    def __init__(self, connection: Connection, wait: float = 0.0) -> None:
        self._connection = connection
        self._session = connection.session
        self._wait = wait
        self._is_open = False
        self.quenched = 0
        """Messages that were not sent because nobody wanted them."""

    @property
    def name(self) -> str:
        return self._session.name

    @property
    def broker(self) -> str:
        """The name of the broker; empty before the first connection."""
        return self._session.welcome.broker if self._session.welcome else ""

    @property
    def identity(self) -> str:
        """Whom the broker takes this client for."""
        return self._session.welcome.identity if self._session.welcome else ""

    @property
    def is_connected(self) -> bool:
        return self._session.is_ready

    @property
    def unacknowledged(self) -> int:
        """Durable messages that were published and are not known to be stored."""
        return self._session.unstored

    @property
    def rejected(self) -> int:
        """Messages that the broker did not take, and that nobody waited for."""
        return self._connection.acknowledgements.rejected

    # ---- opening and closing

    async def open(self) -> Self:
        """Connect; raises Unreachable or RefusedByBroker."""
        if not self._is_open:
            await self._connection.open(self._wait)
            self._is_open = True
        return self

    async def close(self) -> None:
        """Wait until everything durable is stored (for `max_wait` at most), then leave."""
        await self._close(self._connection.max_wait)

    async def _close(self, wait: float) -> None:
        if self._is_open:
            self._is_open = False
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
            await self._close(min(HURRY_S, self._connection.max_wait))
        except Unreachable as unreachable:
            log.warning("%s", unreachable)  # the first error is the one to raise

    # ---- publishing

    async def publish(
        self, attributes: Attributes, body: bytes = b"", *, durable: bool = True
    ) -> int | None:
        """Publish a message. Gives its number; None: nobody wants it (see `quench`).

        A durable one is stored when this returns. If this is cancelled, or raises Unreachable, it
        may be stored or not. The others are on their way when this returns, and may be lost.
        """
        connection = self._connection
        connection.check()
        text = to_bytes(attributes)
        if self._session.knows_wanted and not self._is_wanted(attributes):
            return None
        if not connection.has_room(durable):
            await connection.room(durable)
        number = self._session.publish(text, body, time.time_ns() // 1000, durable)
        connection.touch()
        if durable and self._session.is_unstored(number):
            await connection.acknowledgements.wait(number)
        return number

    async def publish_many(
        self, messages: Iterable[Outgoing] | AsyncIterable[Outgoing], *, durable: bool = True
    ) -> int:
        """Publish messages, or pairs of message and body, with one wait at the end.

        Gives how many were sent. All durable ones are stored when it returns; if the broker
        rejects some, the others are stored, and RefusedByBroker tells how many and why.
        """
        connection = self._connection
        connection.check()
        batch = connection.acknowledgements.begin()
        try:
            async for chunk in _chunks(messages):
                at = 0
                while at < len(chunk):
                    if not connection.has_room(durable):
                        await connection.room(durable)
                    at = self._send(chunk, at, durable, batch)
            if durable and self._session.is_unstored(batch.last):
                await connection.acknowledgements.wait(batch.last)
        finally:
            connection.acknowledgements.finish(batch)
        if batch.rejected:
            raise RefusedByBroker(
                f"the broker rejects {batch.rejected} of {batch.sent} messages: {batch.reason}"
            )
        return batch.sent

    def _send(self, chunk: list[Outgoing], at: int, durable: bool, batch: Batch) -> int:
        """Hand messages to the session while there is room. Gives the first that is left."""
        session, now_us = self._session, time.time_ns() // 1000
        is_quenching = session.knows_wanted
        first, last, size, start = 0, 0, 0, at
        try:
            while at < len(chunk) and size < TURN_BYTES and (session.has_room or not durable):
                message = chunk[at]
                attributes, body = message if isinstance(message, tuple) else (message, b"")
                text = to_bytes(attributes)
                if not is_quenching or self._is_wanted(attributes):
                    last = session.publish(text, body, now_us, durable)
                    first = first or last
                    size += len(text) + len(body)
                at += 1
        finally:
            if last:
                batch.add(first, last)  # nobody came between, so they follow each other
            self._connection.touch(at - start)
        return at

    def _is_wanted(self, attributes: Attributes) -> bool:
        is_wanted = self._session.wants(as_message(attributes))
        self.quenched += not is_wanted
        return is_wanted

    async def quench(self, on: bool = True) -> None:
        """From now on, do not send what nobody wants (or send everything again).

        What nobody wants now is not there for a later replay either.
        """
        self._connection.check()
        await self._connection.ask(self._session.quench(on))

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
    ) -> Subscription:
        """Notes of the messages that a predicate selects, from now on.

        durable  the name of a subscription that waits for this client when it is away; each note
                 must be acknowledged, and what is not comes again with the next connection
        since    durable: also what was published from this time on (datetime, or microseconds)
        group    each message goes to one member of the group only
        credit   how many may be under way: not taken by this program, or not acknowledged
        full     durable: what the broker does when too many wait: "block", "drop" or "end"

        `async with` waits until the broker has taken it; iterating does not.
        """
        self._connection.check()
        if since is not None and durable is None:
            raise InvalidValue("`since` needs a durable subscription: give it a name, durable=...")
        text = str(predicate)
        return Subscription(
            self._connection,
            f"subscription {durable or text!r}",
            predicate=text,
            durable=durable or "",
            since=None if since is None else microseconds(since),
            group=group or "",
            credit=credit,
            full=full or "",
        )

    def watch(self, pattern: str | Pattern, *, credit: int = CREDIT) -> Watch:
        """Compounds of a pattern (`[x = 1] then [x = 2]`, ...): lists of notes, which have no body."""
        self._connection.check()
        return Watch(self._connection, f"watch {pattern}", pattern=str(pattern), credit=credit)

    # ---- the rest

    async def advertise(self, *constraints: str | Constraint | Advertisement) -> int:
        """Say what this client publishes; gives an id for `unadvertise`.

        Constraints on one name are alternatives; what they do not allow must not be published.
        """
        self._connection.check()
        texts: list[str] = []
        for each in constraints:
            texts += map(str, each) if isinstance(each, Advertisement) else [str(each)]
        id = self._session.advertise(tuple(texts))
        await self._connection.ask(id)
        return id

    async def unadvertise(self, id: int) -> None:
        """Take an advertisement back."""
        self._connection.check()
        if self._session.unadvertise(id):
            await self._connection.ask(id)

    async def explain(self, message: Attributes, subscription: str = "") -> Explained:
        """Where the message would go if it were published here, hop by hop, and why.

        With `subscription`: why it would, or would not, reach that one.
        """
        self._connection.check()
        text = to_bytes(message).decode()
        answer = await self._connection.ask(self._session.explain(text, subscription))
        assert isinstance(answer, Explained)
        return answer

    async def topology(self) -> tuple[Place, ...]:
        """The network as the broker sees it."""
        self._connection.check()
        answer = await self._connection.ask(self._session.show())
        assert isinstance(answer, Shown)
        return answer.places

    async def forget(self, broker: str) -> None:
        """Say that a broker which is away will never come back: its subscriptions end, and the
        messages that wait for it go. For operators."""
        self._connection.check()
        await self._connection.ask(self._session.forget(broker))

    def __repr__(self) -> str:
        return f"<client {self.name} of {self._connection.address}>"


async def _chunks(
    messages: Iterable[Outgoing] | AsyncIterable[Outgoing],
) -> AsyncIterable[list[Outgoing]]:
    """In pieces, so that the loop can write and receive between them."""
    if isinstance(messages, AsyncIterable):
        async for message in messages:
            yield [message]
        return
    rest = iter(messages)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
