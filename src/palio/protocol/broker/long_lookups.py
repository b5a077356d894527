"""Messages that take long: to look up, because of expressions, or to check by schemas.

    a batch ─▶ would its lookup take longer than what is left of the turn? ─┬─ no ──▶ as ever
                                                                          └─ yes ─▶ parts; each: job, then as ever
    ... or the checks of it? the same without jobs: schemas.py

What arrives on the same link waits meanwhile, in order; other links do not. How long a lookup takes is
estimated from what the expressions of the table cost in the worst case (model/expression_costs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from palio.protocol.broker.effects import BackgroundJob
from palio.protocol.broker.scheduler import SLICE_UNITS, Item, Slices, TurnScheduler
from palio.protocol.broker.schemas import SchemaChecks
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.layout import PAYLOAD, TEXT
from palio.routing.interest_table import InterestTable

STEPS_PER_UNIT = 100
"""A step is about a microsecond, a unit of a turn about 0.1 ms."""
SHORT_UNITS = 50
"""A longer lookup is a job."""
JOB_STEPS = 50_000
"""Of a job, unless it is for a single message."""


class LongLookups:
    """`flush` processes the messages that were taken."""

    def __init__(
        self,
        table: InterestTable,
        schemas: SchemaChecks,
        flush: Callable[[], None],
        *,
        defers: bool,
    ) -> None:
        self._table, self._schemas, self._flush, self._defers = table, schemas, flush, defers

    def is_long(self, item: Item, scheduler: TurnScheduler) -> TypeGuard[MessageBatch]:
        """Is the lookup of an item to be a job? If not, the turn is charged with what it may cost."""
        if type(item) is not MessageBatch or not self._defers:
            return False
        units = self._units(item) + self._schemas.units(item)
        if units > min(SHORT_UNITS, max(scheduler.budget, 0)):
            return True
        scheduler.budget -= units
        return False

    def _units(self, batch: MessageBatch) -> float:
        rows = batch.rows
        size = int((rows[:, PAYLOAD] - rows[:, TEXT]).sum())
        return self._table.expressions.of(batch.count, size, batch.data) / STEPS_PER_UNIT

    def slices(self, batch: MessageBatch, take: Callable[[MessageBatch], None]) -> Slices:
        """Look up a batch in jobs, and take its messages as they are looked up and checked."""
        looked_up, checked = self._units(batch), self._schemas.units(batch)
        share = max(looked_up * STEPS_PER_UNIT / JOB_STEPS, checked / SLICE_UNITS)
        at_once = max(1, int(batch.count / max(share, 1)))
        for begin in range(0, batch.count, at_once):
            part = batch.slice(begin, min(begin + at_once, batch.count))
            if checked:
                yield max(0, int(self._schemas.units(part)) - SLICE_UNITS)
            if looked_up <= SHORT_UNITS:
                self._flush()
                take(part)
                self._flush()
                continue
            lookup = self._table.look_up_ahead(part)
            try:
                for compute in lookup.rounds():
                    job = BackgroundJob(compute)
                    yield job
                    lookup.note(job.result())
                self._flush()
                self._table.note_ahead(lookup)
                take(part)
                self._flush()
            finally:
                self._table.forget_ahead(lookup)
