"""Counters of a message store since its start, and its current sizes."""

from __future__ import annotations

import msgspec


class StoreCounters(msgspec.Struct):
    """Totals since start."""

    published: int = 0
    duplicates: int = 0
    """Messages of publishers and streams that were stored already."""
    arrived: int = 0
    delivered: int = 0
    redelivered: int = 0
    acknowledged: int = 0
    returned: int = 0
    """Messages that clients gave back (nack)."""
    carried: int = 0
    retries: int = 0
    dropped: int = 0
    """By the policy `drop`."""
    expired: int = 0
    """Messages removed from queues because their time was over."""
    ended: int = 0
    """By the policy `end`."""
    unreadable: int = 0
    """Messages that a replay skipped because they cannot be parsed."""
    replayed: int = 0
    """Steps through the journal for new subscriptions."""


class RepublishedCounters(msgspec.Struct):
    """Totals since start of what was published anew (republishing.py)."""

    rejected: int = 0
    """Messages that clients will never process (reject)."""
    dead: int = 0
    """Dead letters that were published."""
    dead_dropped: int = 0
    """Dead letters that died again."""
    delayed: int = 0
    """Delayed messages that were published at their time."""


class StoreStatistics(msgspec.Struct, frozen=True):
    """The counters, and the current sizes."""

    counters: StoreCounters
    messages: int
    bytes: int
    """Of the journal."""
    publishers: int
    backlogs: dict[str, int]
    """Messages that wait for a broker."""
    queues: dict[str, int]
    """Messages that wait for a subscription."""
    consumers: int
    commits: int
    """In flight."""
