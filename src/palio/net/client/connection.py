"""A connection: a session, the socket below it, and those who wait for the broker.

    Client, ClientPublishing, Subscription
          │ commands                         ▲ answers, notes, acknowledgements
          ▼                                  │
       Session ──▶ Writer ──▶ BrokerLink ──▶ EventDispatcher
                   one write    one socket     inboxes, pending answers, acknowledgements
                   a turn       at a time
    reconnecting: dials again when the link is lost

This module puts the parts together, and opens and closes them. A connection fails for good only
when the broker refuses the client for `max_wait` seconds.
"""

from __future__ import annotations

import asyncio
from typing import Any

from palio.errors import ClientClosed, NetworkError, Unreachable
from palio.net.client.acknowledgements import Acknowledgements
from palio.net.client.address import Address
from palio.net.client.broker_socket import Dial
from palio.net.client.dispatcher import EventDispatcher
from palio.net.client.feeds import Feeds
from palio.net.client.inbox import Inbox, InboxClosed
from palio.net.client.link import BrokerLink
from palio.net.client.pending_answers import PendingAnswers
from palio.net.client.reconnecting import dial_first, keep_connected
from palio.net.client.status import ClientStatus
from palio.net.client.writer import Writer
from palio.protocol.client.session import Session

EXPIRY_S = 0.5
"""How often waits for acknowledgements are checked, so that a publish needs no timer of its own."""


class Connection:
    def __init__(
        self,
        addresses: tuple[Address, ...],
        session: Session,
        dial: Dial,
        max_wait: float,
    ) -> None:
        self.session = session
        self.status = ClientStatus(addresses, max_wait, lambda: session.is_ready)
        self.writer = Writer(session.take)
        self.answers = PendingAnswers(self.status, self.writer, session.requests.withdraw)
        self.acknowledgements = Acknowledgements(max_wait)
        self._inboxes: dict[int, Inbox[Any]] = {}
        self.feeds = Feeds(
            session.subscriptions, self._inboxes, self.answers, self.writer, self.status
        )
        dispatcher = EventDispatcher(
            self._inboxes, self.answers, self.acknowledgements, self.status
        )
        self._link = BrokerLink(session, dial, self.writer, dispatcher, self.status)
        self._keeper: asyncio.Task[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None

    async def open(self, wait: float) -> None:
        """Connect, for at most `wait` seconds while no broker answers."""
        self._link.start()
        await dial_first(self._link, self.status, wait)
        self.status.start()
        self._keeper = asyncio.create_task(keep_connected(self._link, self.status, self._fail))
        self._expire()

    async def close(self, wait: float | None) -> None:
        """Wait for at most `wait` seconds until all durable messages are stored; then leave."""
        unstored = 0
        try:
            if self.status.failure is None:
                unstored = await self._wait_until_stored(wait)
        finally:
            trouble = self.status.describe()
            self._fail(ClientClosed(f"this client of {self.status.address} is closed"))
        await self._link.leave("the client is closed")
        if unstored:
            raise Unreachable(
                f"{unstored} durable messages were not acknowledged by {self.status.address} "
                f"before the client was closed; {trouble}"
            )

    async def _wait_until_stored(self, wait: float | None) -> int:
        """Returns how many durable messages are still not stored after the wait."""
        outbox = self.session.outbox
        try:
            async with asyncio.timeout(wait):
                while outbox.unstored:
                    await self.status.wait_for_change()
        except TimeoutError:
            pass
        except NetworkError:
            pass  # the client failed meanwhile, and its publishers have been told why
        return outbox.unstored

    def _fail(self, failure: NetworkError) -> None:
        """Nothing more will happen: stop everything, and tell everybody who waits."""
        self._link.stop()
        if self._expiry is not None:
            self._expiry.cancel()
        if self._keeper is not None and self._keeper is not asyncio.current_task():
            self._keeper.cancel()
        is_closed = isinstance(failure, ClientClosed)
        for inbox in self._inboxes.values():
            inbox.end(InboxClosed() if is_closed else failure)
        self.answers.fail(failure)
        self.acknowledgements.fail(failure)
        self.status.fail(failure)

    def _expire(self) -> None:
        """End the waits for acknowledgements that took too long."""
        loop = asyncio.get_running_loop()
        self.acknowledgements.expire(loop.time(), self.status.describe())
        self._expiry = loop.call_later(min(EXPIRY_S, self.status.max_wait / 2), self._expire)
