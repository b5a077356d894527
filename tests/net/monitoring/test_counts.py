"""The histogram of durations."""

from __future__ import annotations

import pytest

from palio.net.monitoring.counts import BUCKETS_S, Durations


def test_durations_fall_into_their_buckets() -> None:
    durations = Durations()
    for seconds in (0.0005, 0.001, 0.003, 100.0):
        durations.add(seconds)
    assert durations.buckets[:3] == [2, 0, 1]
    assert (durations.buckets[len(BUCKETS_S)], durations.count) == (1, 4)
    assert durations.total_s == pytest.approx(100.0045)


def test_a_quantile_is_the_bound_of_its_bucket() -> None:
    durations = Durations(bounds_s=(0.01, 0.1))
    assert durations.quantile(0.999) == 0.01
    for _ in range(999):
        durations.add(0.001)
    durations.add(0.05)
    assert (durations.quantile(0.999), durations.quantile(1.0)) == (0.01, 0.1)
    durations.add(7.0)
    assert durations.quantile(1.0) == float("inf")
