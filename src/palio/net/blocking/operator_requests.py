"""What operators ask of a broker, for threads: the methods of `OperatorRequests`, without `async`."""

from __future__ import annotations

from palio.net.blocking.loop_thread import LoopThread
from palio.net.client.client import Client
from palio.net.client.publishing import Attributes
from palio.protocol.wire.control import Explained, Place
from palio.protocol.wire.queue_control import QueueRow, SubscriptionRow


class BlockingOperatorRequests:
    def __init__(self, client: Client, loop: LoopThread) -> None:
        self._client = client
        self._loop = loop

    def explain(self, message: Attributes, subscription: str = "") -> Explained:
        """Where the message would go if it were published here, hop by hop, and why."""
        return self._loop.call(self._client.explain(message, subscription))

    def topology(self, *, memory: bool = False) -> tuple[Place, ...]:
        """The network as the broker sees it; with `memory`, also what each holds to route messages."""
        return self._loop.call(self._client.topology(memory=memory))

    def forget(self, broker: str) -> None:
        """Declare that a broker that is away will never come back. For operators."""
        self._loop.call(self._client.forget(broker))

    def queues(self) -> list[QueueRow]:
        """The durable subscriptions whose home is this broker, and their queues, by name."""
        return self._loop.call(self._client.queues())

    def queue(self, name: str) -> QueueRow:
        """One of them, by its name, IDENTITY/NAME; with a group, IDENTITY/NAME:GROUP."""
        return self._loop.call(self._client.queue(name))

    def subscriptions(self) -> list[SubscriptionRow]:
        """The subscriptions of the clients that are connected to this broker."""
        return self._loop.call(self._client.subscriptions())

    def pause_queue(self, name: str) -> None:
        """Stop the delivery of a queue, until `resume_queue`. It goes on filling."""
        self._loop.call(self._client.pause_queue(name))

    def resume_queue(self, name: str) -> None:
        """Go on with the delivery of a queue."""
        self._loop.call(self._client.resume_queue(name))

    def purge_queue(self, name: str) -> int:
        """Delete the messages that are in a queue now. Returns how many."""
        return self._loop.call(self._client.purge_queue(name))

    def end_queue(self, name: str) -> int:
        """End a durable subscription for good. Returns how many messages were deleted."""
        return self._loop.call(self._client.end_queue(name))

    def move_queue(self, name: str, to: str) -> None:
        """Give a durable subscription, with its queue, to another identity, under the same NAME."""
        self._loop.call(self._client.move_queue(name, to))
