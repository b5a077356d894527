"""The durable subscriptions whose home is another broker. Messages published here are stored here
and carried there.

    Heard: removed, added ──▶ changes, by broker ──▶ interests, message store, known facts

Many changes are applied in slices, one after the other; those of a predicate with very many filters are
added in several. The message store learns of a subscription when all its filters are there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from palio.model.predicate import Filter, Predicate
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.last_value_exchange import LastValueExchange
from palio.protocol.broker.replay_matching import matching
from palio.protocol.broker.scheduler import Slices, WorkList, in_slices
from palio.protocol.broker.stored_facts import StoredFacts
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.policies.broker_record import DurableFact
from palio.protocol.policies.link_state import Heard, LinkStateDatabase

AT_ONCE = 8
"""Subscriptions of one slice."""
FILTERS_AT_ONCE = 256
"""Filters of one slice, about."""


class RemoteSubscriptions:
    """`now_us` returns the current time."""

    def __init__(
        self,
        store: MessageStore,
        interests: Interests,
        database: LinkStateDatabase,
        known: StoredFacts,
        last_values: LastValueExchange,
        work: WorkList,
        now_us: Callable[[], int],
    ) -> None:
        self._last_values = last_values
        self._store = store
        self._interests = interests
        self._database = database
        self._known = known
        self._work, self._now_us = work, now_us
        self._changes: dict[str, deque[tuple[DurableFact, tuple[Filter, ...] | None]]] = {}
        """By broker: what is not applied yet; with the filters of an added one."""

    def restore(self) -> None:
        """Re-register what is stored."""
        for state in self._known.states():
            self._database.restore(state)
        for fact in self._database.durables():
            if fact.broker != self._database.me:
                self._learn(fact, self._database.durable_filters(fact))

    def change(self, broker: str, heard: Heard) -> None:
        """Apply the durable subscriptions of a link state, now or in slices."""
        is_idle = not self._changes
        changes = self._changes.setdefault(broker, deque())
        changes += [(fact, None) for fact in heard.removed]
        changes += [(fact, heard.parsed[fact.durable.predicate]) for fact in heard.added]
        if not is_idle:
            return
        slices = self._apply()
        filters = sum([len(filters) for _, filters in changes if filters is not None])
        if len(changes) > AT_ONCE or filters > FILTERS_AT_ONCE:
            self._work.add(slices)
            return
        for _ in slices:
            pass

    def _apply(self) -> Slices:
        left = AT_ONCE
        while self._changes:
            broker, changes = next(iter(self._changes.items()))
            self._known.begin(broker, self._database.facts(broker).epoch)
            while changes:
                fact, filters = changes[0]
                if filters is None:
                    self._forget(fact)
                else:
                    yield from self._enter(fact, filters)
                    self._learn(fact, filters)
                    self._known.add(fact)
                changes.popleft()
                left -= 1 + len(filters or ()) // 32
                if left <= 0 and changes:
                    left = AT_ONCE
                    yield None
            del self._changes[broker]
            self._known.finish(self._database.facts(broker))

    def _enter(self, fact: DurableFact, filters: tuple[Filter, ...]) -> Slices:
        """Add the filters of a large predicate."""
        interface = DurableSubscription(fact.broker, fact.name)
        if len(filters) <= FILTERS_AT_ONCE:
            return
        self._interests.remove_durable(interface)
        for part in in_slices(list(dict.fromkeys(filters)), FILTERS_AT_ONCE):
            self._interests.extend_durable(interface, part)
            yield None

    def _forget(self, fact: DurableFact) -> None:
        self._interests.remove_durable(DurableSubscription(fact.broker, fact.name))
        self._store.unlearn(fact.broker, fact.name, self._now_us())
        self._known.remove(fact)
        self._last_values.forget(fact)

    def _learn(self, fact: DurableFact, filters: tuple[Filter, ...]) -> None:
        """Store messages for this subscription from now on."""
        predicate = Predicate(filters)
        self._interests.add_durable(DurableSubscription(fact.broker, fact.name), predicate)
        self._store.learn(fact.broker, fact.name, fact.durable, matching(predicate), self._now_us())
        self._last_values.learn(fact)
