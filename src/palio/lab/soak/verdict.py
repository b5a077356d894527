"""Whether what was sampled grows: a robust line through it, against the noise around that line.

The samples after the warm-up are put into bins, and each bin is its median. The slope is the median of
the slopes between all pairs of bins (Theil and Sen), so that single peaks do not matter. A series is
flat if it grows, over the whole time, by no more than three times the noise, or than a share of its
level that says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from palio.lab.soak.sampling import Sample

WARM_SHARE = 0.25
"""Of the time: caches and windows fill, pages of memory are touched for the first time."""
_BINS = 60
_NOISES = 3.0
_LEVEL_SHARES = {"MiB": 0.02, "ms": 0.25, "messages": 0.25}
"""By unit: growth that is less than this share of the level says nothing."""
_LEAST = {"MiB": 1.0, "ms": 1.0, "messages": 100.0}
"""By unit: growth that is less than this says nothing."""


@dataclass(frozen=True)
class Trend:
    name: str
    unit: str
    level: float
    """The median."""
    growth: float
    """From the end of the warm-up to the end."""
    noise: float
    hours: float

    @property
    def per_hour(self) -> float:
        return self.growth / self.hours

    @property
    def is_flat(self) -> bool:
        bound = max(_NOISES * self.noise, _LEVEL_SHARES[self.unit] * self.level, _LEAST[self.unit])
        return self.growth <= bound

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "GROWS"
        return (
            f"{self.name:<22} {verdict}: {self.level:,.1f} {self.unit}, {self.growth:+.2f} over the "
            f"run ({self.per_hour:+.2f} an hour), noise {self.noise:.2f}"
        )


def trend(name: str, unit: str, points: Sequence[tuple[float, float]]) -> Trend:
    """Of (seconds, value) after the warm-up; at least two.

    >>> trend("rss", "MiB", [(float(t), 100.0 + t % 3) for t in range(3600)]).is_flat
    True
    >>> trend("rss", "MiB", [(float(t), 100.0 + t / 100 + t % 3) for t in range(3600)]).is_flat
    False
    """
    bins = _binned(points)
    slope = median((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(bins, 2) if x2 > x1)
    middle = median(y - slope * x for x, y in bins)
    noise = median(abs(y - slope * x - middle) for x, y in bins)
    duration_s = points[-1][0] - points[0][0]
    level = median(y for _, y in bins)
    return Trend(name, unit, level, slope * duration_s, noise, duration_s / 3600)


def _binned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    size = max(1, len(points) // _BINS)
    parts = [points[at : at + size] for at in range(0, len(points), size)]
    return [(median(x for x, _ in part), median(y for _, y in part)) for part in parts]


def trends(samples: Sequence[Sample]) -> list[Trend]:
    """Of memory, latency and queues."""
    until_s = samples[0]["t_s"] + WARM_SHARE * (samples[-1]["t_s"] - samples[0]["t_s"])
    steady = [one for one in samples if one["t_s"] >= until_s]
    found = []
    for name in steady[0]["brokers"]:
        rss = [(one["t_s"], one["brokers"][name]["rss_bytes"] / (1 << 20)) for one in steady]
        found.append(trend(f"memory of {name}", "MiB", rss))
        queues = [(one["t_s"], one["brokers"][name]["queues"]) for one in steady]
        found.append(trend(f"queues of {name}", "messages", queues))
    for kind in ("live", "durable"):
        for part in ("p50", "p99", "p999"):
            ages = [(one["t_s"], one[kind][part]) for one in steady if one[kind]["messages"]]
            found.append(trend(f"{kind} latency {part}", "ms", ages))
    return found
