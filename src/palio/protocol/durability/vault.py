"""The vault: everything a deposit keeps, what changed in it, and how it gets to the store and back.

    changed since the last seal          pushed, facts, arrived, heard    ──▶ one batch, one record
                                         urgent                           ──▶ heads
    changed since the last settling      loose, loose_inbound             ──▶ heads and rows

    deposit/ b/ m/  the journal          r/  the ledger's records
             q/ s/  heads of queues (by label) and streams (by broker)
             i/     last numbers of streams from others   p/  of publishers
             k/     what is known of subscriptions

`seal` is the only place that puts and deletes, so what is committed is always whole. Settling is part
of a seal now and then: heads are put, and what they show to be needless is deleted. Only the heads of
lines that lost entries which nobody acknowledged are urgent: after a crash those must not come back
out of order.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.known import Fact, Known, fact_decoder, label
from palio.protocol.durability.ledger import Ledger, Line, Record, Sent, encode
from palio.protocol.durability.outgoing import Statistics
from palio.protocol.durability.publishers import Publisher, Publishers
from palio.protocol.durability.queues import Queue
from palio.protocol.durability.streams import Inbound, Outbound
from palio.protocol.store import Store

PREFIX = "deposit/"
"""All keys of the store begin with it."""

T = TypeVar("T")
_EVERYTHING = 1 << 62
_arrived_decoder = msgspec.msgpack.Decoder(tuple[str, str, int, int])


class Sealed(NamedTuple):
    """What is safe as soon as the ticket is committed: numbers up to which."""

    ticket: int
    lines: list[tuple[Queue | Outbound, int]]
    arrived: list[tuple[Inbound, int]]
    publishers: list[tuple[Publisher, int]]


class Vault:
    """Owners of entries change their lines themselves, and say so in `pushed` and `loose`."""

    def __init__(self, store: Store, broker: str, bounds: Bounds) -> None:
        self.broker = broker
        self.known: dict[tuple[str, str], Known] = {}
        self.replays: dict[tuple[str, str], Known] = {}
        self.queues: dict[str, Queue] = {}
        self.streams: dict[str, Outbound] = {}
        self.inbound: dict[tuple[str, str], Inbound] = {}
        self.is_dirty = False
        self.facts: dict[tuple[str, str], Known | None] = {}
        self.pushed: dict[Queue | Outbound, None] = {}
        self.arrived: dict[Inbound, None] = {}
        self.heard: dict[str, Publisher] = {}
        self.urgent: dict[Queue | Outbound, None] = {}
        self.loose: dict[Queue | Outbound, None] = {}
        self.loose_inbound: dict[Inbound, None] = {}
        self._ended: list[str] = []
        self._store = store
        self._bounds = bounds
        self._ledger = Ledger(store, PREFIX)
        self.publishers = Publishers(store, PREFIX, bounds.publisher_us)
        self._restore()

    # ---- subscriptions

    def open(self, fact: Fact, line: Line[int] | None = None) -> Known:
        """Know a subscription: it has a queue, or the stream to its home."""
        destination: Queue | Outbound
        if fact.broker == self.broker:
            name = label(fact.name, fact.durable)
            destination = Queue(
                fact.name, name, fact.full, line or Line(), self.journal, self._bounds
            )
            self.queues[name] = destination
        else:
            destination = self.stream(fact.broker)
            destination.subscriptions += 1
        known = Known(fact, destination)
        self.known[known.key] = known
        if fact.cursor is not None:
            self.replays[known.key] = known
        return known

    def forget(self, known: Known) -> None:
        """A subscription is gone, and nobody needs what only it needed."""
        del self.known[known.key]
        self.replays.pop(known.key, None)
        self.facts[known.key] = None
        self.is_dirty = True
        owner = known.destination
        if isinstance(owner, Queue):
            del self.queues[known.label]
            for owners in (self.pushed, self.urgent, self.loose):
                owners.pop(owner, None)
            owner.empty()
            self._ledger.release(owner.line.release())
            self._ended.append(known.label)
            return
        owner.subscriptions -= 1
        if not owner.subscriptions:
            owner.give_up()
            self.urgent[owner] = None

    def stream(self, broker: str, line: Line[Sent] | None = None) -> Outbound:
        stream = self.streams.get(broker)
        if stream is None:
            stream = Outbound(broker, line or Line(), self.journal, self._bounds)
            self.streams[broker] = stream
        return stream

    # ---- to the store

    def seal(self, now_us: int, is_settling: bool) -> Sealed:
        """Put all that changed; it is safe when the host has committed it."""
        ticket = self._ledger.ticket + 1
        numbers = {name: row.number for name, row in self.heard.items()}
        arrived = [(i.origin, i.epoch, i.expected - 1) for i in self.arrived]
        record = Record(now_us, self.journal.next, {}, {}, numbers, arrived)
        for owner in self.urgent:
            self._settle_line(owner, ticket, record)
        if is_settling:
            self._settle(ticket, record, now_us)
        for owner in self.pushed:
            if isinstance(owner, Queue):
                self._add(ticket, record.queues, owner.label, owner.line.chunk(ticket))
            else:
                self._add(ticket, record.streams, owner.broker, owner.line.chunk(ticket))
        self.journal.seal()
        self._put_facts()
        self._ledger.put(ticket, record)
        if is_settling:
            self._ledger.sweep()
        sealed = Sealed(
            ticket,
            [(owner, owner.line.next) for owner in self.pushed],
            [(inbound, inbound.expected - 1) for inbound in self.arrived],
            [(row, row.number) for row in self.heard.values()],
        )
        self.is_dirty = False
        for changes in (self.facts, self.pushed, self.urgent, self.arrived, self.heard):
            changes.clear()
        return sealed

    def has_waste(self, now_us: int) -> bool:
        """Settling would free something, because time has passed."""
        return self.publishers.can_expire(now_us) or self.journal.has_waste(now_us, self._needed())

    def _add(
        self,
        ticket: int,
        chunks: dict[str, dict[int, T]],
        key: str,
        chunk: dict[int, T],
    ) -> None:
        if chunk:
            chunks[key] = chunk
            self._ledger.need(ticket)

    def _put_facts(self) -> None:
        for (broker, name), known in self.facts.items():
            key = f"{PREFIX}k/{len(broker)}:{broker}:{name}"
            if known is None:
                self._store.delete(key)
            else:
                self._store.put(key, encode(known.stored()))
        for name in self._ended:
            self._ledger.delete_head(f"q/{name}")
        self._ended.clear()

    def _settle(self, ticket: int, record: Record, now_us: int) -> None:
        for owner in self.loose:
            self._settle_line(owner, ticket, record)
        self.loose.clear()
        for inbound in self.loose_inbound:
            self._put_inbound(inbound)
        self.loose_inbound.clear()
        self._forget_epochs(now_us)
        self.publishers.settle(now_us)
        self.journal.sweep(now_us, self._needed())

    def _settle_line(self, owner: Queue | Outbound, ticket: int, record: Record) -> None:
        self._ledger.release(owner.line.settle())
        if isinstance(owner, Outbound):
            self._ledger.put_head(f"s/{owner.broker}", owner.line.head())
            return
        if owner.line.is_sparse:
            chunk, released = owner.line.rewrite(ticket)
            self._ledger.release(released)
            self._add(ticket, record.queues, owner.label, chunk)
        owner.has_dropped = False
        self._ledger.put_head(f"q/{owner.label}", owner.line.head())

    def _put_inbound(self, inbound: Inbound) -> None:
        row = (inbound.origin, inbound.epoch, inbound.expected - 1, inbound.heard_us)
        self._store.put(_inbound_key(inbound), encode(row))

    def _forget_epochs(self, now_us: int) -> None:
        """An origin that lost its disk has a new epoch; the old one is silent for ever."""
        newest: dict[str, int] = {}
        for inbound in self.inbound.values():
            newest[inbound.origin] = max(newest.get(inbound.origin, 0), inbound.heard_us)
        over_us = now_us - self._bounds.publisher_us
        for key, inbound in list(self.inbound.items()):
            if inbound.heard_us < min(newest[inbound.origin], over_us):
                del self.inbound[key]
                self._store.delete(_inbound_key(inbound))

    def _needed(self) -> int:
        """From which position on a replay needs the journal."""
        return min(
            (k.cursor for k in self.replays.values() if k.cursor is not None), default=_EVERYTHING
        )

    # ---- and back

    def _restore(self) -> None:
        facts = [fact_decoder.decode(value) for _, value in self._store.scan(f"{PREFIX}k/")]
        queues: dict[str, Line[int]] = {}
        for fact in facts:
            if fact.broker == self.broker:
                name = label(fact.name, fact.durable)
                queues[name] = Line(self._ledger.head(f"q/{name}"))
        streams: dict[str, Line[Sent]] = {}
        for key, _ in self._store.scan(f"{PREFIX}s/"):
            broker = key[len(PREFIX) + 2 :]
            streams[broker] = Line(self._ledger.head(f"s/{broker}"))
        for _, value in self._store.scan(f"{PREFIX}i/"):
            origin, epoch, number, heard_us = _arrived_decoder.decode(value)
            self.inbound[origin, epoch] = Inbound(origin, epoch, self._bounds, number, heard_us)
        position = 1
        for ticket, record in self._ledger.records():
            position = record.position
            for name, queued in record.queues.items():
                if name in queues and queues[name].restore(ticket, queued):
                    self._ledger.need(ticket)
            for broker, sent in record.streams.items():
                if streams.setdefault(broker, Line()).restore(ticket, sent):
                    self._ledger.need(ticket)
            for name, number in record.publishers.items():
                self.publishers.restore(name, number, record.time_us)
            for origin, epoch, number in record.arrived:
                self._restore_inbound(origin, epoch, number, record.time_us)
        self.journal = Journal(self._store, PREFIX, self._bounds, position)
        for broker, line in streams.items():
            self.stream(broker, line)
        for fact in facts:
            is_home = fact.broker == self.broker
            self.open(fact, queues[label(fact.name, fact.durable)] if is_home else None)
        for stream in self.streams.values():
            if not stream.subscriptions and stream.line.entries:
                stream.give_up()
                self.loose[stream] = None

    def _restore_inbound(self, origin: str, epoch: str, number: int, heard_us: int) -> None:
        """A number from a record, which may go before the row is put again."""
        inbound = self.inbound.get((origin, epoch))
        if inbound is None or inbound.stored < number:
            if inbound is not None:
                self.loose_inbound.pop(inbound, None)
            inbound = Inbound(origin, epoch, self._bounds, number, heard_us)
            self.inbound[origin, epoch] = inbound
            self.loose_inbound[inbound] = None

    def statistics(self, counts: Statistics) -> Statistics:
        """The counts, and how it is now."""
        queues = self.queues.values()
        return msgspec.structs.replace(
            counts,
            dropped=counts.dropped + sum(queue.dropped for queue in queues),
            messages=len(self.journal),
            bytes=self.journal.bytes,
            publishers=len(self.publishers),
            backlogs={b: len(stream.line.entries) for b, stream in self.streams.items()},
            queues={queue.name: len(queue) for queue in queues},
        )


def _inbound_key(inbound: Inbound) -> str:
    return f"{PREFIX}i/{len(inbound.origin)}:{inbound.origin}:{inbound.epoch}"
