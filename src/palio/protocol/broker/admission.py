"""Admission: which of the messages that arrive are accepted, where not all of them are.

A message that cannot be parsed is rejected if a client published it, and dropped if a neighbour sent
it. A message that its publisher's grant does not allow is rejected. Both are counted. A time that is
ahead of the broker's clock is cut, so that no clock of a publisher blinds those who watch patterns.

Kernels and Python read attributes. They must agree; if they do not, that is a bug, and the message is
counted (`misread`) and logged. `Message.from_json` decides: what it cannot parse is refused, and what
kernels alone cannot read is matched as Python reads it. No content of a message ends the broker.
"""

from __future__ import annotations

import msgspec
import numpy as np

from palio.errors import InvalidValue, PalioError
from palio.protocol.broker.access import Identity, check_publish
from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Links
from palio.protocol.interfaces import PATTERN, PublishGrant
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.control import Rejected
from palio.protocol.wire.parts import cut
from palio.routing.interest_table import InterestTable, Matches


class TrafficCounts(msgspec.Struct):
    """Totals since start."""

    published: int = 0
    received: int = 0
    rejected: int = 0
    forwarded: int = 0
    dropped: int = 0
    """Live messages for which a neighbour had no room, and those that could not be parsed."""
    misread: int = 0
    """Messages, or batches, on which kernels and Python did not agree."""


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

    def read(
        self, batch: MessageBatch, came_from: str | None, error: Exception
    ) -> tuple[MessageBatch, Matches]:
        """The messages that Python can parse, and what they match, where the lookup of the batch has
        failed with `error`."""
        valid = self._readable(batch, came_from)
        if not isinstance(error, InvalidValue) or valid.count == batch.count:
            self._misread(f"a batch of {batch.count} messages: {_told(error)}")
        try:
            return valid, self._table.evaluate(valid)
        except Exception:
            return self._evaluate(valid, came_from)

    def confirm(
        self, batch: MessageBatch, matches: Matches, came_from: str | None
    ) -> tuple[MessageBatch, Matches]:
        """All messages, except those that match a pattern and that Python cannot parse: it has to."""
        rows = []
        patterns = np.diff(matches.of(PATTERN).ends).tolist()
        for row, count in enumerate(patterns):
            try:
                if count:
                    batch.message(row)
                rows.append(row)
            except InvalidValue as error:
                self._refuse(batch, row, came_from, error)
                self._misread(f"a message that kernels have read: {_told(error)}")
        return batch.pick(rows), matches.pick(rows)

    def _readable(self, batch: MessageBatch, came_from: str | None) -> MessageBatch:
        """The messages that Python can parse; it keeps them parsed."""
        rows = []
        for row in range(batch.count):
            try:
                batch.message(row)
                rows.append(row)
            except InvalidValue as error:
                self._refuse(batch, row, came_from, error)
        return batch.pick(rows)

    def _evaluate(self, batch: MessageBatch, came_from: str | None) -> tuple[MessageBatch, Matches]:
        """Look up messages one by one; those that cannot be looked up are refused."""
        rows, slots = [], []
        for row in range(batch.count):
            try:
                slots.append(self._table.evaluate(batch.pick([row])).slots(0))
                rows.append(row)
            except Exception as error:
                self._refuse(batch, row, came_from, InvalidValue(_told(error)))
                self._misread(f"a message that Python has read: {_told(error)}")
        return batch.pick(rows), self._table.answer(slots)

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

    def _refuse(
        self, batch: MessageBatch, row: int, came_from: str | None, error: PalioError
    ) -> None:
        """Reject a message of a client, drop one of a neighbour."""
        if came_from is None:
            self._reject(batch, row, error)
        else:
            self._counts.dropped += 1

    def _misread(self, what: str) -> None:
        self._counts.misread += 1
        self._output.report(f"readers of attributes do not agree on {what}")

    def _reject(self, batch: MessageBatch, row: int, error: PalioError) -> None:
        self._counts.rejected += 1
        link = self._links.publishers.get(batch.publisher(row))
        if link is not None:
            self._output.say(link.number, Rejected(batch.number(row), cut(str(error))))


def _told(error: Exception) -> str:
    """What an error says; a bug may say it at length, or nothing."""
    return f"{type(error).__name__}: {error}"[:300]
