"""What a broker announces about itself, and when it floods it.

    set_links, want, set_durable ──▶ pending changes ──news──▶ LinkState, under the next number

Normally `news` returns only the changes since the previous sequence number. It returns the complete
state at first, when the changes would be larger, and when the network remembers a larger number from
an earlier life of this broker (`outnumber`).

Each sequence number is used once and is larger than all before. It is the current time where
possible, so a broker that restarts with an old store does not reuse a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from palio.errors import InvalidTopology
from palio.model.predicate import Filter
from palio.protocol.policies.broker_record import (
    WEIGHT_MAX,
    WEIGHT_MIN,
    BrokerRecord,
    RecordStatus,
    filters_of,
)
from palio.protocol.wire.control import Durable, LinkState
from palio.protocol.wire.routing_memory import RoutingMemory

_OUTNUMBER_US = 1_000_000  # pause between two complete states that answer a larger number


class OwnState:
    """The record of this broker, and which of its changes are not flooded yet."""

    def __init__(self, me: str, epoch: str, number: int, refresh_us: int) -> None:
        self.record = BrokerRecord(epoch, 0, RecordStatus.LIVE)
        self._me = me
        self._number = number
        self._refresh_us = refresh_us
        self._flooded_us: int | None = None
        self._complete_us: int | None = 0  # when the complete state is due; None: it is not
        self._has_new_links = False
        self._wanted_changes: dict[str, bool] = {}  # since the last flooded number
        self._durable_changes: dict[str, Durable | None] = {}
        self.due_us = 0
        """When `news` returns a state; 0: something has changed."""
        self.memory_now: Callable[[], RoutingMemory | None] = lambda: None
        """What this broker holds to route messages, now."""

    def set_links(self, links: Mapping[str, float], master: str = "") -> bool:
        """Replace the links, and the master among them; returns whether they differ from before."""
        for neighbour, weight in links.items():
            if neighbour == self._me or not WEIGHT_MIN <= weight <= WEIGHT_MAX:
                raise InvalidTopology(
                    f"a link from {self._me!r} to {neighbour!r} of weight {weight!r}; a link must "
                    f"lead to another broker and weigh {WEIGHT_MIN} to {WEIGHT_MAX:,.0f}"
                )
        if (self.record.links, self.record.master) == (links, master):
            return False
        self.record.links, self.record.master = dict(links), master
        self._has_new_links = True
        self.due_us = 0
        return True

    def want(
        self,
        add: Iterable[str],
        remove: Iterable[str],
        parsed: Mapping[str, tuple[Filter, ...]] = MappingProxyType({}),
    ) -> dict[Filter, bool]:
        """Change the predicate texts of live subscriptions; returns the filters that changed. `parsed`
        has the filters of texts that need not be parsed again."""
        wanted = self.record.wanted
        removed = [text for text in dict.fromkeys(remove) if text in wanted]
        gone = set(removed)
        added = {
            text: parsed.get(text) or filters_of(text)
            for text in add
            if text not in wanted or text in gone
        }
        # A text that is added and removed between two floods is still flooded as removed: a new
        # neighbour may have received the complete state in between.
        self._wanted_changes.update(dict.fromkeys(removed, False))
        self._wanted_changes.update(dict.fromkeys(added, True))
        if self._wanted_changes:
            self.due_us = 0
        return self.record.update_wanted(removed, added)

    def set_durable(
        self, name: str, durable: Durable | None, filters: tuple[Filter, ...] | None = None
    ) -> None:
        """Set a durable subscription of this broker, whose predicate is valid; None removes it."""
        known, parsed = self.record.durable, self.record.parsed
        if known.get(name) == durable:
            return
        if durable is None:
            del known[name], parsed[name]
        else:
            known[name] = durable
            parsed[name] = filters_of(durable.predicate) if filters is None else filters
        self._durable_changes[name] = durable
        self.due_us = 0

    def news(self, now_us: int) -> LinkState | None:
        """The state to flood, if something has changed or a refresh is due."""
        if now_us < self.due_us:
            return None
        changes = len(self._wanted_changes) + len(self._durable_changes)
        record = self.record
        base = record.number
        self._number = record.number = max(self._number + 1, now_us)
        record.memory = self.memory_now()
        is_complete = self._complete_us is not None
        if is_complete or changes > len(record.wanted) + len(record.durable):
            state = record.link_state(self._me)
        else:
            state = self._changes_since(base)
        self._flooded_us, self._complete_us, self._has_new_links = now_us, None, False
        self._wanted_changes, self._durable_changes = {}, {}
        self.due_us = self.deadline_us
        return state

    def _changes_since(self, base: int) -> LinkState:
        wanted, durable, record = self._wanted_changes, self._durable_changes, self.record
        return LinkState(
            *(self._me, record.epoch, record.number, base, tuple(record.links.items())),
            wanted=tuple(text for text, is_wanted in wanted.items() if is_wanted),
            unwanted=tuple(text for text, is_wanted in wanted.items() if not is_wanted),
            durable={name: one for name, one in durable.items() if one is not None},
            undurable=tuple(name for name, one in durable.items() if one is None),
            memory=record.memory,
            master=record.master,
            address=record.address,
        )

    def outnumber(self, state: LinkState) -> None:
        """Take note of a state of this broker that came from a neighbour.

        If it is newer than the record, it stems from an earlier life of this broker: the complete
        state is due, under a larger number. It waits a second after the last flood, so that two
        brokers that were given the same name do not flood the network in turns.
        """
        if (state.number, state.epoch) > (self.record.number, self.record.epoch):
            self._number = max(self._number, state.number)
            last_us = self._flooded_us
            self._complete_us = 0 if last_us is None else last_us + _OUTNUMBER_US
            self.due_us = min(self.due_us, self._complete_us)

    @property
    def deadline_us(self) -> int:
        """When `news` returns a state even if nothing changes."""
        refresh_us = (self._flooded_us or 0) + self._refresh_us
        return refresh_us if self._complete_us is None else min(self._complete_us, refresh_us)
