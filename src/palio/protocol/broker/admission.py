"""Admission: which of the messages that arrive are accepted, where not all of them are.

A message that cannot be parsed is rejected if a client published it, and dropped if a neighbour sent
it. A message that its publisher's grant does not allow is rejected. Both are counted. A time that is
ahead of the broker's clock is cut, so that no clock of a publisher blinds those who watch patterns.
"""

from __future__ import annotations

import msgspec

from palio.errors import InvalidValue, PalioError
from palio.protocol.broker.access import Identity, check_publish
from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Links
from palio.protocol.interfaces import PublishGrant
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.control import Rejected
from palio.routing.interest_table import InterestTable, Matches


class TrafficCounts(msgspec.Struct):
    """Totals since start."""

    published: int = 0
    received: int = 0
    rejected: int = 0
    forwarded: int = 0
    dropped: int = 0
    """Live messages for which a neighbour had no room, and those that could not be parsed."""


class Admission:
    def __init__(
        self,
        table: InterestTable,
        links: Links,
        output: Output,
        counts: TrafficCounts,
        skew_us: int,
    ) -> None:
        self.skew_us = skew_us
        """How far ahead of this broker's clock a publisher's may be; later times are cut to that."""
        self._table, self._links, self._output, self._counts = table, links, output, counts

    def readable(self, batch: MessageBatch, came_from: str | None) -> MessageBatch:
        """The messages that can be parsed."""
        rows = []
        for row in range(batch.count):
            try:
                batch.message(row)
                rows.append(row)
            except InvalidValue as error:
                if came_from is None:
                    self._reject(batch, row, error)
                else:
                    self._counts.dropped += 1
        return batch.pick(rows)

    def permitted(
        self, batch: MessageBatch, matches: Matches, identity: Identity
    ) -> tuple[MessageBatch, Matches]:
        """The messages that a client may publish: those that match its grant, an interface."""
        slot = self._table.slot(PublishGrant(identity.name))
        granted = set() if slot is None else set(matches.rows_with(slot))
        if len(granted) == batch.count:
            return batch, matches
        rows = []
        for row in range(batch.count):
            if row in granted:
                rows.append(row)
                continue
            try:
                check_publish(identity, batch.message(row))
                rows.append(row)
            except PalioError as error:
                self._reject(batch, row, error)
        return batch.pick(rows), matches.pick(rows)

    def _reject(self, batch: MessageBatch, row: int, error: PalioError) -> None:
        self._counts.rejected += 1
        link = self._links.publishers.get(batch.publisher(row))
        if link is not None:
            self._output.say(link.number, Rejected(batch.number(row), str(error)))
