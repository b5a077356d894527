"""Durable subscriptions that live at other brokers: the client follows to where they live.

    subscribe, durable="work@milan" ──▶ rome: LivesElsewhere(milan, address) ──▶ a second connection, to milan

One more connection for each such broker, with the same token, as long as the client is open. A client
with TLS follows to addresses with TLS only: its token does not travel in the clear because a broker says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from palio.errors import InvalidValue, LivesElsewhere, NetworkError
from palio.net.client.address import parse_addresses
from palio.net.client.feeds import Feeds


class HomeBrokers:
    """`again` makes a client of the broker at a URL, as this one was made."""

    def __init__(self, again: Callable[[str], Any], *, is_secure: bool) -> None:
        self._again = again
        self._is_secure = is_secure
        self._clients: dict[str, Any] = {}

    async def feeds(self, error: LivesElsewhere) -> Feeds:
        """What subscriptions use at the broker that the error names; raises the error if this client
        does not get there."""
        client = self._clients.get(error.broker)
        if client is None:
            client = self._clients[error.broker] = self._again(self._checked(error))
        try:
            await client.open()
        except NetworkError as reason:
            del self._clients[error.broker]
            raise error from reason
        feeds: Feeds = client.feeds
        return feeds

    def _checked(self, error: LivesElsewhere) -> str:
        try:
            addresses = parse_addresses(error.address)
        except InvalidValue as reason:  # none, or not one of this version
            raise error from reason
        if self._is_secure and not all(address.is_secure for address in addresses):
            raise error
        return error.address

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        await asyncio.gather(*(client.close() for client in clients.values()))


def name_and_home(durable: str) -> tuple[str, str]:
    """The name of a durable subscription, and the broker where it lives; empty: where the client is.

    >>> name_and_home("work@milan"), name_and_home("work")
    (('work', 'milan'), ('work', ''))
    """
    name, _, home = durable.rpartition("@")
    return (name, home) if name and home else (durable, "")
