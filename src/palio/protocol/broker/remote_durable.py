"""The durable subscriptions whose home is another broker. Messages published here are stored here
and carried there.

    Heard: removed, added ──▶ what is to be done, by broker ──▶ interests, message store ──▶ known/<broker>

Many changes are applied in slices. The store gets the facts of a broker (`known/<broker>`) when all its
changes are applied: after a crash in between, the broker's next complete state has the same changes again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from palio.model.predicate import Filter, Predicate
from palio.protocol.broker.durable import matching
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.scheduler import Slices, WorkList
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.policies.broker_record import DurableFact
from palio.protocol.policies.link_state import Heard

AT_ONCE = 8
"""Subscriptions of one slice."""
_FILTERS_AT_ONCE = 256
"""Filters of one slice, if it has several subscriptions."""


class RemoteSubscriptions:
    """`keep` writes the facts of a broker to the store."""

    def __init__(
        self,
        store: MessageStore,
        interests: Interests,
        work: WorkList,
        now_us: Callable[[], int],
        keep: Callable[[str], None],
    ) -> None:
        self._store = store
        self._interests = interests
        self._work, self._now_us, self._keep = work, now_us, keep
        self._changes: dict[str, deque[tuple[DurableFact, tuple[Filter, ...] | None]]] = {}
        """By broker: what is not applied yet; with the filters of an added one."""

    def change(self, broker: str, heard: Heard) -> None:
        """Apply the durable subscriptions of a link state, now or in slices."""
        is_idle = not self._changes
        changes = self._changes.setdefault(broker, deque())
        changes += [(fact, None) for fact in heard.removed]
        changes += [(fact, heard.parsed[fact.durable.predicate]) for fact in heard.added]
        if is_idle and not self._apply_some():
            self._work.add(self._apply_in_slices())

    def _apply_in_slices(self) -> Slices:
        yield None
        while not self._apply_some():
            yield None

    def _apply_some(self) -> bool:
        """Apply one slice; True: nothing is left."""
        left, count = _FILTERS_AT_ONCE, 0
        while self._changes and left > 0 and count < AT_ONCE:
            broker, changes = next(iter(self._changes.items()))
            fact, filters = changes.popleft()
            count += 1
            if filters is None:
                self._interests.remove_durable(DurableSubscription(fact.broker, fact.name))
                self._store.unlearn(fact.broker, fact.name, self._now_us())
            else:
                left -= len(filters)
                self.learn(fact, filters)
            if not changes:
                del self._changes[broker]
                self._keep(broker)
        return not self._changes

    def learn(self, fact: DurableFact, filters: tuple[Filter, ...]) -> None:
        """Store messages for this subscription from now on."""
        predicate = Predicate(filters)
        self._interests.add_durable(DurableSubscription(fact.broker, fact.name), predicate)
        self._store.learn(fact.broker, fact.name, fact.durable, matching(predicate), self._now_us())
