"""What counts as growth."""

from __future__ import annotations

from random import Random

import pytest

from palio.lab.soak.sampling import Sample
from palio.lab.soak.verdict import trend, trends


def series(level: float, per_hour: float, noise: float, seconds: int = 3600) -> list[tuple[float, float]]:  # fmt: skip
    draw = Random(1)
    return [(float(t), level + per_hour * t / 3600 + draw.gauss(0, noise)) for t in range(seconds)]


@pytest.mark.parametrize(
    ("level", "per_hour", "noise", "is_flat"),
    [
        (340.0, 0.0, 2.0, True),
        (340.0, 3.0, 2.0, True),  # less than a hundredth
        (340.0, 20.0, 2.0, False),
        (340.0, -20.0, 2.0, True),
    ],
)
def test_memory(level: float, per_hour: float, noise: float, is_flat: bool) -> None:
    found = trend("memory", "MiB", series(level, per_hour, noise))
    assert found.is_flat is is_flat, found
    assert found.per_hour == pytest.approx(per_hour, abs=2.0)


def test_peaks_are_no_growth() -> None:
    points = [(t, 500.0 if t % 100 == 99 else y) for t, y in series(10.0, 0.0, 0.5)]
    assert trend("latency", "ms", points).is_flat


def test_the_warm_up_does_not_count() -> None:
    def one(t: int, rss: float) -> Sample:
        ages = {"messages": 10, "p50": 5.0, "p99": 9.0, "p999": 10.0}
        brokers = {"b1": {"rss_bytes": rss * (1 << 20), "queues": 100.0}}
        return {"t_s": float(t), "live": ages, "durable": ages, "brokers": brokers}

    warming = [one(t, 100.0 + min(t, 100)) for t in range(600)]
    assert all(found.is_flat for found in trends(warming))
    leaking = [one(t, 100.0 + t / 10) for t in range(600)]
    assert [found.name for found in trends(leaking) if not found.is_flat] == ["memory of b1"]
