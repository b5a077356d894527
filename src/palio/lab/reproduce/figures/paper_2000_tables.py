"""2000, 2.3, 3.4 and 3.7: what covering saves in a routing table, in traffic and in look-ups.

Filters of four shapes arrive one by one: two of the 2006 workload, a chain (x < k: each covers or is
covered) and a flat set (x = k: none does). They are dealt to ten next hops for the table of 2.3; they
go to routers with neighbours for the traffic of 3.4; and messages look for those that match (3.7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from palio.lab.data import workloads
from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.figures.traffic import NAMES, drawn_message
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter
from palio.routing.packets import Joined, Received, Role, Subscribe
from palio.routing.poset import SUBSCRIPTIONS, Poset
from palio.routing.router import Router

SETTINGS = ExperimentSettings(
    id="2000-tables",
    figure="2000, 2.3, 3.4 and 3.7",
    title="Routing tables, traffic and look-ups with covering",
    text="Up to 3,000 filters: of the 2006 workload with 500 Zipf and 500 uniform names, a chain, and a "
    "flat set, in random order, three draws each; 100 messages.",
)
FILTERS = 3_000
HOPS = 10
MESSAGES = 100
SHAPES = ("500 Zipf names", "500 uniform names", "chain", "flat")


def points(scale: float) -> list[dict[str, Plain]]:
    last = max(200, round(FILTERS * min(scale, 1.0)))
    return grid(filters=sizes(30, last, 10**0.5), shape=list(SHAPES), repetitions=[3])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    filters = list(dict.fromkeys(_filters(values["shape"], values["filters"], random, seed)))
    poset = Poset(SUBSCRIPTIONS)
    for item in filters:
        poset.insert(item)
    from_clients = traffic(filters, ["c"] * len(filters))
    from_all = traffic(filters, [random.choice(["c", "n1", "n2"]) for _ in filters])
    return [
        {
            "given": len(filters),
            "items": len(poset),
            "roots": len(poset.roots()),
            **table_entries(filters, random),
            "sent": from_clients["sent"],
            "sent_roots": from_clients["roots"],
            "mixed_sent": from_all["sent"],
            "mixed_roots": from_all["roots"],
            "mixed_uncovered": from_all["uncovered"],
            **look_ups(poset, values["shape"], random),
        }
    ]


def _filters(shape: str, count: int, random: Random, seed: int) -> Sequence[Filter]:
    if shape.endswith("names"):
        zipf = "Zipf" in shape
        return workloads.disjunction_2006(count, names=NAMES, zipf=zipf, seed=seed).filters
    op = "<" if shape == "chain" else "="
    return [Filter((Constraint("x", op, k),)) for k in random.sample(range(count), count)]


def table_entries(filters: Sequence[Filter], random: Random) -> dict[str, int]:
    """Mappings of a filter to a hop, all of them, and without those that 2.3 makes needless."""
    dealt: dict[int, list[Filter]] = {hop: [] for hop in range(HOPS)}
    for item in filters:
        dealt[random.randrange(HOPS)].append(item)
    stored = 0
    for own in dealt.values():
        poset = Poset(SUBSCRIPTIONS)
        for item in own:
            poset.insert(item)
        stored += len(poset.roots())
    return {"entries": sum(map(len, dealt.values())), "entries_stored": stored}


def traffic(filters: Sequence[Filter], senders: Sequence[str]) -> dict[str, int]:
    """Subscriptions that a router with a client and two neighbours passes on as they come.

    `roots` are roots of its table then; `uncovered` are covered by no filter of others than the
    neighbour that they go to: formula (1) counts only those.
    """
    router = Router("me")
    router.step(Joined("c"))
    for peer in ("n1", "n2"):
        router.step(Joined(peer, Role.NEIGHBOUR))
    counts = {"sent": 0, "roots": 0, "uncovered": 0}
    for item, sender in zip(filters, senders, strict=True):
        for send in router.step(Received(sender, Subscribe(item))):
            if not isinstance(send.packet, Subscribe):
                continue
            table = router.subscriptions.poset
            found = table.find(send.packet.filter)
            assert found is not None
            above = [f for f in table.above(found) if f is not found]
            elsewhere = [f for f in above if router.subscribers(f) - {send.peer}]
            counts["sent"] += 1
            counts["roots"] += not above
            counts["uncovered"] += not elsewhere
    return counts


def look_ups(poset: Poset[Filter], shape: str, random: Random) -> dict[str, float]:
    """Filters that a message is compared with: roots, and those below filters that match."""
    compared = matched = 0
    for _ in range(MESSAGES):
        if shape.endswith("names"):
            sent = drawn_message(random)
        else:
            sent = Message({"x": random.randrange(len(poset))})
        found = poset.matching(sent)
        matched += len(found)
        compared += sum(poset.predecessors(item) <= found for item in poset)
    return {"compared": compared / MESSAGES, "matched": matched / MESSAGES}


def plot(rows: Sequence[Row], figure: Any) -> None:
    columns = {"entries_stored": "table entries", "sent": "forwarded", "compared": "compared"}
    for axis, (column, title) in zip(figure.subplots(1, 3), columns.items(), strict=True):
        for shape in distinct(rows, "shape"):
            line(axis, curve(chosen(rows, shape=shape), "filters", column), shape)
        axis.set(title=title, xlabel="filters", xscale="log", yscale="log")
