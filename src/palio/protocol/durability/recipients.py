"""Recipients: where the messages go that match the same subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from palio.protocol.durability.destination import Destination
from palio.protocol.durability.queues import Full, Queue
from palio.protocol.durability.sequence import Labels

LABELS_BYTES_MAX = 16 << 10
"""Of one entry of a stream: they travel in a header. More are several entries of the stream."""
TEXT_BYTES = 5
"""Of a text in a header, at most, besides its characters."""


class Recipients:
    """The destinations of messages that match the same subscriptions."""

    __slots__ = ("destinations", "is_split", "limited")

    def __init__(self, destinations: dict[Destination, Labels], queues: Iterable[Queue]) -> None:
        self.destinations: list[tuple[Destination, Labels]] = []
        """One for each entry: a stream comes several times if its labels are too many for one."""
        for destination, labels in destinations.items():
            self.destinations += [(destination, part) for part in _split(labels)]
        self.is_split = len(self.destinations) > len(destinations)
        self.limited: list[Queue] = []
        """Queues that drop messages or end when they are full."""
        for queue in queues:
            if queue.full is not Full.BLOCK:
                self.limited.append(queue)

    def full(self) -> list[Destination]:
        """The destinations that are full."""
        return [destination for destination, _ in self.destinations if destination.is_full]


def _split(labels: Labels) -> Iterator[Labels]:
    """Labels as one entry holds them, in their order; once if there are none."""
    part: list[str] = []
    size = 0
    for label in labels:
        more = TEXT_BYTES + len(label.encode())
        if part and size + more > LABELS_BYTES_MAX:
            yield tuple(part)
            part, size = [], 0
        part.append(label)
        size += more
    yield tuple(part)
