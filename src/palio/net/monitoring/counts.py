"""What the host of a broker counts: plain integers, so that counting is cheap. Metrics read them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import Final

BUCKETS_S: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.0, 4.0)


@dataclass(slots=True)
class Durations:
    """A histogram of durations. The last bucket has no upper bound.

    >>> durations = Durations()
    >>> durations.add(0.003)
    >>> durations.buckets[:4]
    [0, 0, 1, 0]
    """

    bounds_s: tuple[float, ...] = BUCKETS_S
    buckets: list[int] = field(init=False)
    total_s: float = 0.0

    def __post_init__(self) -> None:
        self.buckets = [0] * (len(self.bounds_s) + 1)

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(self.bounds_s, seconds)] += 1
        self.total_s += seconds

    def quantile(self, share: float) -> float:
        """An upper bound of this share of the durations; infinite beyond the last bucket's bound."""
        left = share * self.count
        for bound, count in zip(self.bounds_s, self.buckets, strict=False):
            left -= count
            if left <= 0:
                return bound
        return inf

    @property
    def count(self) -> int:
        return sum(self.buckets)


@dataclass(slots=True)
class HostCounts:
    """Counters since the broker started."""

    accepted: int = 0
    dialled: int = 0
    dial_failures: int = 0
    refused: int = 0
    """Connections while the broker took none: it stopped, or its store was full."""
    closed_stuck: int = 0
    """Connections closed because the other end did not read."""
    closed_unsent: int = 0
    """Connections closed because too much waited to be sent on all together."""
    closed: Counter[str] = field(default_factory=Counter)
    """Connections that the core closed, by the code."""
    bytes_in: int = 0
    bytes_out: int = 0
    turns: int = 0
    """Turns of the event loop in which the host took the core's effects."""
    writes: int = 0
    commit_keys: int = 0
    commit_failures: int = 0
    reading_pauses: int = 0
    """How often the host stopped reading because too much waited for its commit."""
    commits: Durations = field(default_factory=Durations)


@dataclass(slots=True)
class HttpCounts:
    """Counters of the HTTP listener since the broker started."""

    accepted: int = 0
    requests: int = 0
    refused: int = 0
    """Requests that were refused before they were read."""
    late: int = 0
    """Requests that did not come in time, and connections on which none came."""
    displaced: int = 0
    """Connections that gave their place to newer ones."""
    stalled: int = 0
    """Connections that were cut off because the other end did not read."""
    published: int = 0
    delivered: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    """Answers, by their status."""
