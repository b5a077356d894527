"""The durable subscriptions whose home is another broker. Messages published here are stored here
and carried there."""

from __future__ import annotations

from palio.model.language import parse
from palio.protocol.broker.durable import matching
from palio.protocol.broker.interests import Interests
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.policies.broker_record import DurableFact, DurableNews


class RemoteSubscriptions:
    def __init__(self, store: MessageStore, interests: Interests) -> None:
        self._store = store
        self._interests = interests

    def change(self, news: DurableNews, now_us: int) -> None:
        for fact, is_added in news:
            if is_added:
                self.learn(fact, now_us)
            else:
                self._interests.remove_durable(DurableSubscription(fact.broker, fact.name))
                self._store.unlearn(fact.broker, fact.name, now_us)

    def learn(self, fact: DurableFact, now_us: int) -> None:
        """Store messages for this subscription from now on."""
        predicate = parse(fact.durable.predicate)
        self._interests.add_durable(DurableSubscription(fact.broker, fact.name), predicate)
        self._store.learn(fact.broker, fact.name, fact.durable, matching(predicate), now_us)
