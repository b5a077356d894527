"""The consumers of a queue, and what each of them gets of it (queues.py)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

import msgspec


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
        self.turn: OrderedDict[QueueConsumer, None] = OrderedDict()
        self.is_paused = False

    def keys(self) -> list[Hashable]:
        return list(self._by_key)

    def credit(self, key: Hashable) -> int:
        """Of a consumer; 0: it is none."""
        consumer = self._by_key.get(key)
        return 0 if consumer is None else consumer.credit

    def add(self, key: Hashable, credit: int) -> None:
        self._by_key[key] = QueueConsumer(key, 0)
        self.grant_credit(key, credit)

    def remove(self, key: Hashable) -> QueueConsumer | None:
        consumer = self._by_key.pop(key, None)
        if consumer is not None and consumer.credit > 0:
            del self.turn[consumer]
        return consumer

    def grant_credit(self, key: Hashable, credit: int) -> None:
        """Change the credit of a consumer, also by a negative count."""
        consumer = self._by_key[key]
        before, after = consumer.credit, consumer.credit + credit
        consumer.credit = after
        if before <= 0 < after:
            self.turn[consumer] = None
        elif after <= 0 < before:
            del self.turn[consumer]


class QueueBatch(msgspec.Struct, frozen=True, gc=False):
    """Entries that are next."""

    numbers: list[int]
    positions: list[int]
    """Of the journal."""
    deliveries: list[int] = []
    """Of each, this one included, if they have or may have been sent before; else none."""
    returned: bool = False
    """They come back from consumers."""


class QueueShare(msgspec.Struct, frozen=True, gc=False):
    """Entries for one consumer."""

    consumer: Hashable
    numbers: list[int]
    positions: list[int]
    deliveries: list[int]
    """Of each; none: they are delivered for the first time."""

    @property
    def redelivered(self) -> bool:
        return bool(self.deliveries)
