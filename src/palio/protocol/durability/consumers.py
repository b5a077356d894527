"""Which queue each consumer takes part in, and when queues have something that was delayed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heappop, heappush

from palio.protocol.durability.queues import Queue


class Consumers:
    """All consumers of durable subscriptions here: `queues` has the queue of each."""

    def __init__(self) -> None:
        self.queues: dict[Hashable, Queue] = {}
        self._delays: list[
            tuple[int, int]
        ] = []  # a heap: when something is due, and of which queue
        self._delaying: dict[int, Queue] = {}
        self._made = 0

    def attach(self, queue: Queue, consumer: Hashable, credit: int) -> None:
        """Add a consumer that has no other queue."""
        queue.attach(consumer, credit)
        self.queues[consumer] = queue

    def detach(self, consumer: Hashable) -> tuple[Queue | None, int]:
        """Remove a consumer. Returns its queue, and how many messages it gives back."""
        queue = self.queues.pop(consumer, None)
        return queue, 0 if queue is None else queue.detach(consumer)

    def release(self, queue: Queue) -> list[Hashable]:
        """Remove all consumers of a queue that ends, and return them."""
        consumers = queue.consumers.keys()
        for consumer in consumers:
            self.detach(consumer)
        return consumers

    # ---- messages that are given back

    def nack(
        self, consumer: Hashable, numbers: Sequence[int], due_us: int, rejection: str | None = None
    ) -> Queue | None:
        """A consumer gives messages back, to be sent at this instant (0: now); or to nobody, if there is a
        `rejection`. Returns its queue."""
        queue = self.queues.get(consumer)
        if queue is None or not queue.nack(consumer, numbers, due_us, rejection):
            return None
        if due_us:
            self._made += 1
            self._delaying[self._made] = queue
            heappush(self._delays, (due_us, self._made))
        return queue

    @property
    def deadline_us(self) -> int | None:
        """When a queue has something that was delayed; None: none has."""
        return self._delays[0][0] if self._delays else None

    def due(self, now_us: int) -> list[Queue]:
        """The queues that have something now which was delayed."""
        found: dict[Queue, None] = {}
        while self._delays and self._delays[0][0] <= now_us:
            found[self._delaying.pop(heappop(self._delays)[1])] = None
        return list(found)
