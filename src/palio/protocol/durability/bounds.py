"""The bounds of a message store, in messages, bytes and time (message_store.py)."""

from __future__ import annotations

import msgspec

_SECOND_US = 1_000_000


class DelayBounds(msgspec.Struct, frozen=True):
    """Of messages that wait for their time."""

    longest_us: int = 7 * 24 * 3600 * _SECOND_US
    messages: int = 100_000
    bytes: int = 1 << 30


class LastValueBounds(msgspec.Struct, frozen=True):
    """Of the last values that a broker holds, for all keys."""

    values: int = 100_000
    bytes: int = 256 << 20


class Bounds(msgspec.Struct, frozen=True):
    # the journal
    retention_us: int = 3600 * _SECOND_US
    """How long messages published here are kept for subscriptions that start in the past."""
    retention_bytes: int = 1 << 30
    """They are freed earlier while the journal is larger than this."""
    journal_bytes: int = 8 << 30
    """Publishers wait while the journal is larger than this. Larger than `retention_bytes`."""
    cache_bytes: int = 64 << 20
    """The most bytes of journal segments in memory."""
    # streams to other brokers
    backlog: int = 1_000_000
    """The most messages that wait for one broker; publishers wait when there are more."""
    window: int = 1024
    """The most messages in flight to one broker, and that a broker holds out of order."""
    window_bytes: int = 16 << 20
    retry_us_min: int = _SECOND_US // 2
    retry_us_max: int = 10 * _SECOND_US
    # queues of durable subscriptions
    queue: int = 100_000
    queue_bytes: int = 1 << 30
    delays: DelayBounds = DelayBounds()
    # the rest
    publisher_us: int = 7 * 24 * 3600 * _SECOND_US
    """A publisher that was silent for longer is forgotten, and its numbers with it."""
    lazy_us: int = _SECOND_US // 2
    """Acknowledgements and what they free are written at most this often."""
    sweep_us: int = 5 * _SECOND_US
    """How often the journal is searched for what can be freed."""
