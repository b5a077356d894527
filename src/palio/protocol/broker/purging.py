"""Deletes what is in a queue, in slices, so that no turn takes long however much that is (scheduler.py)."""

from __future__ import annotations

from collections.abc import Generator

from palio.protocol.broker.durable import HomeSubscriptions
from palio.protocol.durability.administration import QueueAdministration

_AT_ONCE = 2000
"""Messages: a slice."""


def purged(
    home: HomeSubscriptions, administration: QueueAdministration, key: str
) -> Generator[None, None, int]:
    """Delete what is in a queue now. Returns how many messages were deleted."""
    version, last, total = home.version(key), administration.last_number(key), 0
    while count := administration.purge(key, last, _AT_ONCE):
        total += count
        if count < _AT_ONCE:
            break
        yield None
        if home.version(key) != version:  # it has ended meanwhile
            break
    return total
