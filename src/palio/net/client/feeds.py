"""Feeds: what the subscriptions of a client use to talk to the broker, and where messages arrive.

Each subscription has an id of the session and an inbox, from its beginning to its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from palio.errors import NetworkError
from palio.net.client.inbox import Inbox
from palio.net.client.pending_answers import PendingAnswers
from palio.net.client.status import ClientStatus
from palio.net.client.writer import Writer
from palio.protocol.client.subscriptions import SessionSubscriptions
from palio.protocol.wire.control import Subscribed


class Feeds:
    __slots__ = ("_answers", "_inboxes", "_status", "_subscriptions", "_writer")

    def __init__(
        self,
        subscriptions: SessionSubscriptions,
        inboxes: dict[int, Inbox[Any]],
        answers: PendingAnswers,
        writer: Writer,
        status: ClientStatus,
    ) -> None:
        self._subscriptions = subscriptions
        self._inboxes = inboxes
        self._answers = answers
        self._writer = writer
        self._status = status

    def open(self, **request: Any) -> tuple[int, Inbox[Any]]:
        """Subscribe. Returns the id of the subscription and its inbox."""
        id = self._subscriptions.subscribe(**request)
        inbox: Inbox[Any] = Inbox()
        self._inboxes[id] = inbox
        self._writer.schedule()
        return id, inbox

    async def wait_for_confirmation(self, inbox: Inbox[Any]) -> None:
        """Wait until the broker has accepted a subscription; raises if it refuses."""
        await self._status.in_time(inbox.wait_for_confirmation())

    def confirmation(self, id: int) -> Subscribed | None:
        return self._subscriptions.confirmation(id)

    def consumed(self, id: int, count: int) -> None:
        """The application has taken this many messages that need no acknowledgement."""
        self._subscriptions.consumed(id, count)
        self._writer.schedule()

    def acknowledge(self, id: int, position: int) -> bool:
        """The application has processed a message. False: the subscription has ended."""
        if self._status.failure is not None:
            raise self._status.failure
        if not self._subscriptions.acknowledge(id, position):
            return False
        self._writer.schedule()
        return True

    def nack(self, id: int, positions: Iterable[int], delay_us: int) -> bool:
        """The application gives messages back. False: their subscription has ended."""
        if self._status.failure is not None:
            raise self._status.failure
        if not self._subscriptions.nack_all(id, positions, delay_us):
            return False
        self._writer.schedule()
        return True

    def reject(self, id: int, positions: Iterable[int], reason: str) -> bool:
        """The application will never process these messages. False: their subscription has ended."""
        if self._status.failure is not None:
            raise self._status.failure
        if not self._subscriptions.reject_all(id, positions, reason):
            return False
        self._writer.schedule()
        return True

    def acknowledge_all(self, id: int, positions: Iterable[int]) -> None:
        """The application has processed many messages; those of an ended subscription are ignored."""
        for position in positions:
            self._subscriptions.acknowledge(id, position)
        self._writer.schedule()

    def is_open(self, id: int) -> bool:
        """Can messages be acknowledged? Raises the failure of the client, if there is one."""
        if self._status.failure is not None:
            raise self._status.failure
        return self._subscriptions.is_subscribed(id)

    def unacknowledged(self, id: int) -> int:
        return self._subscriptions.unacknowledged(id)

    @property
    def failure(self) -> NetworkError | None:
        return self._status.failure

    def end(self, id: int, forget: bool = False) -> bool:
        """Unsubscribe. True: the broker will answer."""
        self._inboxes.pop(id, None)
        is_answered = self._subscriptions.unsubscribe(id, forget)
        self._writer.schedule()
        return is_answered

    async def wait_for_end(self, id: int) -> None:
        """Wait until the broker confirms the end of a subscription; raises if it refuses."""
        if self._status.failure is None:
            await self._answers.wait_for(id)

    def abandon(self, id: int) -> None:
        """End a subscription that nobody refers to any more. Any thread may call this."""

        def end() -> None:
            self.end(id)

        self._status.call_from_any_thread(end)
