"""Which queue each consumer takes part in."""

from __future__ import annotations

from collections.abc import Hashable

from palio.protocol.durability.queues import Queue


class Consumers:
    """All consumers of durable subscriptions here: `queues` has the queue of each."""

    def __init__(self) -> None:
        self.queues: dict[Hashable, Queue] = {}

    def attach(self, queue: Queue, consumer: Hashable, credit: int) -> None:
        """Add a consumer that has no other queue."""
        queue.attach(consumer, credit)
        self.queues[consumer] = queue

    def detach(self, consumer: Hashable) -> Queue | None:
        """Remove a consumer. Returns its queue."""
        queue = self.queues.pop(consumer, None)
        if queue is not None:
            queue.detach(consumer)
        return queue

    def release(self, queue: Queue) -> list[Hashable]:
        """Remove all consumers of a queue that ends, and return them."""
        consumers = queue.consumers.keys()
        for consumer in consumers:
            self.detach(consumer)
        return consumers
