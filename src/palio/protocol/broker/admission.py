"""Admission: which of the messages that arrive are accepted, where not all of them are.

A message whose attributes or headers cannot be parsed is rejected if a client published it, and dropped if a neighbour sent
it. A message that its publisher's grant does not allow, or that is not valid by a schema, is rejected. All are counted. A time that is
ahead of the broker's clock is cut, so that no clock of a publisher blinds those who watch patterns.

Kernels and Python read attributes. They must agree; if they do not, that is a bug, and the message is
counted (`misread`) and logged. `Message.from_json` decides: what it cannot parse is refused, and what
kernels alone cannot read is matched as Python reads it. No content of a message ends the broker.

Python reads only those messages of a large batch that kernels do not read. A publisher of too many that
nobody can read is cut off: its link is closed, and what it sent behind them is not looked at. It is not
acknowledged, so an honest publisher sends it again.

Parsing takes long: of a large batch, only CONFIRMED_MAX messages for patterns are parsed at once; the
rest is parsed when patterns take it, and what Python cannot parse then is refused to patterns only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from palio.errors import InvalidValue, PalioError
from palio.protocol.broker.access import Identity, check_publish
from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Links
from palio.protocol.broker.schemas import SchemaChecks
from palio.protocol.durability.delayed import DelayedMessages
from palio.protocol.interfaces import PATTERN, PublishGrant
from palio.protocol.wire import message_headers
from palio.protocol.wire.batch import KERNEL_MIN, MessageBatch, delays, header_blocks
from palio.protocol.wire.codes import CloseCode, RejectionCode
from palio.protocol.wire.control import Rejected
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.layout import END, PAYLOAD
from palio.protocol.wire.message_headers import SIZE_BYTES
from palio.protocol.wire.parts import cut
from palio.routing.interest_table import InterestTable
from palio.routing.matches import Matches

UNREADABLE_MAX = 100
"""Unreadable messages of one publisher, or neighbour, that are read in one batch."""
CONFIRMED_MAX = 1000
"""Messages of one batch; more than a busy client sends at once."""


class TrafficCounts(msgspec.Struct):
    """Totals since start."""

    published: int = 0
    received: int = 0
    rejected: int = 0
    forwarded: int = 0
    expired: int = 0
    """Live messages whose time was over when they came, or were committed."""
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
        limits: Limits,
        schemas: SchemaChecks,
    ) -> None:
        self.skew_us = skew_us
        """How far ahead of this broker's clock a publisher's may be; later times are cut to that."""
        self.cut_off: set[str] = set()
        """Publishers whose links were closed since the last `flush` of the data path."""
        self._table, self._links, self._output, self._counts = table, links, output, counts
        self._limits = limits
        self._schemas = schemas

    def with_headers(
        self, batch: MessageBatch, delayed: DelayedMessages, now_us: int
    ) -> MessageBatch:
        """The messages of a client whose headers and bodies are as they must be, and that may wait for
        their time if they are delayed."""
        blocks = header_blocks(batch)
        wrong = unreadable(batch, self._limits, blocks)
        refused = set(wrong)
        if blocks:
            for row, error in _not_to_be_delayed(batch, delayed, now_us).items():
                refused.add(row)
                self._reject(batch, row, error)
        if not refused:
            return batch
        counts: dict[str, int] = {}
        for row, error in wrong.items():
            publisher = batch.publisher(row)
            counts[publisher] = counts.get(publisher, 0) + 1
            if counts[publisher] > UNREADABLE_MAX:
                refused |= self._cut_off(batch, publisher, row, "headers")
                break
            self._reject(batch, row, error)
        return batch.pick([row for row in range(batch.count) if row not in refused])

    def read(
        self, batch: MessageBatch, came_from: str | None, error: Exception
    ) -> tuple[MessageBatch, Matches]:
        """The messages that can be parsed, and what they match, where the lookup of the batch has failed
        with `error`."""
        valid = self._readable(batch, came_from)
        if not isinstance(error, InvalidValue) or valid.count == batch.count:
            self._misread(f"a batch of {batch.count} messages: {_told(error)}")
        for look_up in (self._table.lookup, self._table.evaluate):
            try:
                return valid, look_up(valid)
            except Exception:  # `_evaluate` says which message it was
                continue
        return self._evaluate(valid, came_from)

    def confirm(
        self, batch: MessageBatch, matches: Matches, came_from: str | None
    ) -> tuple[MessageBatch, Matches]:
        """All messages, except those that match a pattern and that Python cannot parse: it has to."""
        rows, left = [], CONFIRMED_MAX
        patterns = np.diff(matches.of(PATTERN).ends).tolist()
        for row, count in enumerate(patterns):
            try:
                if count and left:
                    left -= 1
                    batch.message(row)
                rows.append(row)
            except InvalidValue as error:
                self._refuse(batch, row, came_from, error)
                self._misread(f"a message that kernels have read: {_told(error)}")
        return batch.pick(rows), matches.pick(rows)

    def _readable(self, batch: MessageBatch, came_from: str | None) -> MessageBatch:
        """The messages that kernels or Python can parse."""
        unreadable: dict[str, list[int]] = {}
        for row in self._left_to_python(batch):
            own = unreadable.setdefault(came_from or batch.publisher(row), [])
            if len(own) >= UNREADABLE_MAX:
                own.append(row)  # Python does not look at it
                continue
            try:
                batch.message(row)
            except InvalidValue as error:
                self._refuse(batch, row, came_from, error)
                own.append(row)
        refused = {row for own in unreadable.values() for row in own}
        for source, own in unreadable.items():
            if len(own) > UNREADABLE_MAX and came_from is None:
                refused |= self._cut_off(batch, source, own[UNREADABLE_MAX], "attributes")
            elif len(own) > UNREADABLE_MAX:
                self._counts.dropped += len(own) - UNREADABLE_MAX
        return batch.pick([row for row in range(batch.count) if row not in refused])

    def _left_to_python(self, batch: MessageBatch) -> Sequence[int]:
        """The messages that kernels do not read; of a small batch all, since Python is faster then."""
        if batch.count < KERNEL_MIN:
            return range(batch.count)
        from palio.matching.encode.json_messages import rows_left_to_python  # loads kernels

        try:
            return rows_left_to_python(batch.column())
        except Exception as error:
            self._misread(f"a batch of {batch.count} messages: {_told(error)}")
            return range(batch.count)

    def _cut_off(self, batch: MessageBatch, publisher: str, first: int, what: str) -> set[int]:
        """Close the link of a publisher. Returns its messages from this one on."""
        self.cut_off.add(publisher)
        link = self._links.publishers.get(publisher)
        if link is not None:
            reason = f"more than {UNREADABLE_MAX} messages at once whose {what} cannot be read"
            self._links.close(link, CloseCode.PROTOCOL, reason)
        publishers = batch.publishers()
        return {row for row in range(first, batch.count) if publishers[row] == publisher}

    def without_cut_off(self, batch: MessageBatch) -> MessageBatch:
        """The messages of publishers that are not cut off."""
        found = enumerate(batch.publishers())
        return batch.pick([row for row, publisher in found if publisher not in self.cut_off])

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
                self._reject(batch, row, error, RejectionCode.DENIED)
        return batch.pick(rows), matches.pick(rows)

    def valid(self, batch: MessageBatch, matches: Matches) -> tuple[MessageBatch, Matches]:
        """The messages of clients that are valid by each schema that is asked about them."""
        refused = self._schemas.refused(batch, matches)
        return self.without(batch, matches, refused) if refused else (batch, matches)

    def without(
        self, batch: MessageBatch, matches: Matches, refused: Mapping[int, PalioError]
    ) -> tuple[MessageBatch, Matches]:
        """Reject these messages of clients."""
        for row, error in refused.items():
            self._reject(batch, row, error, RejectionCode.SCHEMA)
        rows = [row for row in range(batch.count) if row not in refused]
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

    def _reject(
        self,
        batch: MessageBatch,
        row: int,
        error: PalioError,
        code: RejectionCode = RejectionCode.INVALID,
    ) -> None:
        self._counts.rejected += 1
        link = self._links.publishers.get(batch.publisher(row))
        if link is not None:
            self._output.say(link.number, Rejected(batch.number(row), cut(str(error)), code))


def _told(error: Exception) -> str:
    """What an error says; a bug may say it at length, or nothing."""
    return f"{type(error).__name__}: {error}"[:300]


def unreadable(
    batch: MessageBatch, limits: Limits, blocks: dict[bytes, list[int]] | None = None
) -> dict[int, InvalidValue]:
    """The messages whose headers or bodies are not as they must be, by row, each with what is wrong.
    `blocks`: its `header_blocks`, if they are known."""
    found: dict[int, InvalidValue] = {}
    length = batch.rows[:, END] - batch.rows[:, PAYLOAD]
    if int(length.max()) > SIZE_BYTES + limits.body:
        for row in np.flatnonzero(length > SIZE_BYTES + limits.body).tolist():
            size = len(batch.body(row))
            if size > limits.body:
                found[row] = InvalidValue(f"a body of {size} bytes; the most are {limits.body}")
    for block, rows in (header_blocks(batch) if blocks is None else blocks).items():
        error = _wrong_with(block, limits)
        if error is not None:
            found.update(dict.fromkeys(rows, error))
    return dict(sorted(found.items()))


def _not_to_be_delayed(
    batch: MessageBatch, delayed: DelayedMessages, now_us: int
) -> dict[int, InvalidValue]:
    """The messages that may not wait for their time, by row, each with the reason."""
    found: dict[int, InvalidValue] = {}
    for row, due_us in delays(batch, now_us).items():
        try:
            delayed.check(due_us, now_us, durable=batch.durable)
        except InvalidValue as error:
            found[row] = error
    return found


def _wrong_with(block: bytes, limits: Limits) -> InvalidValue | None:
    size = SIZE_BYTES + int.from_bytes(block[:SIZE_BYTES], "little")
    if len(block) < size:
        return InvalidValue(f"its headers are cut off: {len(block)} of {size} bytes")
    if size > SIZE_BYTES + limits.headers:
        return InvalidValue(f"headers of {size} bytes; the most are {limits.headers}")
    try:
        message_headers.read(block[SIZE_BYTES:])
    except (ValueError, RecursionError) as error:
        return InvalidValue(f"its headers cannot be read: {error}")
    return None
