"""The benchmark of brokers runs on the relay alone; its times are no promise."""

from __future__ import annotations

import pytest

from palio.errors import PalioError
from palio.lab.bench import broker


def test_the_relay_is_as_fast_as_itself() -> None:
    """1,000 messages: a quarter of them, the warm-up, is no whole number of pieces."""
    (result,) = broker.run(subscriptions=20, messages=1_000, repeats=1, contestants=["relay"])
    assert result.contestant == "relay"
    assert result.ratio == 1.0
    assert result.per_second > 0
    assert 0 < result.p50_us <= result.p99_us


def test_a_run_that_makes_no_sense() -> None:
    with pytest.raises(PalioError, match="no contestant 'x'; there are relay, live"):
        list(broker.run(contestants=["x"]))
    with pytest.raises(PalioError, match="500 messages"):
        list(broker.run(messages=499))
