"""Requests and replies of one client: a question is a message, and so is each answer.

    request ── header reply_to: a topic of this client, correlation: a number ──▶ whoever subscribes
    reply   ── attributes of that topic, header correlation ──▶ this client's one subscription to it

The topic of a message is its attributes `topic`, `topic_1`, ..., as MQTT clients have it
(model/topics.py), so native clients and those of MQTT 5 ask and answer each other.

The subscription is live, and begins with the first request. Replies that come too late are dropped.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from itertools import count

from palio.errors import ClientClosed, NetworkError, NoReply
from palio.model.topics import reply_topic
from palio.net.client.publishing import Attributes, ClientPublishing
from palio.net.client.subscription import Note, Subscription
from palio.net.client.times import Duration, microseconds_of, with_expiry
from palio.protocol.wire.message_headers import CORRELATION, REPLY_TO, Headers

_CORRELATION_BYTES = 8


class Requesting:
    """`subscribe` makes a live subscription; `identity` says who the client is to the broker."""

    def __init__(
        self,
        publishing: ClientPublishing,
        subscribe: Callable[[str], Subscription],
        identity: Callable[[], str],
    ) -> None:
        self._publishing = publishing
        self._subscribe = subscribe
        self._identity = identity
        self._numbers = count(1)
        self._waiting: dict[bytes, asyncio.Future[Note]] = {}
        self._topic = ""
        self._receiving: asyncio.Task[None] | None = None
        self._begin = asyncio.Lock()

    async def request(
        self,
        attributes: Attributes,
        body: bytes,
        timeout: Duration,
        headers: Headers | None,
        durable: bool,
    ) -> Note:
        """Ask, and wait for the first reply; see `Requester.request`."""
        seconds = microseconds_of("timeout", timeout) / 1e6
        try:
            async with asyncio.timeout(seconds):
                await self._listen()
                return await self._ask(attributes, body, with_expiry(headers, timeout), durable)
        except TimeoutError:
            raise NoReply(seconds) from None

    async def _ask(
        self, attributes: Attributes, body: bytes, headers: Headers, durable: bool
    ) -> Note:
        key = next(self._numbers).to_bytes(_CORRELATION_BYTES, "big")
        reply: asyncio.Future[Note] = asyncio.get_running_loop().create_future()
        self._waiting[key] = reply
        try:
            named = {**headers, REPLY_TO: self._topic, CORRELATION: key}
            await self._publishing.publish(attributes, body, durable, named)
            return await reply
        finally:
            del self._waiting[key]

    async def _listen(self) -> None:
        """Subscribe to the replies, once."""
        async with self._begin:
            if self._receiving is not None and not self._receiving.done():
                return
            self._topic = reply_topic(self._identity(), secrets.token_hex(8))
            quoted = self._topic.replace("'", "''")
            subscription = self._subscribe(f"topic = '{quoted}'")
            await subscription.ready()
            self._receiving = asyncio.create_task(self._receive(subscription))

    async def _receive(self, subscription: Subscription) -> None:
        try:
            async for note in subscription:
                waiting = self._waiting.get(note.headers.get(CORRELATION))  # type: ignore[arg-type]
                if waiting is not None and not waiting.done():
                    waiting.set_result(note)
        except NetworkError as error:
            self._fail(error)

    def end(self) -> None:
        """The client is closed."""
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None
        self._fail(ClientClosed("the client was closed before a reply came"))

    def _fail(self, failure: NetworkError) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(failure)


class Requester:
    """A client that asks."""

    _requesting: Requesting

    async def request(
        self,
        attributes: Attributes,
        body: bytes = b"",
        *,
        timeout: Duration = 10.0,
        headers: Headers | None = None,
        durable: bool = True,
    ) -> Note:
        """Publish a message and wait for the first reply to it: whoever receives the message answers with
        `note.reply`. Raises NoReply after `timeout` (seconds, or a timedelta); then the message is not
        delivered any more, but it may have been. Other replies are dropped."""
        return await self._requesting.request(attributes, body, timeout, headers, durable)
