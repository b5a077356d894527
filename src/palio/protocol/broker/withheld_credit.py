"""Credit that is withheld from a client for a while: its connection is congested, or its subscriptions
have not been compared with new grants yet.

It is taken from what delivers live messages and from the store alike, and given back later, so messages
wait in their queues meanwhile and no other code has to know why. Only the consumers of durable
subscriptions are looked at one by one: a client may have 100,000 others.
"""

from __future__ import annotations

from collections.abc import Collection

from palio.protocol.broker.durable import Consumer
from palio.protocol.broker.last_value_feeds import LastValueFeeds
from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.subscriber import WITHHELD
from palio.protocol.durability.message_store import MessageStore


class WithheldCredit:
    def __init__(
        self, local: LocalDelivery, store: MessageStore, last_values: LastValueFeeds
    ) -> None:
        self._local, self._store, self._last_values = local, store, last_values
        self._reasons: dict[int, int] = {}
        """By link: for how many reasons its credit is withheld, if for any."""
        self._consumers: dict[int, dict[Consumer, None]] = {}
        """By link: the consumers of durable subscriptions."""

    def of(self, link: int) -> int:
        """What each subscription of a link has less now."""
        return WITHHELD if link in self._reasons else 0

    def add(self, consumer: Consumer) -> None:
        """A consumer of a durable subscription has been attached to the store."""
        self._consumers.setdefault(consumer.link, {})[consumer] = None
        if consumer.link in self._reasons:
            self._store.grant_credit(consumer, -WITHHELD)

    def remove(self, consumer: Consumer) -> None:
        """A consumer is detached."""
        self._consumers.get(consumer.link, {}).pop(consumer, None)

    def leave(self, link: int) -> None:
        """The client of a link has left: it gets nothing while its subscriptions are removed."""
        if link not in self._reasons:
            self.withhold([link])
        del self._reasons[link]
        self._consumers.pop(link, None)
        self._local.leave(link)

    def withhold(self, links: Collection[int]) -> None:
        """Withhold the credit of these links, for one more reason each."""
        new = [link for link in links if link not in self._reasons]
        for link in links:
            self._reasons[link] = self._reasons.get(link, 0) + 1
        if new:
            self._local.withhold(new)
        for link in new:
            for consumer in self._consumers.get(link, ()):
                self._store.grant_credit(consumer, -WITHHELD)

    def release(self, links: Collection[int]) -> None:
        """A reason is over for each of these links; after its last one the credit is given back."""
        free: list[int] = []
        for link in links:
            left = self._reasons.get(link, 0) - 1  # -1: its client has left
            if left > 0:
                self._reasons[link] = left
            elif left == 0:
                del self._reasons[link]
                free.append(link)
        if free:
            self._local.release(free)
            self._last_values.released(free)
        for link in free:
            for consumer in self._consumers.get(link, ()):
                self._store.grant_credit(consumer, WITHHELD)
