"""Shrinking: nothing is left that could go, for any reason to fail that hypothesis invents."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import PalioError
from palio.sim.kernel.shrinking import shrink, shrunk
from palio.sim.routers.drawing import FAULTS, TOPOLOGIES, RouterSettings, draw
from palio.sim.routers.plans import RouterPlan, RouterVerb, checked
from palio.sim.routers.reductions import REDUCTIONS
from palio.sim.routers.runs import ROUTERS


@given(st.integers(0, 1000), st.sampled_from(TOPOLOGIES), st.sets(st.integers(0, 39), max_size=4))
@settings(max_examples=40, deadline=None)
def test_only_what_matters_is_left(seed: int, topology: str, places: set[int]) -> None:
    plan = draw(RouterSettings(8, topology, 40, FAULTS, routing="plain"), seed)
    matters = {plan.operations[place] for place in places}

    def fails(smaller: RouterPlan) -> bool:
        checked(smaller)  # every attempt is a sound plan
        return matters <= set(smaller.operations)

    short = shrink(plan, fails, REDUCTIONS, runs_max=100_000)
    assert set(short.operations) == matters
    assert (short.datagrams.loss, short.datagrams.duplicate, short.datagrams.reorder) == (0, 0, 0)
    busy = {operation.client for operation in matters} - {""}
    if busy:
        assert {client for client, _ in short.clients} == busy
        named = {name for o in matters for name in o.places}
        spare = set(short.routers) - {home for _, home in short.clients} - named
        # Those that are left hold others together, or are the root of a hierarchy.
        for router in spare:
            links = [link for link in short.links if router in link]
            assert len(links) > 2 or (short.hierarchy and len(links) == 2)


def test_a_budget_ends_the_search() -> None:
    plan = draw(RouterSettings(8, operations=40, routing="plain"), 1)
    runs = []

    def fails(smaller: RouterPlan) -> bool:
        runs.append(smaller)
        return any(operation.verb is RouterVerb.PUBLISH for operation in smaller.operations)

    short = shrink(plan, fails, REDUCTIONS, runs_max=3)
    assert len(runs) == 3
    assert len(short.operations) < len(plan.operations)


def test_what_does_not_fail_is_not_shrunk() -> None:
    with pytest.raises(PalioError, match="does not fail"):
        shrunk(ROUTERS, draw(RouterSettings(3, operations=5, routing="plain"), 1))
