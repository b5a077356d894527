"""Plans of brokers as text: a plan and its text say the same; bad ones get a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import PalioError
from palio.sim.brokers.drawing import FAULTS, BrokerSettings, draw
from palio.sim.brokers.plans import ClientSpec, PlannedLink, parse_broker_plan

NETWORK = "routing PSF\nlinks a-b b-c\nclients ann@a bob@c\n"


@given(st.integers(0, 10**9), st.integers(1, 7))
@settings(max_examples=30, deadline=None)
def test_the_text_of_a_plan_is_the_plan(seed: int, brokers: int) -> None:
    plan = draw(BrokerSettings(brokers, operations=40, faults=FAULTS), seed)
    assert parse_broker_plan(str(plan)) == plan


def test_masters_are_drawn() -> None:
    """With forwarding none, some, or all that can have one."""
    settings = BrokerSettings(6, operations=1, routing="forwarding")
    plans = [draw(settings, seed) for seed in range(60)]
    assert {plan.advertisements for plan in plans if plan.masters} == {True, False}
    counts = {len(plan.masters) for plan in plans}
    assert {0, 1, 2, 3} <= counts
    below = BrokerSettings(6, "hierarchy", operations=1)
    for seed in range(20):
        plan = draw(below, seed)
        assert parse_broker_plan(str(plan)) == plan
        assert len(plan.masters) == len(plan.links) == len(plan.brokers) - 1
    with pytest.raises(PalioError, match="a hierarchy goes with routing forwarding, not PSF"):
        BrokerSettings(topology="hierarchy", routing="PSF")


def test_links_and_clients_are_written_short() -> None:
    plan = parse_broker_plan("links a-b b=c*2.5\nclients ann@a bob@c/50000\n")
    assert plan.links == (PlannedLink("a", "b"), PlannedLink("b", "c", 2.5, both_dial=True))
    assert plan.clients == (ClientSpec("ann", "a"), ClientSpec("bob", "c", 50_000))
    assert plan.brokers == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 ann subscribe s where x >", "line 4"),
        ("0 ann subscribe s", "a name and a predicate"),
        ("0 ann subscribe s lazy=1 where x > 1", "a subscription has no 'lazy'"),
        ("0 ann publish [1]", "line 4"),
        ('0 ann publish lasting {"x": 1}', "a message has no 'lasting'"),
        ('0 zoe publish {"x": 1}', "no client 'zoe'"),
        ("0 ann leave", "takes the name of a subscription"),
        ("0 ann connect now", "takes nothing"),
        ("0 ann sing", "no verb"),
        ("0 crash ann", "no such place"),
        ("0 crash a loudly", "crash takes 1 places"),
        ("0 cut a", "cut takes 2 places"),
        ("0 partition a c", "no link between"),
        ("0 partition ann b", "no link between"),
        ("routing magic", "a setting is one of"),
        ("limits luck=1", "no 'luck' in the limits; there are link_credit"),
        ("bounds luck=1", "no 'luck' in the bounds; there are retention_us"),
        ("links a-b", "no islands"),
        ("links a-b b-a b-c", "at most one link"),
        ("masters b<a", "masters go with routing forwarding, not with routing PSF"),
        ("routing forwarding\nmasters c<a", "one master, which is its neighbour"),
        ("routing forwarding\nmasters b<a b<c", "one master, which is its neighbour"),
        ("routing forwarding\nlinks a-b b-c a-c\nmasters a<b b<c c<a", "a cycle: a < b < c < a"),
        ("clients ann@a ann@b", "each named once"),
        ("clients a@b", "each named once"),
    ],
)
def test_bad_scenarios_get_a_sentence(text: str, says: str) -> None:
    with pytest.raises(PalioError, match=says):
        parse_broker_plan(NETWORK + text)


def test_an_empty_scenario_has_no_client() -> None:
    with pytest.raises(PalioError, match="at least one client"):
        parse_broker_plan("")
