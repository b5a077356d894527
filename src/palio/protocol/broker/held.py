"""Durable messages that wait because the message store has no room for them, bounded."""

from __future__ import annotations

from collections.abc import Iterator

from palio.protocol.broker.settings import WaitingBounds
from palio.protocol.wire.batch import MessageBatch


class _Publisher:
    """What is held of one publisher."""

    __slots__ = ("batches", "bytes", "count")

    def __init__(self) -> None:
        self.batches: list[MessageBatch] = []
        self.count = 0
        self.bytes = 0


class HeldMessages:
    """Durable messages that wait for room in the store, by publisher. `messages_max`: the most of one
    publisher."""

    def __init__(self, messages_max: int, bounds: WaitingBounds) -> None:
        self.bytes = 0
        """Of all publishers."""
        self._messages_max, self._bounds = messages_max, bounds
        self.publishers: dict[str, _Publisher] = {}
        self.refused: set[str] = set()
        """Publishers with too many messages. Discard their later messages too: storing n+1 would mark
        n as stored."""

    def __len__(self) -> int:
        """The number of publishers."""
        return len(self.publishers)

    def add(self, publisher: str, batch: MessageBatch) -> list[str]:
        """Hold a batch. Returns the publishers of which too much is held now."""
        held = self.publishers.setdefault(publisher, _Publisher())
        batch = batch.compact()
        size = sum(batch.sizes())
        held.batches.append(batch)
        held.count += batch.count
        held.bytes += size
        self.bytes += size
        bounds = self._bounds
        if held.count > self._messages_max or held.bytes > bounds.held_bytes:
            return [publisher]
        return self._heaviest(self.bytes - bounds.held_total_bytes)

    def _heaviest(self, size: int) -> list[str]:
        """The publishers of which most is held, of the identities that hold most, until these bytes are
        found."""
        if size <= 0:
            return []
        totals: dict[str, int] = {}
        for name, held in self.publishers.items():
            identity = name.partition("/")[0]
            totals[identity] = totals.get(identity, 0) + held.bytes
        order = sorted(
            self.publishers,
            key=lambda x: (-totals[x.partition("/")[0]], -self.publishers[x].bytes),
        )
        found = []
        for name in order:
            if size > 0:
                found.append(name)
                size -= self.publishers[name].bytes
        return found

    def refuse(self, publisher: str) -> None:
        """Discard the held messages of a publisher, and all that it sends until the next flush."""
        self.refused.add(publisher)
        self.forget(publisher)

    def forget(self, publisher: str) -> None:
        """Discard the held messages of a client that left; it resends what was not stored."""
        held = self.publishers.pop(publisher, None)
        if held is not None:
            self.bytes -= held.bytes

    def take(self) -> Iterator[tuple[str, MessageBatch]]:
        publishers, self.publishers = self.publishers, {}
        self.bytes = 0
        for publisher, held in publishers.items():
            yield publisher, MessageBatch.concat(held.batches)
