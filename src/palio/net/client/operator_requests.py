"""What operators ask of a broker: explanations, the network, its queues and subscriptions. All of it needs the
grant `admin`; without it, RefusedByBroker is raised with the code `denied`.

A queue has the name IDENTITY/NAME: the identity that owns the durable subscription, and its name there; with
a group, IDENTITY/NAME:GROUP. An unknown name raises RefusedByBroker with the code `unknown`. An act is
committed when its call returns. If the connection is lost before the answer comes, the request is repeated on
the next one: a queue may then be unknown because the first request has ended or moved it.
"""

from __future__ import annotations

from palio.net.client.attributes import to_bytes
from palio.net.client.connection import Connection
from palio.net.client.publishing import Attributes
from palio.protocol.client.requests import QueueAsked
from palio.protocol.wire.control import ControlMessage, Explained, Place, Shown
from palio.protocol.wire.queue_control import (
    EndQueue,
    ListQueues,
    ListSubscriptions,
    MoveQueue,
    PauseQueue,
    Purged,
    PurgeQueue,
    QueueRow,
    QueuesListed,
    SubscriptionRow,
    SubscriptionsListed,
)


class OperatorRequests:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def explain(self, message: Attributes, subscription: str = "") -> Explained:
        """Where the message would go if it were published here, hop by hop, and why.

        With `subscription`: why it would, or would not, reach that one.
        """
        self._connection.status.check()
        text = to_bytes(message).decode()
        id = self._connection.session.requests.explain(text, subscription)
        answer = await self._connection.answers.wait_for(id)
        assert isinstance(answer, Explained)
        return answer

    async def topology(self, *, memory: bool = False) -> tuple[Place, ...]:
        """The network as the broker sees it. With `memory`, also what each broker holds to route
        messages: of this one now, of the others when they sent their last link state."""
        self._connection.status.check()
        id = self._connection.session.requests.show(memory=memory)
        answer = await self._connection.answers.wait_for(id)
        assert isinstance(answer, Shown)
        return answer.places

    async def forget(self, broker: str) -> None:
        """Declare that a broker that is away will never come back.

        Its subscriptions end, and the messages that wait for it are deleted.
        """
        self._connection.status.check()
        id = self._connection.session.requests.forget(broker)
        await self._connection.answers.wait_for(id)

    # ---- queues and subscriptions

    async def queues(self) -> list[QueueRow]:
        """The durable subscriptions whose home is this broker, and their queues, by name."""
        rows: list[QueueRow] = []
        after = 0
        while True:
            page = await self._ask(ListQueues, after)
            assert isinstance(page, QueuesListed)
            rows += page.rows
            after = page.next
            if not after:
                return sorted(rows, key=lambda row: row.name)

    async def queue(self, name: str) -> QueueRow:
        """One of them, by its name."""
        page = await self._ask(ListQueues, 0, name)
        assert isinstance(page, QueuesListed)
        return page.rows[0]

    async def subscriptions(self) -> list[SubscriptionRow]:
        """The subscriptions of the clients that are connected to this broker, by identity and client."""
        rows: list[SubscriptionRow] = []
        after = 0
        while True:
            page = await self._ask(ListSubscriptions, after)
            assert isinstance(page, SubscriptionsListed)
            rows += page.rows
            after = page.next
            if not after:
                return sorted(rows, key=lambda row: (row.identity, row.client, row.id))

    async def pause_queue(self, name: str) -> None:
        """Stop the delivery of a queue, until `resume_queue`. It goes on filling."""
        await self._ask(PauseQueue, name, True)

    async def resume_queue(self, name: str) -> None:
        """Go on with the delivery of a queue."""
        await self._ask(PauseQueue, name, False)

    async def purge_queue(self, name: str) -> int:
        """Delete the messages that are in a queue now. Returns how many."""
        return await self._purged(PurgeQueue, name)

    async def end_queue(self, name: str) -> int:
        """End a durable subscription for good. Returns how many messages were deleted."""
        return await self._purged(EndQueue, name)

    async def move_queue(self, name: str, to: str) -> None:
        """Give a durable subscription, with its queue, to another identity, under the same NAME."""
        await self._ask(MoveQueue, name, to)

    async def _purged(self, kind: type[PurgeQueue | EndQueue], name: str) -> int:
        answer = await self._ask(kind, name)
        assert isinstance(answer, Purged)
        return answer.messages

    async def _ask(self, kind: type[QueueAsked], *fields: str | int | bool) -> ControlMessage:
        self._connection.status.check()
        id = self._connection.session.requests.ask(kind, *fields)
        return await self._connection.answers.wait_for(id)
