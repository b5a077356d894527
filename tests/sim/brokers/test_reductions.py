"""Shrinking plans of brokers: every attempt is a sound plan, and what does not matter goes."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from palio.protocol.broker.settings import ROUTINGS
from palio.sim.brokers.drawing import FAULTS, BrokerSettings, draw
from palio.sim.brokers.plans import BOUNDS, BrokerLimits, BrokerPlan, checked
from palio.sim.brokers.reductions import REDUCTIONS
from palio.sim.kernel.shrinking import shrink


@example(58, "PSF", {1})  # the last link of a broker goes with its neighbour
@given(st.integers(0, 1000), st.sampled_from(ROUTINGS), st.sets(st.integers(0, 29), max_size=3))
@settings(max_examples=30, deadline=None)
def test_only_what_matters_is_left(seed: int, routing: str, at: set[int]) -> None:
    plan = draw(BrokerSettings(6, operations=30, faults=FAULTS, routing=routing), seed)
    matters = {(plan.operations[i].time_us, plan.operations[i].verb) for i in at}

    def fails(smaller: BrokerPlan) -> bool:
        checked(smaller)
        return matters <= {(one.time_us, one.verb) for one in smaller.operations}

    short = shrink(plan, fails, REDUCTIONS, runs_max=100_000)
    assert len(short.operations) == len(matters)
    assert (short.limits, short.bounds, short.advertisements) == (BrokerLimits(), BOUNDS, False)
    busy = {one.client for one in short.operations} | {
        p for o in short.operations for p in o.places
    }
    if busy & {client.name for client in short.clients}:
        assert {client.name for client in short.clients} <= busy
    else:
        assert len(short.clients) == 1
    needed = {client.home for client in short.clients} | busy
    assert set(short.brokers) <= needed
