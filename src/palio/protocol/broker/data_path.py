"""The data path: how messages pass through a broker, batch by batch.

    clients ─PUBLISH─▶ arrived ─▶ lookup: one table, one answer ─┬─ live ────▶ local, policy ─▶ bytes
    brokers ─FORWARD─▶                                           └─ durable ─▶ store ─(commit)─▶ the same

Messages of one turn are looked up together, once; the answer serves grants, durable subscriptions,
live subscriptions and other brokers. Durable messages keep their answer until they are committed, and
then go to live subscriptions and neighbours. Those for which the store has no room are held.

A message that cannot be parsed is rejected (from a client) or dropped (from a neighbour), and
counted; the other messages of its batch are processed. Any other error stops the broker: going on
would leave a gap in what publishers take for stored.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from palio.errors import PalioError
from palio.protocol.broker.access import Identity
from palio.protocol.broker.admission import Admission, TrafficCounts
from palio.protocol.broker.effects import Output
from palio.protocol.broker.failure import BrokerFailed
from palio.protocol.broker.held import HeldMessages
from palio.protocol.broker.links import Link, Links
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.neighbours import DedupWindow, NeighbourLinks
from palio.protocol.broker.pattern_queue import PatternQueue
from palio.protocol.broker.retaining import Retaining
from palio.protocol.broker.schemas import SchemaChecks
from palio.protocol.broker.uncommitted import UncommittedMessages
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.interfaces import (
    BROKER,
    CONSUMERS,
    DURABLE,
    LIVE,
    PATTERN,
    SCHEMA,
    DurableSubscription,
)
from palio.protocol.policies.policy import RoutingPolicy
from palio.protocol.wire.batch import (
    MessageBatch,
    expiries,
    joined,
    new_rows,
    rows_with_headers,
)
from palio.protocol.wire.control import CloseCode
from palio.protocol.wire.encode import forward_frames
from palio.protocol.wire.frames import BrokenFrame, Limits
from palio.protocol.wire.last_values import MARK
from palio.routing.interest_table import InterestTable
from palio.routing.matches import Matches

_LOCAL = LIVE | CONSUMERS
_AFTER_COMMIT = LIVE | BROKER | PATTERN
_name_of = attrgetter("name")


class _Source(NamedTuple):
    """What decides how messages are processed, besides their content."""

    came_from: str | None
    """A neighbour; None: a client published them here."""
    durable: bool
    identity: str
    """Of a client whose messages must be checked against its grant; else empty."""
    is_delivered: bool = False
    """A copy was delivered here, and none was forwarded yet."""


class DataPath:
    def __init__(
        self,
        table: InterestTable,
        local: LocalDelivery,
        store: MessageStore,
        policy: RoutingPolicy,
        neighbours: NeighbourLinks,
        patterns: PatternQueue,
        links: Links,
        output: Output,
        held: HeldMessages,
        skew_us: int,
        limits: Limits,
        schemas: SchemaChecks,
        retaining: Retaining,
    ) -> None:
        self.counts, self.schemas, self.retaining = TrafficCounts(), schemas, retaining
        self._admission = Admission(table, links, output, self.counts, skew_us, limits, schemas)
        self.dedup = DedupWindow()
        self.held = held
        self._table, self._local, self._store = table, local, store
        self._policy, self._neighbours, self.patterns = policy, neighbours, patterns
        self._links, self._output = links, output
        self._arrived: dict[_Source, list[MessageBatch]] = {}  # in this turn
        self._identities: dict[str, Identity] = {}  # of clients with a grant, in this turn
        self._uncommitted = UncommittedMessages(table)
        self.now_us = 0

    # ---- arrival

    def publish(self, link: Link, batch: MessageBatch) -> None:
        """Take messages of a client; `flush` processes them."""
        batch.sign(link.publisher, self.now_us + self._admission.skew_us)
        delayed = self._store.republishing.delayed
        batch = self._admission.with_headers(batch, delayed, self.now_us)
        if not batch.count:
            return
        name = ""
        if link.is_restricted and link.identity is not None:
            name = link.identity.name
            self._identities[name] = link.identity
        self._arrived.setdefault(_Source(None, batch.durable, name), []).append(batch)

    def receive(self, neighbour: str, batch: MessageBatch) -> None:
        """Take messages of a neighbour, without duplicates; `flush` processes them. With routes that
        name the receivers, a copy has other receivers, and only its delivery here is in question."""
        if not self._policy.is_source_routed:
            batch, candidates = self.dedup.new(batch, self.flush)
            if candidates is not None:
                delivered = _Source(neighbour, batch.durable, "", is_delivered=True)
                self._arrived.setdefault(delivered, []).append(candidates)
        if batch.count:
            self._arrived.setdefault(_Source(neighbour, batch.durable, ""), []).append(batch)

    def flush(self) -> None:
        """Look up all messages that have arrived, and deliver, store and forward them."""
        try:
            while self._arrived:
                arrived, self._arrived = self._arrived, {}
                for source, batches in arrived.items():
                    for batch in joined(batches):
                        self._process(batch, source)
        except PalioError as error:  # not the fault of whoever caused this flush
            raise BrokerFailed(f"messages that have arrived were not processed: {error}") from error
        self._identities.clear()
        self._admission.cut_off.clear()  # their links are closed, as of those refused
        self.held.refused.clear()  # their links are closed: nothing more arrives from them
        if self._table.retired != self._table.reclaimed:
            self._uncommitted.reclaim()

    def _process(self, batch: MessageBatch, source: _Source) -> None:
        came_from = source.came_from
        is_passed_on = came_from is not None and self._policy.is_source_routed
        if came_from is not None and is_passed_on:
            batch = self._pass_on(batch, came_from)
            if not batch.count:
                return
        if came_from is None and self._admission.cut_off:
            batch = self._admission.without_cut_off(batch)
        batch, matches = self._lookup(batch, came_from)
        if source.identity:
            identity = self._identities[source.identity]
            batch, matches = self._admission.permitted(batch, matches, identity)
        if came_from is None and matches.present & SCHEMA:
            batch, matches = self._admission.valid(batch, matches)
        if came_from is None and rows_with_headers(batch) and MARK in batch.data:
            batch, refused = self.retaining.admit(batch, self.now_us)
            if refused:
                batch, matches = self._admission.without(batch, matches, refused)
        if not batch.count:
            return
        if source.durable and came_from is None:
            self._store_all(batch, matches)
        else:
            batch, matches = self._unexpired(batch, matches)
            if not source.is_delivered:
                if came_from is None:
                    self.counts.published += batch.count
                else:
                    self.counts.received += batch.count
                self._deliver(batch, matches, came_from)
            if not is_passed_on:
                self._forward(batch, matches, came_from)

    def _lookup(self, batch: MessageBatch, came_from: str | None) -> tuple[MessageBatch, Matches]:
        """The messages that can be parsed, and what they match. Whatever the content of a message does
        to the kernels, Python decides about each message that they do not read."""
        try:
            matches = self._table.lookup(batch)
        except Exception as error:
            batch, matches = self._admission.read(batch, came_from, error)
        if matches.present & PATTERN:  # Python will read them
            return self._admission.confirm(batch, matches, came_from)
        return batch, matches

    # ---- live messages

    def _unexpired(self, batch: MessageBatch, matches: Matches) -> tuple[MessageBatch, Matches]:
        """The messages whose time is not over."""
        gone = {row for row, instant in expiries(batch).items() if instant <= self.now_us}
        if not gone:
            return batch, matches
        self.counts.expired += len(gone)
        rows = [row for row in range(batch.count) if row not in gone]
        return batch.pick(rows), matches.pick(rows)

    def _deliver(self, batch: MessageBatch, matches: Matches, came_from: str | None) -> None:
        """Deliver to live subscriptions here, and to patterns."""
        local = LIVE if batch.durable else _LOCAL
        self._local.deliver(batch, matches.of(local))
        if matches.has(PATTERN):
            self._observe(batch, matches.of(PATTERN), came_from)

    def _observe(self, batch: MessageBatch, matches: Matches, came_from: str | None) -> None:
        rows = np.flatnonzero(np.diff(matches.ends)).tolist()
        self.patterns.observe(came_from, batch.pick(rows))

    def _forward(self, batch: MessageBatch, matches: Matches, came_from: str | None) -> None:
        """Send to the next hops of the routing policy."""
        if not self._neighbours:
            return
        matches = matches.of(BROKER)
        if came_from is None and not len(matches.found):
            return
        grouped = matches.grouped(self._table.interfaces.__getitem__)
        hops: dict[str, dict[bytes, list[int]]] = {}
        routes = [(b"", range(batch.count))] if came_from is None else batch.routes()
        for route, rows in routes:
            chosen = grouped if len(rows) == batch.count else grouped.pick(rows)
            for interested, places in chosen.parts():
                names, own = tuple(map(_name_of, interested)), list(map(rows.__getitem__, places))
                if not self._add_hops(hops, batch, route, names, came_from, own):
                    return
        if came_from is None and hops:
            self.dedup.note(batch)  # it may come back
        self._send(batch, hops)

    def _pass_on(self, batch: MessageBatch, came_from: str) -> MessageBatch:
        """Forward messages by the receivers in their route. Returns those also for this broker."""
        hops: dict[str, dict[bytes, list[int]]] = {}
        here: list[int] = []
        for route, rows in batch.routes():
            if not self._add_hops(hops, batch, route, (), came_from, rows):
                return batch.pick([])
            if self._policy.is_receiver(route):
                here += rows
        self._send(batch, hops)
        return self.dedup.new(batch.pick(sorted(here)), _nothing).new

    def _add_hops(
        self,
        hops: dict[str, dict[bytes, list[int]]],
        batch: MessageBatch,
        route: bytes,
        interested: tuple[str, ...],
        came_from: str | None,
        rows: list[int],
    ) -> bool:
        """Add the next hops of rows. False: the route is invalid, so the link is closed."""
        try:
            found = self._policy.next_hops(route, interested, came_from, len(rows))
        except BrokenFrame as error:
            assert came_from is not None
            self._neighbours.close(came_from, CloseCode.PROTOCOL, str(error))
            return False
        if found is None:
            self.dedup.refuse(batch, rows)
            return True
        for name, own in found:
            hops.setdefault(name, {}).setdefault(own, []).extend(rows)
        return True

    def _send(self, batch: MessageBatch, hops: dict[str, dict[bytes, list[int]]]) -> None:
        for name, routes in hops.items():
            frames = forward_frames(batch, routes)
            sent = self._neighbours.send(name, frames)
            self.counts.forwarded += sent
            self.counts.dropped += len(frames.ends) - sent

    # ---- durable messages

    def _store_all(self, batch: MessageBatch, matches: Matches) -> None:
        begin = 0
        for publisher, end in batch.publisher_ends():
            own = batch.slice(begin, end)
            if publisher in self.held.publishers:  # keep the order behind the held ones
                self._hold(publisher, own)
            elif publisher not in self.held.refused:
                self._store_some(publisher, own, matches.slice(begin, end))
            begin = end

    def _store_some(self, publisher: str, batch: MessageBatch, matches: Matches) -> None:
        """Store messages of one publisher; hold those for which there is no room."""
        interfaces = self._table.interfaces
        before = self._store.taken_number(publisher)
        durable = matches.of(DURABLE).grouped(interfaces.__getitem__)
        is_plain = not rows_with_headers(batch) or MARK not in batch.data
        publish = self._store.publish if is_plain else self.retaining.publish
        taken = publish(batch, durable, self.now_us)
        rows = new_rows(batch, before, taken)
        self.counts.published += len(rows)
        later = self._store.republishing.delayed.rows
        if later:
            rows = [row for row in rows if row not in later]
        if rows and matches.has(_AFTER_COMMIT):
            self._uncommitted.add(batch.pick(rows), matches.pick(rows))
        if taken < batch.count:
            self._hold(publisher, batch.slice(taken, batch.count))

    def _hold(self, publisher: str, batch: MessageBatch) -> None:
        """Hold messages until there is room. Disconnect clients of which too much is held."""
        for name in self.held.add(publisher, batch):
            self.held.refuse(name)
            link = self._links.publishers.get(name)
            if link is not None:
                reason = "too many durable messages that are not acknowledged"
                self._links.close(link, CloseCode.OVERLOAD, reason)

    def store_held(self) -> None:
        """The store has room again: look up the held messages anew, and store them."""
        for publisher, batch in self.held.take():
            valid, matches = self._lookup(batch, None)
            if valid.count:
                self._store_some(publisher, valid, matches)

    def publish_own(
        self, message: MessageBatch, store: Callable[[tuple[DurableSubscription, ...]], bool]
    ) -> bool:
        """Look up a message of this broker's own. `store` stores it for durable subscriptions; if it has,
        the message goes to all others after the commit. False: it cannot be looked up."""
        valid, matches = self._lookup(message, None)
        durable = matches.of(DURABLE).grouped(self._table.interfaces.__getitem__)
        if valid.count and store(next(iter(durable))) and matches.has(_AFTER_COMMIT):
            self._uncommitted.add(valid, matches)
        return bool(valid.count)

    def sealed(self, ticket: int) -> None:
        """The commit with this ticket covers what was stored so far."""
        self._uncommitted.seal(ticket)
        if self.retaining.values.unsealed:
            self.retaining.values.sealed(ticket)

    def committed(self, ticket: int) -> None:
        """Send committed durable messages to live subscriptions and neighbours."""
        for batch, matches in self._uncommitted.take(ticket):
            valid, found = self._unexpired(batch, matches)
            self._deliver(valid, found, None)
            self._forward(valid, found, None)


def _nothing() -> None:
    """All that is known was dealt with."""
