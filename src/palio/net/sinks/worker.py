"""Delivers the events of one subscription to its sink, one after the other.

    handshake --> next message --> event --> attempts --> acknowledged, or a dead letter --> next message

The order is that of the subscription: the next event is sent when the one before is delivered or has become a dead letter.
What is not acknowledged comes again from the durable subscription, so nothing is lost when a broker ends.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from palio.errors import InvalidValue
from palio.net.monitoring.logs import log_bug
from palio.net.sinks.sender import SinkSender
from palio.protocol.cloudevents import http_binding
from palio.protocol.cloudevents.delivery import (
    REQUEST_ORIGIN,
    Answer,
    DeadLetter,
    DeliveredToSink,
    DeliveryPolicy,
    Permission,
    Retired,
    Retry,
    decide,
)
from palio.protocol.cloudevents.messages import Defaults, event_of
from palio.protocol.cloudevents.subscriptions import EventSubscription


class PendingMessage(Protocol):
    """A message of a durable subscription. `id` is the broker's name of it."""

    @property
    def id(self) -> str: ...
    @property
    def attributes(self) -> Mapping[str, Any]: ...
    @property
    def headers(self) -> Mapping[str, Any]: ...
    @property
    def body(self) -> bytes: ...

    async def ack(self) -> None: ...

    async def dead_letter(self, reason: str) -> None: ...


class MessageSource(Protocol):
    """A durable subscription; None at its end."""

    async def next(self) -> PendingMessage | None: ...


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """`origin` is the DNS name that sinks are asked to allow; `source` is that of messages that were no events.

    Without `handshake` sinks are not asked, which is for sinks that the operator knows.
    """

    origin: str
    source: str = "/palio"
    handshake: bool = True
    per_minute: int | None = None


@dataclass(slots=True)
class WorkerCounts:
    """For metrics."""

    delivered: int = 0
    retried: int = 0
    dead_letters: int = 0
    handshakes_refused: int = 0


class SinkWorker:
    """`run` ends when the source does, or with the reason why the sink gets nothing more."""

    def __init__(
        self,
        subscription: EventSubscription,
        source: MessageSource,
        sender: SinkSender,
        settings: WorkerSettings,
        policy: DeliveryPolicy | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
        counts: WorkerCounts | None = None,
    ) -> None:
        """`counts`: shared with other workers."""
        self._subscription = subscription
        self._source = source
        self._sender = sender
        self._settings = settings
        self._policy = policy or DeliveryPolicy()
        self._sleep = sleep
        self._draw = draw
        self.counts = counts or WorkerCounts()
        self.is_retired = False
        """The sink has said that it is gone for good."""

    async def run(self) -> str | None:
        permission = await self._permission()
        if permission is None:
            return "the sink does not allow deliveries"
        while (message := await self._source.next()) is not None:
            decision = await self._deliver(message)
            if isinstance(decision, Retired):
                self.is_retired = True
                return decision.reason
            if permission.interval_s:
                await self._sleep(permission.interval_s)
        return None

    async def _permission(self) -> Permission | None:
        """Asked for as often as an event is sent, with the same delays."""
        settings = self._settings
        if not settings.handshake:
            return Permission(settings.per_minute)
        attempt = 1
        while True:
            found = await self._sender.ask(
                self._subscription.sink, settings.origin, settings.per_minute
            )
            if found is not None:
                return found
            self.counts.handshakes_refused += 1
            decision = decide(self._policy, attempt, Answer(error="no permission"), self._draw())
            if not isinstance(decision, Retry):
                return None
            await self._sleep(decision.after_s)
            attempt += 1

    async def _deliver(self, message: PendingMessage) -> DeliveredToSink | DeadLetter | Retired:
        request = self._request(message)
        attempt = 1
        while True:
            if isinstance(request, DeadLetter):
                decision: DeliveredToSink | Retry | DeadLetter | Retired = request
            else:
                answer = await self._sender.send(
                    self._subscription.sink, self._subscription.method, *request
                )
                decision = decide(self._policy, attempt, answer, self._draw())
            if isinstance(decision, DeliveredToSink):
                await message.ack()
                self.counts.delivered += 1
                return decision
            if isinstance(decision, DeadLetter):
                await message.dead_letter(decision.reason)
                self.counts.dead_letters += 1
                return decision
            if isinstance(decision, Retired):
                return decision
            self.counts.retried += 1
            await self._sleep(decision.after_s)
            attempt += 1

    def _request(self, message: PendingMessage) -> tuple[list[tuple[str, str]], bytes] | DeadLetter:
        """Headers and body. A message that cannot be an event is a dead letter and holds nobody up."""
        subscription = self._subscription
        defaults = Defaults(message.id, self._settings.source)
        try:
            event = event_of(message.attributes, message.headers, message.body, defaults)
        except InvalidValue as error:
            return DeadLetter(f"it cannot be a CloudEvent: {error.reason}")
        except Exception as error:
            log_bug("an event for a sink met a bug", error)
            return DeadLetter("it cannot be a CloudEvent: the broker met a bug, and has logged it")
        write = (
            http_binding.write_binary
            if subscription.mode == "binary"
            else http_binding.write_structured
        )
        headers, body = write(event)
        own = [*headers, *subscription.headers]
        if self._settings.handshake:
            own.append((REQUEST_ORIGIN, self._settings.origin))
        return own, body
