"""Publishing for one client: waits for room, quenches, sends, and waits until messages are stored.

There is room while the outbox takes more durable messages, or, for best-effort ones, while there is
a connection; and only as long as the socket keeps up. Many messages are published in chunks, so
that the event loop can write and receive between them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, Iterable, Mapping
from itertools import islice
from typing import TypeAlias

from palio.errors import RefusedByBroker, Unreachable
from palio.model.message import Message, as_message
from palio.net.client.acknowledgements import Acknowledgements, PublishBatch
from palio.net.client.attributes import as_body, to_bytes
from palio.net.client.status import ClientStatus
from palio.net.client.writer import Writer
from palio.protocol.client.outbox import Outbox
from palio.protocol.client.publisher import SessionPublisher
from palio.protocol.client.quenching import QuenchFilter
from palio.protocol.wire.message_headers import EMPTY, NO_HEADERS, RETAIN, Headers, packed

CHUNK = 256
TURN_BYTES = 1 << 20
"""The most that is published in one turn of the loop."""
UNFLUSHED_MAX = 512
"""Messages that may gather before a publisher must let the loop write."""

Attributes: TypeAlias = Message | Mapping[str, object]
Outgoing: TypeAlias = Attributes | tuple[Attributes, bytes] | tuple[Attributes, bytes, Headers]
"""A message; or it and its body; or it, its body and its headers."""


class ClientPublishing:
    __slots__ = (
        "_acknowledgements",
        "_outbox",
        "_publisher",
        "_quenching",
        "_status",
        "_writer",
        "quenched",
    )

    def __init__(
        self,
        publisher: SessionPublisher,
        outbox: Outbox,
        quenching: QuenchFilter,
        writer: Writer,
        acknowledgements: Acknowledgements,
        status: ClientStatus,
    ) -> None:
        self._publisher = publisher
        self._outbox = outbox
        self._quenching = quenching
        self._writer = writer
        self._acknowledgements = acknowledgements
        self._status = status
        self.quenched = 0
        """Messages that were not sent because nobody wanted them."""

    async def publish(
        self, attributes: Attributes, body: bytes, durable: bool, headers: Headers | None
    ) -> int | None:
        """Publish one message; see `Client.publish`."""
        self._status.check()
        text = to_bytes(attributes)
        if type(body) is not bytes:
            body = as_body(body)
        block = self._packed(headers) if headers else NO_HEADERS
        is_quenching = self._quenching.wanted is not None and RETAIN not in (headers or ())
        if is_quenching and not self._is_wanted(attributes):
            return None
        if not self._has_room(durable):
            await self._wait_for_room(durable)
        number = self._publisher.publish(text, body, time.time_ns() // 1000, durable, block)
        self._writer.schedule()
        if durable and number > self._outbox.settled:
            await self._acknowledgements.wait(number)
        return number

    async def publish_many(
        self, messages: Iterable[Outgoing] | AsyncIterable[Outgoing], durable: bool
    ) -> int:
        """Publish many messages; see `Client.publish_many`."""
        self._status.check()
        batch = self._acknowledgements.begin()
        try:
            async for chunk in _chunks(messages):
                at = 0
                while at < len(chunk):
                    if not self._has_room(durable):
                        await self._wait_for_room(durable)
                    at = self._send(chunk, at, durable, batch)
            if durable and self._outbox.is_unstored(batch.last):
                await self._acknowledgements.wait(batch.last)
        finally:
            self._acknowledgements.finish(batch)
        if batch.rejected:
            raise RefusedByBroker(
                f"the broker rejects {batch.rejected} of {batch.sent} messages: {batch.reason}"
            )
        return batch.sent

    def _send(self, chunk: list[Outgoing], at: int, durable: bool, batch: PublishBatch) -> int:
        """Publish messages while there is room. Returns the index of the first that is left."""
        publish, outbox, now_us = self._publisher.publish, self._outbox, time.time_ns() // 1000
        is_quenching = self._quenching.wanted is not None
        first, last, size, start = 0, 0, 0, at
        try:
            while at < len(chunk) and size < TURN_BYTES and (outbox.has_room or not durable):
                message = chunk[at]
                block, headers = NO_HEADERS, EMPTY
                if not isinstance(message, tuple):
                    attributes, body = message, b""
                elif len(message) == 2:
                    attributes, body = message
                else:
                    attributes, body, headers = message
                    block = self._packed(headers)
                text = to_bytes(attributes)
                if type(body) is not bytes:
                    body = as_body(body)
                if not is_quenching or RETAIN in headers or self._is_wanted(attributes):
                    last = publish(text, body, now_us, durable, block)
                    first = first or last
                    size += len(text) + len(body) + len(block)
                at += 1
        finally:
            if last:
                batch.add(first, last)  # no other task ran meanwhile: the numbers are consecutive
            self._writer.schedule(at - start)
        return at

    def _packed(self, headers: Headers) -> bytes:
        return packed(headers, self._publisher.headers_max)

    def _is_wanted(self, attributes: Attributes) -> bool:
        is_wanted = self._quenching.wants(as_message(attributes))
        self.quenched += not is_wanted
        return is_wanted

    # ---- room

    def _has_room(self, durable: bool) -> bool:
        """May a message be published now?"""
        writer = self._writer
        if writer.is_paused or writer.unflushed > UNFLUSHED_MAX or self._status.failure is not None:
            return False
        return self._publisher.has_room(durable)

    async def _wait_for_room(self, durable: bool) -> None:
        status = self._status
        try:
            async with asyncio.timeout(status.wait_s):
                while not self._has_room(durable):
                    if self._writer.unflushed > UNFLUSHED_MAX:
                        await asyncio.sleep(0)  # the writer flushes in the next turn of the loop
                    else:
                        await status.wait_for_change()
        except TimeoutError:
            raise Unreachable(
                f"nothing could be sent to {status.address} for {status.max_wait:g} s; "
                f"{status.describe()}"
            ) from None


async def _chunks(
    messages: Iterable[Outgoing] | AsyncIterable[Outgoing],
) -> AsyncIterable[list[Outgoing]]:
    """Small pieces, so that the loop can write and receive between them."""
    if isinstance(messages, AsyncIterable):
        async for message in messages:
            yield [message]
        return
    rest = iter(messages)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
