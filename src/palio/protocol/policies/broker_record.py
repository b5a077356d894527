"""Broker records: what the link-state database holds about one broker.

    status
    LIVE     links, filters and durable subscriptions   ──not refreshed within age_us──▶ AGED
    FACTS    durable subscriptions only: read from the store, or sent by a broker that knew no more
    AGED     durable subscriptions only; the sequence number counts as used

A link state replaces the record when its sequence number is larger. An equal number is accepted only
when the record has status FACTS and the state is complete. An aged record needs a larger number:
otherwise two brokers could keep a dead broker alive by exchanging its last state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from palio.errors import InvalidPredicate
from palio.model.language import parse
from palio.model.predicate import Filter
from palio.protocol.wire.control import Durable, LinkState
from palio.protocol.wire.frames import BrokenFrame
from palio.protocol.wire.handshake import Unwelcome, check_name
from palio.protocol.wire.routing_memory import RoutingMemory

WEIGHT_MIN, WEIGHT_MAX = 0.001, 1_000_000.0  # the sum over a million such links is still exact
ADDRESS_MAX = 1000
"""Characters of the address of a broker."""
SCHEME_MAX = 64
"""Characters in the name of a routing policy."""
FILTERS_MAX = 1 << 16
"""Of one predicate of a broker; so many are accepted from others, too."""

Parsed: TypeAlias = Mapping[str, tuple[Filter, ...]]
"""Predicate texts and their filters."""


class DurableFact(NamedTuple):
    """A durable subscription and its home broker."""

    broker: str
    name: str
    durable: Durable


class RecordStatus(Enum):
    LIVE = auto()
    FACTS = auto()
    AGED = auto()


class BrokerRecord:
    """The record of one broker. The link-state database owns it and changes it."""

    __slots__ = (
        "address", "durable", "epoch", "filters", "heard_us", "links", "master", "memory", "number", "parsed",
        "status", "text_bytes", "wanted",
    )  # fmt: skip

    def __init__(self, epoch: str, number: int, status: RecordStatus) -> None:
        self.epoch, self.number, self.status = epoch, number, status
        self.heard_us = 0
        self.links: dict[str, float] = {}
        self.master = ""  # among the links
        self.address = ""
        self.wanted: dict[str, tuple[Filter, ...]] = {}  # predicate text -> its filters
        self.filters: dict[Filter, int] = {}  # filter -> number of texts that contain it
        self.text_bytes = 0
        """Of the predicate texts."""
        self.memory: RoutingMemory | None = None
        self.durable: dict[str, Durable] = {}
        self.parsed: dict[str, tuple[Filter, ...]] = {}  # of durable subscriptions, by their names

    def copy(self) -> BrokerRecord:
        """Another record with the same content."""
        made = BrokerRecord(self.epoch, self.number, self.status)
        made.heard_us, made.links, made.master = self.heard_us, self.links, self.master
        made.wanted, made.filters = self.wanted.copy(), self.filters.copy()
        made.durable, made.parsed = self.durable.copy(), self.parsed.copy()
        made.text_bytes, made.memory = self.text_bytes, self.memory
        made.address = self.address
        return made

    def is_older(self, state: LinkState) -> bool:
        """Whether the state is newer than this record, or completes it."""
        theirs, ours = (state.number, state.epoch), (self.number, self.epoch)
        completes = self.status is RecordStatus.FACTS and not state.is_faded
        return theirs > ours or (theirs == ours and completes)

    def has_base(self, state: LinkState) -> bool:
        """Whether this record is the one that an incremental state starts from."""
        is_same = (self.number, self.epoch) == (state.base, state.epoch)
        return is_same and self.status is RecordStatus.LIVE

    def update_wanted(self, removed: Iterable[str], added: Parsed) -> dict[Filter, bool]:
        """Remove and add predicate texts. Return the filters that are wanted now and were not
        (True), and those that no text contains any more (False)."""
        changes: dict[Filter, bool] = {}
        for text in removed:
            if text not in self.wanted:
                continue
            self.text_bytes -= len(text.encode())
            for found in self.wanted.pop(text):
                self.filters[found] -= 1
                if not self.filters[found]:
                    del self.filters[found]
                    record_change(changes, found, False)
        for text, filters in added.items():
            if text in self.wanted:
                continue
            self.wanted[text] = filters
            self.text_bytes += len(text.encode())
            for found in filters:
                self.filters[found] = self.filters.get(found, 0) + 1
                if self.filters[found] == 1:
                    record_change(changes, found, True)
        return changes

    def update_durable(
        self, state: LinkState, parsed: Parsed
    ) -> tuple[tuple[DurableFact, ...], tuple[DurableFact, ...]]:
        """Apply the durable subscriptions of a newer state. Return those removed and those added;
        a changed one is in both."""
        broker, told = state.broker, state.durable
        if self.epoch != state.epoch:  # the broker has a new disk: nothing of the old one is valid
            names = list(self.durable)
        elif state.base:
            names = [name for name in state.undurable if name in self.durable]
        else:
            names = [name for name in self.durable if name not in told]
        removed = [DurableFact(broker, name, self.durable.pop(name)) for name in names]
        new = {name: durable for name, durable in told.items() if self.durable.get(name) != durable}
        changed = [name for name in new if name in self.durable]
        removed += [DurableFact(broker, name, self.durable[name]) for name in changed]
        self.durable.update(new)
        for name in names:
            self.parsed.pop(name, None)
        self.parsed.update({name: parsed[durable.predicate] for name, durable in new.items()})
        return tuple(removed), tuple(DurableFact(broker, *entry) for entry in new.items())

    def link_state(self, broker: str) -> LinkState:
        """The complete link state that this record amounts to."""
        return LinkState(
            *(broker, self.epoch, self.number, 0, tuple(self.links.items())),
            wanted=tuple(self.wanted),
            durable=dict(self.durable),
            is_faded=self.status is not RecordStatus.LIVE,
            memory=self.memory,
            master=self.master,
            address=self.address,
        )

    def age(self) -> dict[Filter, bool]:
        """Keep the durable subscriptions alone. Returns the filters that are gone."""
        gone = dict.fromkeys(self.filters, False)
        self.status, self.links, self.master = RecordStatus.AGED, {}, ""
        self.memory = None
        self.wanted, self.filters, self.text_bytes = {}, {}, 0
        return gone


def check_state(state: LinkState) -> None:
    """Raise BrokenFrame if a name, a link or the combination of fields is invalid."""
    try:
        check_name("a broker", state.broker)
        if len(state.address) > ADDRESS_MAX or not (state.address or " ").isprintable():
            raise Unwelcome(f"the address of broker {state.broker!r} is not printable, or too long")
        for neighbour, _ in state.links:
            check_name("a broker", neighbour)
    except Unwelcome as error:
        raise BrokenFrame(f"{_place(state)}: {error}") from None
    if state.is_faded and (state.base or state.links or state.wanted):
        raise BrokenFrame(
            f"{_place(state)} is marked as durable subscriptions only, but has links, filters or a base"
        )
    if state.base and (state.part or state.more):
        raise BrokenFrame(f"{_place(state)} has changes in parts; only a complete state has parts")
    if state.memory is not None and len(state.memory.scheme) > SCHEME_MAX:
        raise BrokenFrame(
            f"{_place(state)} names a routing policy of more than {SCHEME_MAX} letters"
        )
    for neighbour, weight in state.links:
        if neighbour == state.broker or not WEIGHT_MIN <= weight <= WEIGHT_MAX:
            raise BrokenFrame(f"{_place(state)} has a link to {neighbour!r} of weight {weight!r}")


def parse_all(state: LinkState, texts: Iterable[str]) -> dict[str, tuple[Filter, ...]]:
    """The filters of predicates in a state. Raises BrokenFrame if one is invalid."""
    try:
        return {text: filters_of(text) for text in texts}
    except InvalidPredicate as error:
        raise invalid_predicate(state, error) from None


def invalid_predicate(state: LinkState, error: InvalidPredicate) -> BrokenFrame:
    """The error for a predicate in a state that cannot be parsed."""
    return BrokenFrame(f"{_place(state)}: {error}")


def filters_of(text: str) -> tuple[Filter, ...]:
    """The filters of a predicate text that a broker sent."""
    return parse(text, limit=FILTERS_MAX).filters


def _place(state: LinkState) -> str:
    return f"the link state of the broker {state.broker!r}"


def record_change(changes: dict[Filter, bool], found: Filter, is_wanted: bool) -> None:
    """Note that a filter was added or removed. The two cancel each other out."""
    if changes.pop(found, is_wanted) is is_wanted:
        changes[found] = is_wanted
