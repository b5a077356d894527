"""The picture of a soak: memory, latency and queues over time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from palio.lab.reproduce.drawing import line, png
from palio.lab.reproduce.experiment import Row
from palio.lab.soak.sampling import Sample

_POINTS = 300
"""Of each curve: the median of what lies between two."""


def picture(samples: Sequence[Sample]) -> bytes:
    """As PNG."""
    return png(_plot, samples)


def _plot(samples: Sequence[Row], figure: Any) -> None:
    memory, latency, queues = figure.subplots(1, 3)
    for name in samples[0]["brokers"]:
        rss = [(one["t_s"], one["brokers"][name]["rss_bytes"] / (1 << 20)) for one in samples]
        line(memory, _thinned(rss), name, marker="")
        waiting = [(one["t_s"], one["brokers"][name]["queues"]) for one in samples]
        line(queues, _thinned(waiting), name, marker="")
    for kind, color in (("live", "tab:blue"), ("durable", "tab:red")):
        for part, style in (("p50", "-"), ("p99", "--"), ("p999", ":")):
            ages = [(one["t_s"], one[kind][part]) for one in samples if one[kind]["messages"]]
            line(latency, _thinned(ages), f"{kind} {part}", marker="", ls=style, color=color)
    memory.set_ylim(bottom=0)
    latency.set_yscale("log")
    for axis, label in ((memory, "memory (MiB)"), (latency, "latency (ms)"),
                        (queues, "messages in durable queues")):  # fmt: skip
        axis.set_xlabel("minutes")
        axis.set_title(label, fontsize=9)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """In minutes."""
    size = max(1, len(points) // _POINTS)
    parts = [points[at : at + size] for at in range(0, len(points), size)]
    return [(median(x for x, _ in part) / 60, median(y for _, y in part)) for part in parts]
