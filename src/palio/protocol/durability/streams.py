"""Streams: durable messages from the broker where they were published to one where they are wanted.

    Outbound (at the origin, one for each destination)

      first          sent            safe         next
        │              │               │            │
        4  5  6  7  8  │ 9 10 11 12 13 │ 14 15 16   │
        └─ under way ──┘ └── may go ───┘ └ not yet committed

    Inbound (at the destination, one for each origin and epoch of it)

      expected = 7     early { 9, 10, 12 }: at most a window, and not more bytes than one

Numbers are dense. A destination takes them strictly in order and says `Got` up to which it has
stored them. What is not answered in time goes again from the first, a few at a time and more with
each answer, after pauses that double; at once when the destination can be reached again. A stream
whose subscriptions are all gone gives up its entries: `first` tells the destination that nothing
comes from before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.kept import Message
from palio.protocol.durability.ledger import Line, Sent
from palio.protocol.frames import Carry, Target

_PROBE = 16
"""How many go again after silence, until there is an answer."""


class Outbound:
    """`subscriptions` counts who is known at the destination; the deposit does."""

    def __init__(self, broker: str, line: Line[Sent], journal: Journal, bounds: Bounds) -> None:
        self.broker = broker
        self.line = line
        self.subscriptions = 0
        self.deadline_us: int | None = None
        self._journal = journal
        self._bounds = bounds
        line.lowest()
        self._sent = line.first
        self._safe = line.next
        self._bytes = 0  # under way
        self._window = _PROBE
        self._is_reachable = False
        self._retry_us = bounds.retry_us_min
        for position, _ in line.entries.values():
            journal.retain(position)

    @property
    def is_full(self) -> bool:
        return len(self.line.entries) >= self._bounds.backlog

    @property
    def has_room(self) -> bool:
        """Enough for those who wait to begin again."""
        return len(self.line.entries) < self._bounds.backlog * 7 / 8

    def fits(self, count: int, size: int) -> bool:
        """There is room for so many messages; their bytes are in the journal anyway."""
        return len(self.line.entries) + count <= self._bounds.backlog

    def push(self, entries: Sequence[Sent]) -> None:
        """Take messages; their references are counted already."""
        self.line.extend(entries)

    def commit(self, next: int) -> None:
        """Entries before this number are safe."""
        self._safe = next

    def reach(self, is_reachable: bool) -> None:
        """The destination can be reached, perhaps in another way than before; or it cannot."""
        self._is_reachable = is_reachable
        self._retry_us = self._bounds.retry_us_min
        self._go_back()

    def wake(self, now_us: int) -> bool:
        """The deadline is here: send again. Earlier, nothing happens."""
        if self.deadline_us is None or now_us < self.deadline_us:
            return False
        self._retry_us = min(2 * self._retry_us, self._bounds.retry_us_max)
        self._go_back()
        return True

    def _go_back(self) -> None:
        self._sent = self.line.first
        self._bytes = 0
        self._window = min(_PROBE, self._bounds.window)
        self.deadline_us = None

    def got(self, number: int, now_us: int) -> bool:
        """The destination has everything up to this number; False: nothing new."""
        line, journal = self.line, self._journal
        if not line.first <= number < self._safe:
            return False
        after, sent = number + 1, min(number + 1, self._sent)
        self._bytes -= journal.release([line.entries.pop(n)[0] for n in range(line.first, sent)])
        journal.release([line.entries.pop(n)[0] for n in range(sent, after)])
        line.first = after
        self._sent = max(self._sent, line.first)
        self._window = min(2 * self._window, self._bounds.window)
        self._retry_us = self._bounds.retry_us_min
        self.deadline_us = now_us + self._retry_us if self._sent > line.first else None
        return True

    def send(self, now_us: int) -> list[tuple[int, Target]]:
        """What may go now: positions and whither."""
        line = self.line
        end = min(self._safe, line.first + self._window)
        if not self._is_reachable or self._sent >= end:
            return []
        found = []
        entries, first, broker = line.entries, line.first, self.broker
        while self._sent < end and self._bytes < self._bounds.window_bytes:
            position, labels = entries[self._sent]
            found.append((position, Target(broker, self._sent, first, labels)))
            self._bytes += self._journal.size(position)
            self._sent += 1
        if self.deadline_us is None and found:
            self.deadline_us = now_us + self._retry_us
        return found

    def give_up(self) -> None:
        """Nobody at the destination wants what waits."""
        line = self.line
        self._journal.release([position for position, _ in line.entries.values()])
        line.entries.clear()
        line.lowest()
        self._go_back()


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A carried message and the part of it that is for this broker."""

    carry: Carry
    labels: tuple[str, ...]
    attributes: bytes
    body: bytes

    def message(self, stored_us: int) -> Message:
        """As it is kept here."""
        publisher, number, time = self.carry.publisher, self.carry.number, self.carry.time
        return Message(publisher, number, time, self.attributes, self.body, stored_us, False)


class Inbound:
    """`expected` is the number of the next message, `stored` what is committed of it."""

    def __init__(
        self, origin: str, epoch: str, bounds: Bounds, stored: int = 0, heard_us: int = 0
    ) -> None:
        self.origin = origin
        self.epoch = epoch
        self.expected = stored + 1
        self.stored = stored
        self.heard_us = heard_us
        self._bounds = bounds
        self._early: dict[int, Arrival] = {}
        self._bytes = 0

    def offer(self, target: Target, arrival: Arrival, now_us: int) -> bool:
        """Keep a message until it is its turn; False: it is here already, so say so again."""
        self.heard_us = now_us
        if target.first > self.expected:
            for number in [n for n in self._early if n < target.first]:
                self._drop(number)
            self.expected = target.first
        if target.number < self.expected:
            return False
        size = len(arrival.attributes) + len(arrival.body)
        is_next = target.number == self.expected
        has_room = self._bytes + size <= self._bounds.window_bytes
        if (
            target.number < self.expected + self._bounds.window
            and target.number not in self._early
            and (is_next or has_room)
        ):
            self._early[target.number] = arrival
            self._bytes += size
        return True

    @property
    def turn(self) -> Arrival | None:
        """The next message in order, if it is here."""
        return self._early.get(self.expected)

    def accept(self) -> None:
        """The one whose turn it is has been taken."""
        self._drop(self.expected)
        self.expected += 1

    def _drop(self, number: int) -> None:
        arrival = self._early.pop(number)
        self._bytes -= len(arrival.attributes) + len(arrival.body)
