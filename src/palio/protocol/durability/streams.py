"""Streams: durable messages from their origin to the home brokers of subscriptions.

    OutgoingStream (at the origin, one for each destination)

      first          sent            safe         next
        │              │               │            │
        4  5  6  7  8  │ 9 10 11 12 13 │ 14 15 16   │
        └─ in flight ──┘ └── may go ───┘ └ not yet committed

    IncomingStream (at the destination, one for each origin and epoch of it)

      expected = 7     early { 9, 10, 12 }: at most a window, and not more bytes than one
      store/i/<origin, epoch>   the last number that is stored here, when the origin was last heard

Numbers have no gaps. A destination stores messages strictly in order, and `CarryAck` says up to which
number, and how many more the destination takes: it may have another window than the origin, and drops
what is beyond. One message goes first, until the destination has said that. On timeout, resend from the
first unacknowledged entry with a small window and exponential backoff; when the topology changes, resend
at once. A stream drops its entries when its last subscription is removed: `first` tells the destination
that no earlier number follows.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.destination import Departures
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.sequence import EntrySequence, Labels, encode
from palio.protocol.durability.storage import Store, decoded
from palio.protocol.wire.batch import Entry
from palio.protocol.wire.control import CarryAck
from palio.protocol.wire.headers import CarryHeader, CarryTarget

_PROBE = 16
"""The window after a timeout, until an acknowledgement comes."""


class OutgoingStream:
    """`subscriptions` counts the known subscriptions at the destination (subscriptions.py). Entries
    before `safe` are committed."""

    def __init__(
        self, broker: str, sequence: EntrySequence, journal: Journal, bounds: Bounds
    ) -> None:
        self.broker = broker
        self.head_key = keys.stream(broker)
        self.sequence = sequence
        self.safe = sequence.next
        self.subscriptions = 0
        self.deadline_us: int | None = None
        self._journal = journal
        self._bounds = bounds
        self._sent = sequence.lowest()
        self._bytes = 0  # in flight
        self.window_told: tuple[int, int] | None = None
        """What the destination said last: messages and bytes."""
        self._window = 1
        self._window_max = 1, bounds.window_bytes  # messages and bytes
        self._is_reachable = False
        self._retry_us = bounds.retry_us_min
        for position in sequence.entries.values():
            journal.retain(position)

    @property
    def is_full(self) -> bool:
        return len(self.sequence.entries) >= self._bounds.backlog

    @property
    def has_room(self) -> bool:
        """Whether waiting publishers may continue: below full by a margin."""
        return len(self.sequence.entries) < self._bounds.backlog * 7 / 8

    def fits(self, count: int, size: int) -> bool:
        """Whether there is room for so many messages; their bytes count in the journal only."""
        return len(self.sequence.entries) + count <= self._bounds.backlog

    def push(self, positions: Sequence[int], labels: Sequence[Labels], size: int) -> None:
        """Add messages; the journal has counted their references already."""
        self.sequence.extend(positions, labels)

    def reach(self, is_reachable: bool) -> None:
        """The topology has changed: resend at once if the destination is reachable."""
        if is_reachable and not self._is_reachable:
            self._window_max = 1, self._bounds.window_bytes  # it may have started with another one
            self.window_told = None
        self._is_reachable = is_reachable
        self._retry_us = self._bounds.retry_us_min
        self._go_back()

    def wake(self, now_us: int) -> bool:
        """Prepare a resend if the deadline has passed. Returns whether it has."""
        if self.deadline_us is None or now_us < self.deadline_us:
            return False
        self._retry_us = min(2 * self._retry_us, self._bounds.retry_us_max)
        self._go_back()
        return True

    def _go_back(self) -> None:
        self._sent = self.sequence.first
        self._bytes = 0
        self._window = min(_PROBE, self._window_max[0])
        self.deadline_us = None

    def set_window(self, window: int, window_bytes: int) -> None:
        """The destination takes so many messages and bytes; 0: as many as this broker would."""
        bounds = self._bounds
        self.window_told = window, window_bytes
        window = min(window or bounds.window, bounds.window)
        window_bytes = min(window_bytes or bounds.window_bytes, bounds.window_bytes)
        self._window_max = window, window_bytes
        self._window = min(max(self._window, _PROBE), window)

    def acknowledge(self, number: int, now_us: int) -> bool:
        """The destination has stored everything up to this number. False: nothing new."""
        sequence = self.sequence
        if not sequence.first <= number < self.safe:
            return False
        after = number + 1
        if after <= self._sent:
            self._bytes -= self._release(sequence.first, after)
        else:  # the rest was sent before a restart or a resend
            self._bytes -= self._release(sequence.first, self._sent)
            self._release(self._sent, after)
            self._sent = after
        sequence.first = after
        self._window = min(2 * self._window, self._window_max[0])
        self._retry_us = self._bounds.retry_us_min
        self.deadline_us = now_us + self._retry_us if self._sent > after else None
        return True

    def _release(self, begin: int, end: int) -> int:
        """Remove these entries. Returns their size."""
        entries, labels = self.sequence.entries, self.sequence.labels
        numbers = range(begin, end)
        positions = list(map(entries.pop, numbers))
        for n in numbers:
            del labels[n]
        return self._journal.release(positions)

    @property
    def can_depart(self) -> bool:
        """Whether something can be sent."""
        return self._sent < self.safe and self._is_reachable

    def collect(self, departures: Departures, now_us: int) -> None:
        """Add what can be sent now."""
        sequence, number, bytes = self.sequence, self._sent, self._bytes
        first = sequence.first
        end = min(self.safe, first + self._window)
        if number >= end or not self._is_reachable:
            return
        entries, labels, broker = sequence.entries, sequence.labels, self.broker
        carries, size_of, bytes_max = departures.carries, self._journal.size, self._window_max[1]
        while number < end:
            position = entries[number]
            size = size_of(position)
            if bytes + size > bytes_max and number > first:  # the first always has room there
                break
            target = CarryTarget(broker, number, first, labels[number])
            carries.setdefault(position, []).append(target)
            bytes += size
            number += 1
        if self.deadline_us is None and number > self._sent:
            self.deadline_us = now_us + self._retry_us
        self._sent, self._bytes = number, bytes

    def clear(self) -> None:
        """Drop all entries: no subscription at the destination is left."""
        sequence = self.sequence
        self._journal.releases.add(list(sequence.entries.values()))
        sequence.entries.clear()
        sequence.labels.clear()
        sequence.lowest()
        self._go_back()

    def shrink(self) -> None:
        """Nothing is ever too much: a full stream accepts nothing."""

    def sealed(self) -> None:
        """What is lost had no subscription left, so nobody can get it late."""

    def committed(self) -> None:
        """See `sealed`."""


class CarriedArrival(msgspec.Struct, frozen=True, gc=False):
    """A carried message, with the subscriptions of this broker that it is for."""

    header: CarryHeader
    labels: Labels
    attributes: bytes
    payload: bytes
    size: int

    def entry(self) -> Entry:
        """As it is stored here."""
        header = self.header
        return Entry(header.publisher, header.number, header.time, self.attributes, self.payload)


class IncomingStream:
    """`expected` is the number of the next message, `stored` the last committed one. `early` has the
    messages that arrived and are not stored yet."""

    def __init__(
        self, origin: str, epoch: str, bounds: Bounds, stored: int = 0, heard_us: int = 0
    ) -> None:
        self.origin = origin
        self.epoch = epoch
        self.expected = stored + 1
        self.stored = stored
        self.heard_us = heard_us
        self._bounds = bounds
        self.early: dict[int, CarriedArrival] = {}
        self._bytes = 0

    def offer(self, target: CarryTarget, arrival: CarriedArrival, now_us: int) -> bool:
        """Keep a message until it is next. False: it is stored already; acknowledge it again."""
        self.heard_us = now_us
        if target.first > self.expected:
            for number in [n for n in self.early if n < target.first]:
                self._bytes -= self.early.pop(number).size
            self.expected = target.first
        if target.number < self.expected:
            return False
        is_next = target.number == self.expected
        has_room = self._bytes + arrival.size <= self._bounds.window_bytes
        if (
            target.number < self.expected + self._bounds.window
            and target.number not in self.early
            and (is_next or has_room)
        ):
            self.early[target.number] = arrival
            self._bytes += arrival.size
        return True

    def ack(self, broker: str) -> CarryAck:
        """What this broker says to the origin."""
        bounds = self._bounds
        return CarryAck(
            self.origin, self.epoch, broker, self.stored, bounds.window, bounds.window_bytes
        )

    def accept(self) -> None:
        """The expected message was stored."""
        self._bytes -= self.early.pop(self.expected).size
        self.expected += 1


_row_decoder = msgspec.msgpack.Decoder(tuple[str, str, int, int])


class IncomingStreams:
    """The streams from other brokers, by origin and epoch."""

    def __init__(self, store: Store, bounds: Bounds) -> None:
        self._store = store
        self._bounds = bounds
        self._streams: dict[tuple[str, str], IncomingStream] = {}
        for key, value in store.scan(keys.INCOMING):
            origin, epoch, number, heard_us = decoded(_row_decoder, key, value)
            self._open(origin, epoch, number, heard_us)

    def get(self, origin: str, epoch: str) -> IncomingStream:
        """The stream; opens it if there is none."""
        return self._streams.get((origin, epoch)) or self._open(origin, epoch, 0, 0)

    def all(self) -> list[IncomingStream]:
        return list(self._streams.values())

    def _open(self, origin: str, epoch: str, number: int, heard_us: int) -> IncomingStream:
        stream = IncomingStream(origin, epoch, self._bounds, number, heard_us)
        self._streams[origin, epoch] = stream
        return stream

    def restore(self, origin: str, epoch: str, number: int, heard_us: int) -> IncomingStream | None:
        """Take a number from a commit record. None: the row has it already."""
        stream = self.get(origin, epoch)
        if number <= stream.stored:
            return None
        stream.stored = number
        stream.expected = number + 1
        stream.heard_us = heard_us
        return stream

    def put(self, stream: IncomingStream) -> None:
        row = (stream.origin, stream.epoch, stream.expected - 1, stream.heard_us)
        self._store.put(_key(stream), encode(row))

    def forget_epochs(self, now_us: int) -> None:
        """Remove old epochs: an origin that lost its disk never uses its old epoch again."""
        newest: dict[str, int] = {}
        for stream in self._streams.values():
            newest[stream.origin] = max(newest.get(stream.origin, 0), stream.heard_us)
        over_us = now_us - self._bounds.publisher_us
        for key, stream in list(self._streams.items()):
            if stream.heard_us < min(newest[stream.origin], over_us):
                del self._streams[key]
                self._store.delete(_key(stream))


def _key(stream: IncomingStream) -> str:
    return keys.paired(keys.INCOMING, stream.origin, stream.epoch)
