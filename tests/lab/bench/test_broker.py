"""The benchmark of brokers at its smallest; its times are no promise."""

from __future__ import annotations

import pytest

from palio.errors import PalioError
from palio.lab.bench import broker
from palio.lab.bench.loopback.contestants import why_missing


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


_QUICK = ("mqtt-1", "http-lines")


@pytest.mark.parametrize(
    "name",
    [
        name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in broker.NAMES
    ],
)
def test_each_contestant_and_what_it_is_compared_with(name: str) -> None:
    reason = why_missing(name)
    if reason is not None:
        pytest.skip(f"{name}: {reason}")
    results = {
        one.contestant: one
        for one in broker.run(
            subscriptions=20, messages=500, repeats=1, paced=80, contestants=[name]
        )
    }
    rival = broker.rival(name)
    is_compared = bool(rival) and why_missing(rival) is None
    assert results.keys() == {"relay", name} | ({rival} if is_compared else set())
    result = results[name]
    assert result.per_second > 0
    assert 0 < result.p50_us <= result.p99_us
    assert (result.ratio_durable is not None) == (is_compared and rival == "durable")
    assert (result.ratio_mosquitto is not None) == (is_compared and rival.startswith("mosquitto"))
    if rival and not is_compared:
        print(f"{name} is compared with nothing: {rival}: {why_missing(rival)}")


def test_what_contestants_are_compared_with() -> None:
    assert {name: broker.rival(name) for name in broker.NAMES if broker.rival(name)} == {
        "durable-postgres": "durable",
        "durable-http": "durable",
        "mqtt": "mosquitto",
        "mqtt-1": "mosquitto-1",
    }
