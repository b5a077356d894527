"""The link-state database: what a broker knows of all brokers and links, by flooding.

    own links, filters, durable subscriptions ──news──▶ LinkState ──▶ all neighbours
    LinkState of a neighbour ──hear──▶ new: forward it │ known: drop it │ base missing: request it
    a link is established: Digest ──newer_than──▶ the states that the neighbour has not got

A large state is applied in three steps: `begin_change`, `StateChange.run` (in any thread), `end_change`.

Each broker floods its own state under increasing sequence numbers (own_state.py). A state is either
complete or the changes since the previous number; a broker that has not got that number requests the
complete state. The database has one record a broker (broker_record.py), which broker_records.py reads,
and computes the topology from their links (topology_map.py). A record that is not refreshed within `age_us` loses its links
and filters. Durable subscriptions do not age: their broker removes them, or an operator (`forget`).

Invariant: brokers that have received the last number of a broker have equal records of it, because
changes are applied to their base only and no number is used twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec

from palio.errors import InvalidTopology
from palio.model.predicate import Filter
from palio.protocol.policies.broker_record import (
    BrokerRecord,
    DurableFact,
    Parsed,
    RecordStatus,
    check_state,
    parse_all,
    record_change,
)
from palio.protocol.policies.broker_records import BrokerRecords, only_durable
from palio.protocol.policies.own_state import OwnState
from palio.protocol.policies.state_change import StateChange
from palio.protocol.wire.control import Durable, LinkState
from palio.protocol.wire.frames import BrokenFrame

_NUMBER_MAX = 1 << 62
AHEAD_US_MAX = 100 * 365 * 24 * 3600 * 1_000_000
"""How far ahead of the clock a number may be. A number is the time of its broker, or one more than what
somebody said of it: no honest clock is a century wrong, and whatever is accepted can be outnumbered, because
time goes on."""
_OWN_AHEAD_US = 60_000_000
"""What a broker outnumbers beyond that: others, whose clocks are ahead of its own, may have accepted it."""
BROKERS_MAX = 10_000
"""Brokers that a database takes; a neighbour may invent names."""
SMALL_RECORD = 256
"""Filters and durable subscriptions of a record that is replaced at once."""

FilterChanges: TypeAlias = dict[str, dict[Filter, bool]]
"""By broker: the filters that it wants since the last look (True), or no longer (False)."""


class LinkStateSettings(msgspec.Struct, frozen=True):
    refresh_us: int = 20_000_000
    """A broker floods its state at least this often."""
    age_us: int = 60_000_000
    """A record that is not refreshed for so long loses its links and filters."""


class Heard(NamedTuple):
    """What became of a link state that a neighbour sent."""

    is_new: bool = False
    """It was stored, and is to be forwarded to all other neighbours."""
    is_missing: bool = False
    """It has changes to a state that is not here: request the complete one."""
    removed: tuple[DurableFact, ...] = ()
    added: tuple[DurableFact, ...] = ()
    parsed: Parsed = MappingProxyType({})
    """Has the filters of the predicates in `added`."""
    refused: str = ""
    """Why it is not believed, though its form is valid: whoever forwarded it has done nothing wrong."""


class LinkStateDatabase(BrokerRecords):
    """The link-state database of one broker. Call `news` after each change and each `hear`.

    >>> ann, bob = (LinkStateDatabase(name, f"{name}'s disk", 0) for name in ("ann", "bob"))
    >>> ann.set_links({"bob": 1.0}); bob.set_links({"ann": 1.0}); bob.want(["x > 1"])
    >>> ann.hear(bob.news(1000), 1001).is_new
    True
    >>> ann.topology(), ann.wanted("bob")
    (Topology(2 nodes, 1 edges), Predicate(x > 1))
    """

    def __init__(
        self, me: str, epoch: str, number: int, settings: LinkStateSettings | None = None
    ) -> None:
        """Sequence numbers start above `number`: the last stored one or the current time, whichever
        is larger."""
        settings = settings or LinkStateSettings()
        self.version = 0
        """Grows whenever the links or filters of a broker change, or durable subscriptions here."""
        self._age_us = settings.age_us
        self.own = OwnState(me, epoch, number, settings.refresh_us)
        """What this broker announces; to be changed through the database only."""
        super().__init__(me, {me: self.own.record})
        self._next_age_us: int | None = None  # no record ages before
        self._followers: list[FilterChanges] = []

    # ---- the state of this broker

    def set_links(self, links: Mapping[str, float], master: str = "") -> None:
        """Set the neighbours, with the weights of the links to them, and which of them is the master."""
        if self.own.set_links(links, master):
            self._on_links_changed()

    def want(
        self,
        add: Iterable[str] = (),
        remove: Iterable[str] = (),
        parsed: Parsed = MappingProxyType({}),
    ) -> None:
        """Add and remove predicate texts that live subscriptions here amount to; `parsed` has the
        filters of texts that need not be parsed again."""
        if self.own.want(add, remove, parsed):
            self.version += 1

    def set_durable(
        self, name: str, durable: Durable | None, filters: tuple[Filter, ...] | None = None
    ) -> None:
        """Set a durable subscription whose home is this broker; None removes it. `filters`: of its
        predicate, if they are known."""
        self.own.set_durable(name, durable, filters)
        self.version += 1

    def news(self, now_us: int) -> LinkState | None:
        """The state of this broker to flood, if something has changed or a refresh is due."""
        return self.own.news(now_us)

    # ---- the states of other brokers

    def hear(self, state: LinkState, now_us: int) -> Heard:
        """Receive a complete state, or changes, from a neighbour. Raises BrokenFrame, and changes
        nothing, if the state is invalid."""
        heard = self.outdated(state, now_us)
        if heard is not None:
            return heard
        known = self.known_filters(state)
        parsed = known | parse_all(state, [t for t in texts_of(state) if t not in known])
        return self._apply(state, parsed, now_us)

    def outdated(self, state: LinkState, now_us: int) -> Heard | None:
        """What becomes of a state that changes nothing; None: it is newer than the record. Raises
        BrokenFrame if it is invalid; its predicates are not looked at."""
        if not state.broker or not 0 <= state.base < state.number <= _NUMBER_MAX:
            raise BrokenFrame(
                f"a link state of the broker {state.broker!r} has the number {state.number} "
                f"and the base {state.base}"
            )
        ahead_us = state.number - now_us - AHEAD_US_MAX
        if state.broker == self.me:
            if ahead_us > _OWN_AHEAD_US:
                return _too_far_ahead(state)
            self.own.outnumber(state)
            return Heard()
        record = self._records.get(state.broker)
        if record is not None and not record.is_older(state):
            return Heard()
        if ahead_us > 0:
            return _too_far_ahead(state)
        if record is None and len(self._records) >= BROKERS_MAX:
            return Heard(refused=f"{state.broker!r} is one broker more than {BROKERS_MAX:,}")
        if state.base and (record is None or not record.has_base(state)):
            return Heard(is_missing=True)
        check_state(state)
        return None

    def known_filters(self, state: LinkState) -> dict[str, tuple[Filter, ...]]:
        """The filters of those predicates in a state that need not be parsed."""
        record = self._records.get(state.broker)
        if record is None:
            return {}
        wanted = record.wanted
        known = {text: wanted[text] for text in state.wanted if text in wanted}
        for name, durable in state.durable.items():
            if record.durable.get(name) == durable:
                known[durable.predicate] = record.parsed[name]
        return known

    def is_small_change(self, state: LinkState) -> bool:
        """Whether a state can be applied at once: it replaces little."""
        record = self._records.get(state.broker)
        if state.base or record is None:
            return True
        return len(record.filters) + len(record.durable) <= SMALL_RECORD

    def begin_change(
        self, state: LinkState, parsed: Parsed, now_us: int, *, in_place: bool = False
    ) -> StateChange:
        """Prepare to apply a state that is not outdated; `parsed` has the filters of its predicates.
        `in_place`: run and end it at once, or not at all."""
        record = self._records.get(state.broker)
        status = RecordStatus.FACTS if state.is_faded else RecordStatus.LIVE
        return StateChange(state, parsed, record, status, now_us, in_place=in_place)

    def end_change(self, change: StateChange) -> Heard | None:
        """Apply a change that has run; None: the record has changed since it began."""
        broker, before, record = change.state.broker, change.before, change.record
        if record is not before and (
            self._records.get(broker) is not before
            or (before is not None and (before.number, before.status) != change.version)
        ):
            return None
        self._records[broker] = record
        self._tell_followers(broker, change.filters)
        if change.has_new_links:
            self._on_links_changed()
        if record.status is RecordStatus.LIVE:
            self._schedule_ageing(record)
        return Heard(True, False, change.removed, change.added, change.parsed)

    def restore(self, state: LinkState) -> None:
        """Take durable subscriptions from the store, as `facts` returned them, after a restart."""
        record = self._records.get(state.broker)
        if state.broker != self.me and (record is None or record.is_older(state)):
            facts = only_durable(state)
            self._apply(facts, parse_all(facts, texts_of(facts)), 0)

    def forget(self, broker: str, now_us: int) -> tuple[LinkState, tuple[DurableFact, ...]]:
        """Remove the durable subscriptions of a broker that will not return.

        Returns the state to flood and what it removes. If the broker does return, it announces its
        subscriptions under a larger number. Raises InvalidTopology if the broker is not known, or
        reachable.
        """
        record = self._records.get(broker)
        if record is None or self.reachable(broker):
            why = "no broker has this name"
            if record is not None:
                why = "it is reachable; end its durable subscriptions there"
            raise InvalidTopology(f"the broker {broker!r} cannot be forgotten: {why}")
        number = max(record.number + 1, now_us)
        state = LinkState(broker, record.epoch, number, 0, (), is_faded=True)
        return state, self._apply(state, {}, now_us).removed

    def wake(self, now_us: int, missed_us: int = 0) -> None:
        """Age the records that were not refreshed for too long. `missed_us`: this broker has not
        listened for so long until now, and no record ages because of that."""
        if missed_us:
            for record in self._records.values():
                record.heard_us = min(now_us, record.heard_us + missed_us)
        if self._next_age_us is None or now_us < self._next_age_us:
            return
        self._next_age_us = None
        for broker, record in self._records.items():
            if record.status is not RecordStatus.LIVE or broker == self.me:
                continue
            if now_us < record.heard_us + self._age_us:
                self._schedule_ageing(record)
                continue
            self._tell_followers(broker, record.age())
            self._on_links_changed()

    @property
    def deadline_us(self) -> int:
        """When to call `wake` and `news` next."""
        news_us = self.own.deadline_us
        return news_us if self._next_age_us is None else min(news_us, self._next_age_us)

    # ---- followers

    def follow(self) -> FilterChanges:
        """The filters of all other brokers. The database adds every later change of them to the
        returned dict; the caller clears it."""
        changes = {
            broker: dict.fromkeys(record.filters, True)
            for broker, record in self._records.items()
            if record.filters and broker != self.me
        }
        self._followers.append(changes)
        return changes

    # ---- changes of records

    def _apply(self, state: LinkState, parsed: Parsed, now_us: int) -> Heard:
        """Apply a state that is newer, at once."""
        change = self.begin_change(state, parsed, now_us, in_place=True)
        change.run()
        heard = self.end_change(change)
        assert heard is not None
        return heard

    def _schedule_ageing(self, record: BrokerRecord) -> None:
        age_us = record.heard_us + self._age_us
        self._next_age_us = age_us if self._next_age_us is None else min(self._next_age_us, age_us)

    def _tell_followers(self, broker: str, changes: dict[Filter, bool]) -> None:
        """The filters of another broker have changed."""
        if not changes:
            return
        self.version += 1
        for follower in self._followers:
            pending = follower.get(broker)
            if not pending:
                follower[broker] = changes.copy()
                continue
            for found, is_wanted in changes.items():
                record_change(pending, found, is_wanted)

    def _on_links_changed(self) -> None:
        self._map.invalidate()
        self.version += 1


def texts_of(state: LinkState) -> Iterator[str]:
    """The predicates in a state."""
    yield from state.wanted
    for durable in state.durable.values():
        yield durable.predicate


def _too_far_ahead(state: LinkState) -> Heard:
    return Heard(
        refused=f"a link state of the broker {state.broker!r} has the number {state.number}, which is a "
        "time more than a century ahead"
    )
