"""Graphs of routers with all faults: no check fails, nothing is left, and broken routers are noticed."""

from __future__ import annotations

from random import Random

import pytest

from palio.errors import PalioError
from palio.routing.packets import Received, Restate, Send, TopologyChanged, Unsubscribe
from palio.routing.router import Router
from palio.sim.kernel.clock import VirtualClock
from palio.sim.kernel.shrinking import shrink
from palio.sim.routers.drawing import FAULTS, GRAPHS, RouterSettings, draw
from palio.sim.routers.plans import RouterPlan, checked, parse_router_plan
from palio.sim.routers.process import RouterProcess
from palio.sim.routers.reductions import REDUCTIONS
from palio.sim.routers.simulation import RouterTotals, run
from palio.sim.routers.topology_watch import TopologyWatch

SEEDS = 2
RING = "graph\nlinks 1-2 2-3 3-4 1-4\nclients a@1 b@3\n"


def settings(topology: str, **options: object) -> RouterSettings:
    return RouterSettings(7, topology, 80, FAULTS, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("advertisements", [False, True], ids=["all", "advertised"])
@pytest.mark.parametrize("topology", GRAPHS)
def test_no_check_fails(topology: str, advertisements: bool) -> None:
    totals = RouterTotals()
    for seed in range(SEEDS):
        verdict = run(draw(settings(topology, advertisements=advertisements), seed))
        assert verdict.kind is None, f"seed {seed}: {verdict.text}"
        totals.add(verdict.totals)
    assert totals.deliveries >= totals.due > 5 * SEEDS


def test_a_ring_carries_a_message_once() -> None:
    text = RING + '0 b subscribe x > 1\n50 settle\n60 a publish {"x": 2}\n61 a publish {"x": 1}\n'
    verdict = run(parse_router_plan(text))
    assert verdict.kind is None
    assert (verdict.totals.messages, verdict.totals.deliveries, verdict.totals.due) == (2, 1, 1)


class Deaf(Router):
    """Does not say what changes with the topology."""

    def step(self, event: object) -> list[Send]:
        sends = super().step(event)  # type: ignore[arg-type]
        return [] if isinstance(event, TopologyChanged) else sends


class Forgetful(Router):
    """Does not pass on that subscriptions end."""

    def step(self, event: object) -> list[Send]:
        sends = super().step(event)  # type: ignore[arg-type]
        if isinstance(event, Received) and isinstance(event.packet, Unsubscribe):
            return [send for send in sends if not isinstance(send.packet, Unsubscribe)]
        return sends


class Gossip(Router):
    """Follows no tree: messages go over every link."""

    def step(self, event: object) -> list[Send]:
        sends = super().step(event)  # type: ignore[arg-type]
        if isinstance(event, Received) and not isinstance(event.packet, Restate):
            message = event.packet
            told = {send.peer for send in sends}
            for peer in self.peers if type(message).__name__ == "Publish" else ():
                if peer.isdigit() and peer != event.peer and peer not in told:
                    sends.append(Send(peer, message))
        return sends


@pytest.mark.parametrize(
    ("broken", "kinds"),
    [(Deaf, {"lost", "state"}), (Forgetful, {"state"}), (Gossip, {"twice"})],
)
def test_broken_routers_are_noticed(broken: type[Router], kinds: set[str]) -> None:
    def make(name: str, advertisements: bool) -> Router:
        return broken(name, advertisements=advertisements, graph=lambda node: node)

    found = {run(draw(settings("ring"), seed), make).kind for seed in range(6)}
    assert found & kinds


def test_copies_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """While routers follow different trees a client would get a message again, but for the dedup.

    It takes a change at the wrong moment: one seed in sixteen has it, and which one is no matter.
    """
    plans = (draw(RouterSettings(5, "ring", 200, FAULTS), seed) for seed in range(10, 200))
    with monkeypatch.context() as patch:
        patch.setattr(RouterProcess, "_is_repeated", lambda *_: False)
        unlucky = next((plan for plan in plans if run(plan).kind == "twice"), None)
    assert unlucky is not None
    assert run(unlucky).kind is None


def test_shrinking_keeps_a_graph_sound() -> None:
    plan = draw(settings("random"), 3)
    matters = plan.operations[5]

    def fails(smaller: RouterPlan) -> bool:
        checked(smaller)
        return matters in smaller.operations

    short = shrink(plan, fails, REDUCTIONS, runs_max=10_000)
    assert short.operations == (matters,)
    assert len(short.routers) <= 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("links 1-2 3-4", "do not connect all routers: no islands"),
        ("links 1-2 2-1 2-3 3-4", "at most one link"),
        ("hierarchy", "a graph has routing covering, and no hierarchy"),
        ("routing plain", "a graph has routing covering, and no hierarchy"),
        ("0 a watch 1 [x > 1] then [x > 2]", "on trees only"),
    ],
)
def test_bad_graphs_get_a_sentence(text: str, says: str) -> None:
    with pytest.raises(PalioError, match=says):
        parse_router_plan(RING + text)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"topology": "ring", "routing": "plain"}, "a ring goes with routing covering"),
        ({"topology": "random", "patterns": True}, "without patterns"),
        ({"topology": "mesh", "routers": 20}, "a mesh has at most 8 routers, not 20"),
    ],
)
def test_bad_settings_get_a_sentence(options: dict[str, object], says: str) -> None:
    with pytest.raises(PalioError, match=says):
        RouterSettings(**options)  # type: ignore[arg-type]


def test_routers_learn_the_links_that_both_ends_have() -> None:
    clock, told = VirtualClock(), dict[str, int]()

    def tell(name: str, net: object) -> None:
        told[name] = 0 if net is None else len(net.nodes)  # type: ignore[attr-defined]

    watch = TopologyWatch(parse_router_plan(RING), clock, Random(1), tell)
    watch.opened("1", "2", (1, 1))
    assert watch.agreed("1") is None  # nobody has learnt it
    clock.run_until_quiet(10**6)
    assert told == {"1": 0, "2": 0, "3": 0, "4": 0}
    watch.opened("2", "1", (1, 1))
    clock.run_until_quiet(10**6)
    assert told == {"1": 2, "2": 2, "3": 0, "4": 0}
    calm = clock.instant
    watch.closed("1", "2")
    clock.run_until_quiet(10**6)
    assert told["1"] == 0
    assert not watch.is_calm(calm, clock.instant)
    assert watch.is_calm(clock.instant, clock.instant + 5)
