"""The consumers of a queue, in the order in which they get its entries."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable


class QueueConsumer:
    __slots__ = ("credit", "in_flight", "key")

    def __init__(self, key: Hashable, credit: int) -> None:
        self.key = key
        self.credit = credit
        self.in_flight: dict[int, None] = {}
        """Numbers of the entries that it has and did not acknowledge."""


class QueueConsumers:
    """The consumers of a queue. `turn` has those with credit, the next one first. While they are
    paused, they get nothing."""

    __slots__ = ("_by_key", "is_paused", "turn")

    def __init__(self) -> None:
        self._by_key: dict[Hashable, QueueConsumer] = {}
        self.turn: deque[QueueConsumer] = deque()
        self.is_paused = False

    def keys(self) -> list[Hashable]:
        return list(self._by_key)

    def credit(self, key: Hashable) -> int:
        """Of a consumer; 0: it is none."""
        consumer = self._by_key.get(key)
        return 0 if consumer is None else consumer.credit

    @property
    def turn_credit(self) -> int:
        """Of all that have any."""
        return sum([consumer.credit for consumer in self.turn])

    def add(self, key: Hashable, credit: int) -> None:
        self._by_key[key] = QueueConsumer(key, 0)
        self.grant_credit(key, credit)

    def remove(self, key: Hashable) -> QueueConsumer | None:
        consumer = self._by_key.pop(key, None)
        if consumer is not None and consumer.credit > 0:
            self.turn.remove(consumer)
        return consumer

    def grant_credit(self, key: Hashable, credit: int) -> None:
        """Change the credit of a consumer, also by a negative count."""
        consumer = self._by_key[key]
        before, after = consumer.credit, consumer.credit + credit
        consumer.credit = after
        if before <= 0 < after:
            self.turn.append(consumer)
        elif after <= 0 < before:
            self.turn.remove(consumer)
