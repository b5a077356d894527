"""Credit that is withheld from subscriptions which get no messages for now (`ClientSubscription.withheld`).

It is taken from what delivers live messages and from the store alike, and given back later, so messages
wait in their queues meanwhile and no other code has to know why.
"""

from __future__ import annotations

from palio.protocol.broker.client_subscription import ClientSubscription
from palio.protocol.broker.durable import Consumer
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.durability.message_store import MessageStore


class WithheldCredit:
    def __init__(self, local: LocalDelivery, store: MessageStore) -> None:
        self._local, self._store = local, store

    def follow(self, one: ClientSubscription, withheld_before: int) -> None:
        """Take credit, or give it back, after a change of what is withheld."""
        change = withheld_before - one.withheld
        if change:
            self._local.grant_credit(one.link, one.id, change)
            self._store.grant_credit(Consumer(one.link, one.id), change)
