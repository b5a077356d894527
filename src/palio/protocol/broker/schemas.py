"""Schemas: by which a client's messages must be valid, besides being allowed.

    where: a predicate ─▶ the interest table, as an interface ─▶ rows of a batch ─▶ check ─▶ refused, why

The lookup of a batch says which of its messages a schema is asked about, so other messages cost nothing.
What a schema is, this module does not know: `check` is a function of whoever made the settings. It must
take milliseconds at most, and raise nothing.

A batch may hold thousands of messages. What their checks may cost is estimated before the lookup, from
their number and size, and a batch that costs too much for one turn is taken in parts (long_lookups.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.model.predicate import Filter, Op, Predicate
from palio.protocol.broker.snapshot import SchemaCounters
from palio.protocol.interfaces import PublishSchema
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.layout import PAYLOAD, TEXT
from palio.routing.interest_table import InterestTable
from palio.routing.matches import Matches

MESSAGE_UNITS = 0.2
"""Of checking a message, in units of the scheduler (0.1 ms): reading it, and refusing it."""
KIB_UNITS = 4.0
"""Of each KiB of its attributes."""
REASON_CHARACTERS = 600


class MessageSchema(msgspec.Struct, frozen=True):
    where: Predicate
    """The messages it is asked about."""
    check: Callable[[Message], str | None]
    """What is wrong with a message, as a sentence; None: it is valid. Equal checks are the same schema."""


Schemas: TypeAlias = Mapping[str, MessageSchema]


class Changing(Protocol):
    """What changes the interest table (interests.py)."""

    def examine(self, examiner: PublishSchema, which: Predicate | None, /) -> None: ...


class SchemaChecks:
    """The schemas of a broker, and what they were asked."""

    def __init__(self, table: InterestTable) -> None:
        self.has_any = False
        self._table = table
        self._schemas: dict[str, MessageSchema] = {}
        self._counts: dict[str, list[int]] = {}  # checked, refused
        self._needed: list[bytes] | None = None

    def follow(self, schemas: Schemas, interests: Changing) -> None:
        """Replace all schemas; messages that have arrived are checked by those before."""
        for name in [*self._schemas]:
            if self._schemas[name] != schemas.get(name):
                interests.examine(PublishSchema(name), None)
                del self._schemas[name], self._counts[name]
        for name, schema in schemas.items():
            if name not in self._schemas:
                interests.examine(PublishSchema(name), schema.where)
                self._schemas[name], self._counts[name] = schema, [0, 0]
        self.has_any = bool(self._schemas)
        filters = [found for one in self._schemas.values() for found in one.where]
        needed = list(map(_needed_name, filters))
        self._needed = None if None in needed else [name for name in needed if name is not None]

    def refused(self, batch: MessageBatch, matches: Matches) -> dict[int, InvalidValue]:
        """The messages that are not valid, by row, each with the first reason."""
        found: dict[int, InvalidValue] = {}
        for name, schema in self._schemas.items():
            slot, counts = self._table.slot(PublishSchema(name)), self._counts[name]
            if slot is None:
                continue
            for row in matches.rows_with(slot):
                if row in found:
                    continue
                counts[0] += 1
                reason = _reason(schema, batch, row)
                if reason is not None:
                    counts[1] += 1
                    found[row] = InvalidValue(
                        f"the message is not valid by the schema {name!r}: {reason}"
                    )
        return found

    def units(self, batch: MessageBatch) -> float:
        """What checking a batch may cost; 0 if no message of it can be asked for."""
        if not self.has_any or not self._may_ask(batch):
            return 0.0
        rows = batch.rows
        size = int((rows[:, PAYLOAD] - rows[:, TEXT]).sum())
        return batch.count * MESSAGE_UNITS + size / 1024 * KIB_UNITS

    def _may_ask(self, batch: MessageBatch) -> bool:
        """Are the names that some schema asks for in these bytes? `\\u` may write any name."""
        if self._needed is None:
            return True
        data = batch.data
        return b"\\u" in data or any(name in data for name in self._needed)

    def snapshot(self) -> dict[str, SchemaCounters]:
        return {name: SchemaCounters(*counts) for name, counts in self._counts.items()}


def _reason(schema: MessageSchema, batch: MessageBatch, row: int) -> str | None:
    try:
        reason = schema.check(batch.message(row))
    except InvalidValue as error:  # kernels have read it, Python cannot
        reason = str(error)
    if reason is None or len(reason) <= REASON_CHARACTERS:
        return reason
    return reason[: REASON_CHARACTERS - 3] + "..."


def _needed_name(found: Filter) -> bytes | None:
    """A name that is in the text of each message that a filter matches, as JSON writes it; None: no name
    is. Of a name with dots, or of an expression, the parts may stand apart."""
    for constraint in found:
        name = constraint.name
        if name.isascii() and name.isidentifier() and constraint.op is not Op.ABSENT:
            return name.encode()
    return None
