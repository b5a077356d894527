"""A link state on its way into the record of its broker.

    begin_change ──▶ StateChange: the record as it is ──run──▶ the record as it will be ──▶ end_change

`run` reads and changes nothing that others use, so another thread may do it; the database then replaces
the record at once, unless it has changed meanwhile. A small state is applied to the record itself.
"""

from __future__ import annotations

from palio.model.predicate import Filter
from palio.protocol.policies.broker_record import BrokerRecord, DurableFact, Parsed, RecordStatus
from palio.protocol.wire.control import LinkState


class StateChange:
    """`parsed` has the filters of all predicates in the state."""

    __slots__ = (
        "_now_us", "_status", "added", "before", "filters", "has_new_links", "parsed", "record",
        "removed", "state", "version",
    )  # fmt: skip

    def __init__(
        self,
        state: LinkState,
        parsed: Parsed,
        before: BrokerRecord | None,
        status: RecordStatus,
        now_us: int,
        *,
        in_place: bool,
    ) -> None:
        self.state, self.parsed, self.before = state, parsed, before
        self._status, self._now_us = status, now_us
        if before is None:
            self.version = (0, status)
            self.record = BrokerRecord(state.epoch, 0, status)
        else:
            self.version = (before.number, before.status)
            self.record = before if in_place else before.copy()
        self.removed: tuple[DurableFact, ...] = ()
        self.added: tuple[DurableFact, ...] = ()
        self.filters: dict[Filter, bool] = {}
        """New filters (True), and removed ones."""
        self.has_new_links = False

    def run(self) -> None:
        state, record = self.state, self.record
        added = {text: self.parsed[text] for text in state.wanted}
        removed = state.unwanted
        if not state.base:
            removed = tuple([text for text in record.wanted if text not in added])
        self.removed, self.added = record.update_durable(state, self.parsed)
        self.filters = record.update_wanted(removed, added)
        links = dict(state.links)
        self.has_new_links = (links, state.master) != (record.links, record.master)
        record.links, record.master, record.address = links, state.master, state.address
        record.epoch, record.number, record.status = state.epoch, state.number, self._status
        record.heard_us, record.memory = self._now_us, state.memory
