"""2000, 3.6: where patterns are assembled, and what crosses the links because of it.

    ann ─ 0 ─ 1 ─ ... ─ L ─┬─ x1 ─ x2 ─ bob      sources together: a and b from bob
                           └─ y1 ─ y2 ─ cy       sources apart: a from bob, b from cy

ann wants `a then b`. Compared are a pattern, which servers factor and delegate by advertisements, and
plain subscriptions for a and for b, with the pattern put together by ann.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid
from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter
from palio.routing.packets import (
    Advertise,
    Event,
    Joined,
    Publish,
    Received,
    Restate,
    Role,
    Subscribe,
)
from palio.routing.patterns import Assembled, Sieved, Watch, parse
from palio.routing.router import Router

SETTINGS = ExperimentSettings(
    id="2000-patterns",
    figure="2000, 3.6",
    title="Patterns, assembled near their sources",
    text="A line of 1 to 8 servers from the subscriber to a fork, two arms of two servers; 300 messages, "
    "one b after nine a on average; three draws.",
)
LENGTHS = (1, 2, 4, 8)
MESSAGES = 300
SHARE_B = 0.1
WHERE = ("together", "apart")
ARMS = ("x", "y")


def points(scale: float) -> list[dict[str, Plain]]:
    return grid(length=list(LENGTHS), sources=list(WHERE), repetitions=[3])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    symbols = Random(seed).choices("ab", [1 - SHARE_B, SHARE_B], k=MESSAGES)
    rows = []
    for way in ("pattern", "plain"):
        servers = Servers(values["length"], together=values["sources"] == "together")
        if way == "pattern":
            pattern = parse("[t = 'a'] then [t = 'b']")
            servers.step("0", Received("ann", Watch(1, pattern)))
        else:
            for symbol in "ab":
                wanted = Filter((Constraint("t", "=", symbol),))
                servers.step("0", Received("ann", Subscribe(wanted)))
        servers.crossed.clear()
        for symbol in symbols:
            servers.publish(symbol)
        crossed = servers.crossed
        trunk = [kind for a, b, kind in crossed if a.isdigit() and b.isdigit()]
        rows.append(
            {
                "way": way,
                "packets": len(crossed),
                "trunk_single": sum(kind == "single" for kind in trunk),
                "trunk_assembled": sum(kind == "assembled" for kind in trunk),
                "arm_single": sum(
                    kind == "single" for a, b, kind in crossed if not (a + b).isdigit()
                ),
                "received": servers.received,
            }
        )
    return rows


class Servers:
    """Routers of the drawing above, and the messages that cross their links."""

    def __init__(self, length: int, *, together: bool) -> None:
        names = [str(i) for i in range(length + 1)]
        links = list(pairwise(names))
        for arm in ARMS:
            links += [(names[-1], f"{arm}1"), (f"{arm}1", f"{arm}2")]
        nodes = dict.fromkeys(name for link in links for name in link)
        self._routers = {name: Router(name, advertisements=True) for name in nodes}
        self._source = {"a": ("x2", "bob"), "b": ("x2", "bob") if together else ("y2", "cy")}
        self._number = 0
        self.received = 0
        self.crossed: list[tuple[str, str, str]] = []
        both = [*links, *((b, a) for a, b in links)]
        for a, b in both:
            self._routers[a].step(Joined(b, Role.NEIGHBOUR))
        for a, b in both:
            self.step(b, Received(a, Restate()))
        for router, client in (("0", "ann"), ("x2", "bob"), ("y2", "cy")):
            self.step(router, Joined(client))
        for symbol, (router, client) in self._source.items():
            offer = Advertisement((Constraint("t", "=", symbol),))
            self.step(router, Received(client, Advertise(offer)))

    def step(self, router: str, event: Event) -> None:
        queue: list[tuple[str, Event]] = [(router, event)]
        for name, happened in queue:  # which grows
            for send in self._routers[name].step(happened):
                packet = send.packet
                is_message = isinstance(packet, Publish | Assembled | Sieved)
                if send.peer not in self._routers:
                    self.received += 1
                    continue
                if is_message:
                    kind = "assembled" if isinstance(packet, Assembled) else "single"
                    self.crossed.append((name, send.peer, kind))
                queue.append((send.peer, Received(name, packet)))

    def publish(self, symbol: str) -> None:
        router, client = self._source[symbol]
        self._number += 1
        message = Publish(Message({"t": symbol}), client, self._number, self._number)
        self.step(router, Received(client, message))


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, where in zip(figure.subplots(1, 2), WHERE, strict=True):
        for way in distinct(rows, "way"):
            line(axis, curve(chosen(rows, sources=where, way=way), "length", "packets"), way)
        axis.set(title=f"sources {where}", xlabel="servers before the fork")
        axis.set(ylabel=f"packets of {MESSAGES} messages", ylim=(0, None))
