"""What is judged at the end of a run is judged when it may be."""

from __future__ import annotations

import pytest

from palio.sim.brokers.plans import parse_broker_plan
from palio.sim.brokers.simulation import run
from palio.sim.kernel import streams


@pytest.mark.parametrize("seed", range(6))
def test_a_ping_of_which_a_part_has_arrived_is_no_leftover(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers say Ping for ever, and on slow links some is in transit at most times."""
    monkeypatch.setattr(streams, "DELAY_US", (1_000, 200_000))
    monkeypatch.setattr(
        streams.StreamNetwork, "pieces", lambda network, data: [bytes([byte]) for byte in data]
    )
    plan = f"seed {seed}\nrouting DRP\nlinks a-b\nclients ann@a\nbounds retention_us=1000\n"
    verdict = run(parse_broker_plan(plan))
    assert verdict.kind is None, verdict.text
