"""Durable messages that wait because the message store has no room for them."""

from __future__ import annotations

from collections.abc import Iterator

from palio.protocol.wire.batch import MessageBatch


class HeldMessages:
    """Durable messages that wait for room in the store, by publisher."""

    def __init__(self, held_max: int) -> None:
        self.held_max = held_max
        """The most messages of one publisher."""
        self.batches: dict[str, list[MessageBatch]] = {}
        self.refused: set[str] = set()
        """Publishers over `held_max`. Discard their later messages too: storing n+1 would mark n
        as stored."""

    def add(self, publisher: str, batch: MessageBatch) -> bool:
        """Hold a batch. False: more than `held_max` messages are held now."""
        held = self.batches.setdefault(publisher, [])
        held.append(batch)
        return sum(map(len, held)) <= self.held_max

    def refuse(self, publisher: str) -> None:
        """Discard the held messages of a publisher, and all that it sends until the next flush."""
        self.refused.add(publisher)
        self.forget(publisher)

    def forget(self, publisher: str) -> None:
        """Discard the held messages of a client that left; it resends what was not stored."""
        self.batches.pop(publisher, None)

    def take(self) -> Iterator[tuple[str, MessageBatch]]:
        batches, self.batches = self.batches, {}
        for publisher, held in batches.items():
            yield publisher, MessageBatch.concat(held)
