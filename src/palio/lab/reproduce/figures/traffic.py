"""Subscription traffic: what routers tell each other with covering, without it, and by flooding.

A random tree of routers in the simulator, no faults. Clients subscribe to filters of the 2006
workload, one after another, then messages are published; the simulator's checkers watch as always.
A subscription stays at the edge when the router of its client tells no other router about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from palio.errors import PalioError
from palio.lab.data import workloads
from palio.lab.data.english_words import NEWS
from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.packets import Event, Received, Send, Subscribe
from palio.sim.kernel.plans import NetworkVerb
from palio.sim.routers.kinds import ROUTINGS, AnyRouter, router_maker
from palio.sim.routers.plans import RouterOperation, RouterPlan, RouterVerb
from palio.sim.routers.simulation import run as simulate

SETTINGS = ExperimentSettings(
    id="traffic",
    figure="beyond the papers",
    title="Subscription traffic saved by covering",
    text="A tree of 20 routers, a client at each; filters of the 2006 workload on 500 Zipf names; "
    "then 200 messages of 10 attributes by the same law (ours: that workload has none). Without "
    "covering every subscription goes to every router; with flooding none does, and every message "
    "goes everywhere.",
    is_paired=True,
)
SUBSCRIPTIONS = 3_000
ROUTERS = 20
NAMES = 500
MESSAGES = 200
ATTRIBUTES = 10
GAP_US = 1_000


def points(scale: float) -> list[dict[str, Plain]]:
    last = max(60, round(SUBSCRIPTIONS * scale))
    counts = [20, 60] if scale < 0.1 else sizes(100, last, 10**0.5)
    return grid(subscriptions=counts, routing=list(ROUTINGS), repetitions=[1 if scale < 0.1 else 3])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    edges = _Edges(values["routing"])
    plan = _plan(values["subscriptions"], values["routing"], seed)
    verdict = simulate(plan, edges.make_router, recompute=len(plan.operations) < 400)
    if verdict.kind is not None:
        raise PalioError(f"the simulation of seed {seed} failed: {verdict.text}; this is a bug")
    totals = verdict.totals
    return [
        {
            "subscriptions_forwarded": totals.subscriptions,
            "message_hops": totals.messages,
            "deliveries": totals.deliveries,
            "bytes": totals.bytes,
            "at_the_edge": edges.stayed / values["subscriptions"],
        }
    ]


class _Edges:
    """Routers that note which subscriptions of their clients they keep to themselves."""

    def __init__(self, routing: str) -> None:
        self._make = router_maker(routing)
        self.stayed = 0

    def make_router(self, name: str, advertisements: bool) -> AnyRouter:
        made: Any = self._make(name, advertisements)
        made.step = partial(self._step, made.step)
        return made  # type: ignore[no-any-return]

    def _step(self, step: Any, event: Event) -> list[Send]:
        sends: list[Send] = step(event)
        if isinstance(event, Received) and isinstance(event.packet, Subscribe):
            self.stayed += event.peer.startswith("c") and not sends
        return sends


def _plan(subscriptions: int, routing: str, seed: int) -> RouterPlan:
    """A tree, a client at each router, subscriptions in turn, and messages once all is quiet."""
    random = Random(seed)
    links = tuple((str(random.randrange(i)), str(i)) for i in range(1, ROUTERS))
    clients = tuple((f"c{i}", str(i)) for i in range(ROUTERS))
    operations = [
        RouterOperation(
            i * GAP_US, RouterVerb.SUBSCRIBE, random.choice(clients)[0], argument=filter
        )
        for i, filter in enumerate(_filters(subscriptions, seed))
    ]
    end_us = subscriptions * GAP_US
    operations.append(RouterOperation(end_us, NetworkVerb.SETTLE))
    operations += [
        RouterOperation(
            end_us, RouterVerb.PUBLISH, random.choice(clients)[0], argument=drawn_message(random)
        )
        for _ in range(MESSAGES)
    ]
    return RouterPlan(
        links=links, clients=clients, operations=tuple(operations), seed=seed, routing=routing
    )


def _filters(count: int, seed: int) -> tuple[Filter, ...]:
    return workloads.disjunction_2006(count, names=NAMES, zipf=True, seed=seed).filters


def drawn_message(random: Random) -> Message:
    """Attributes with the types that names have in the 2006 workload."""
    names: set[int] = set()
    weights = [1 / rank for rank in range(1, NAMES + 1)]
    while len(names) < ATTRIBUTES:
        names.update(random.choices(range(NAMES), weights, k=1))
    words = [1 / rank for rank in range(1, len(NEWS) + 1)]
    return Message(
        {
            f"a{n}": random.choices(NEWS, words)[0] if n % 2 else random.randint(-100, 100)
            for n in sorted(names)
        }
    )


def tables(rows: Sequence[Row]) -> list[tuple[list[str], list[list[str]]]]:
    """Headings and lines, for the report."""
    lines = []
    for count in distinct(rows, "subscriptions"):
        mean = {}
        for routing in ROUTINGS:
            for key in ("subscriptions_forwarded", "message_hops", "at_the_edge"):
                values = [row[key] for row in chosen(rows, subscriptions=count, routing=routing)]
                mean[routing, key] = sum(values) / len(values) if values else float("nan")
        covering = mean["covering", "subscriptions_forwarded"]
        plain = mean["plain", "subscriptions_forwarded"]
        lines.append(
            [
                f"{count:,}",
                f"{covering:,.0f}",
                f"{plain:,.0f}",
                f"{1 - covering / plain:.0%}",
                f"{mean['covering', 'at_the_edge']:.0%}",
                f"{mean['covering', 'message_hops']:,.0f}",
                f"{mean['flooding', 'message_hops']:,.0f}",
            ]
        )
    headings = ["subscriptions", "forwarded, covering", "forwarded, plain", "saved", "at the edge"]
    return [([*headings, "message hops, routed", "message hops, flooding"], lines)]


def plot(rows: Sequence[Row], figure: Any) -> None:
    told, edge, hops = figure.subplots(1, 3)
    for routing in ROUTINGS:
        those = chosen(rows, routing=routing)
        if routing != "flooding":  # which forwards none
            line(told, curve(those, "subscriptions", "subscriptions_forwarded"), routing)
        line(hops, curve(those, "subscriptions", "message_hops"), routing)
    shares = curve(chosen(rows, routing="covering"), "subscriptions", "at_the_edge")
    line(edge, [(x, 100 * y) for x, y in shares], "covering")
    told.set(xlabel="subscriptions", ylabel="subscriptions forwarded", xscale="log", yscale="log")
    edge.set(xlabel="subscriptions", ylabel="% that stay at the edge", xscale="log", ylim=(0, 100))
    hops.set(xlabel="subscriptions", ylabel=f"hops of {MESSAGES} messages", xscale="log")
