"""The subscriptions of clients that have left, until their turn to be removed comes.

    leave(link) ──▶ subscriptions of the link ──▶ removed in slices      all of one client
    join a group, or a durable subscription ──▶ members that have left   removed before anybody joins

They get no messages meanwhile (withheld_credit.py, local.py). A client may have 100,000, so leaving looks
at none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

from palio.protocol.broker.client_subscription import ClientSubscription
from palio.protocol.interfaces import SharedSubscription

SharedName: TypeAlias = str | SharedSubscription
"""Of what several clients may take part in: a durable subscription (its key), or a live group."""


class LeavingClients:
    def __init__(self) -> None:
        self._members: dict[SharedName, dict[int, dict[int, ClientSubscription]]] = {}
        """By link and id; also those of clients that are here."""
        self._left: dict[int, dict[int, ClientSubscription]] = {}
        """By link and id: what is not removed yet."""

    def add(self, one: ClientSubscription) -> None:
        """A client has subscribed."""
        shared = _shared(one)
        if shared is not None:
            self._members.setdefault(shared, {}).setdefault(one.link, {})[one.id] = one

    def remove(self, one: ClientSubscription) -> None:
        """A subscription is removed."""
        self._left.get(one.link, {}).pop(one.id, None)
        shared = _shared(one)
        if shared is None:
            return
        links = self._members[shared]
        del links[one.link][one.id]
        if not links[one.link]:
            del links[one.link]
        if not links:
            del self._members[shared]

    def leave(self, link: int, subscriptions: dict[int, ClientSubscription]) -> None:
        """The client of a link has left."""
        self._left[link] = subscriptions

    def of(self, link: int) -> Iterator[ClientSubscription]:
        """What is to be removed of a client that has left: first what has a predicate."""
        left = self._left[link]
        for is_pattern in (False, True):
            for one in [one for one in left.values() if (one.pattern is not None) is is_pattern]:
                if left.get(one.id) is one:
                    yield one
        del self._left[link]

    def members(self, shared: SharedName, count_max: int) -> list[ClientSubscription]:
        """Some that take part in something shared, and whose client has left."""
        links = self._members.get(shared, {})
        left = (one for link in links if link in self._left for one in links[link].values())
        return list(islice(left, count_max))


def _shared(one: ClientSubscription) -> SharedName | None:
    return one.durable or one.shared
