"""The plans of routers: a tree of links, clients at routers, and what happens.

    seed 17                            of the network's randomness
    routing covering                   or plain, flooding
    advertisements                     subscriptions follow advertisements
    hierarchy                          the first router of a link is the master of the second
    graph                              the links may form cycles; routers follow the trees of origins
    links 1-2 1-3
    datagrams loss=0.1 duplicate=0.05  what is not named has its default
    limits window=8 outbox=32          of the links, likewise
    patterns lateness=90000 hop=6000   how routers deal with patterns, likewise
    clients a@1 b@3

    0.000 a subscribe x > 5 AND s = 'b'
    1.500 b advertise x IS NOT NULL AND s = 'b'
    9.250 b publish {"x": 7, "s": "b"}
    9.500 a watch 1 [x > 5] then [s = 'b'] within 1 second
    10.000 crash 2

Also: unsubscribe, unadvertise, unwatch 1, and the verbs of `palio.sim.kernel.plans` but for freeze,
thaw, cut and silence. A client uses the number of a watch once. The constraints of an
advertisement are joined by AND in text, and several on one name are alternatives.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from palio.errors import PalioError
from palio.model.advertisement import Advertisement
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.patterns.language import parse as parse_pattern
from palio.routing.patterns.packets import Unwatch, Watch
from palio.routing.patterns.watching import PatternSettings
from palio.sim.kernel.datagrams import DatagramFaults
from palio.sim.kernel.plans import (
    NetworkVerb,
    Operation,
    PlanGrammar,
    SimulationPlan,
    pair_of,
    read_struct,
    struct_line,
)
from palio.sim.routers.kinds import ROUTINGS
from palio.sim.routers.links import LinkLimits


class RouterVerb(StrEnum):
    """What clients of routers do."""

    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    ADVERTISE = "advertise"
    UNADVERTISE = "unadvertise"
    WATCH = "watch"
    UNWATCH = "unwatch"
    PUBLISH = "publish"


RouterArgument: TypeAlias = Filter | Advertisement | Message | Watch | Unwatch


class RouterOperation(Operation, frozen=True):
    """`argument` is None for what happens to the network."""

    argument: RouterArgument | None = None

    @property
    def argument_text(self) -> str:
        match self.argument:
            case None:
                return ""
            case Message() as message:
                return message.to_json()
            case Watch(number, pattern):
                return f"{number} {pattern}"
            case Unwatch(number):
                return str(number)
            case Filter() | Advertisement() as item:
                return str(Filter(item.constraints))


class RouterPlan(SimulationPlan, frozen=True, kw_only=True):
    """A tree or graph of routers and all that happens to it."""

    links: tuple[tuple[str, str], ...]
    clients: tuple[tuple[str, str], ...]
    """Name and router."""
    operations: tuple[RouterOperation, ...] = ()
    routing: str = "covering"
    advertisements: bool = False
    hierarchy: bool = False
    graph: bool = False
    datagrams: DatagramFaults = DatagramFaults()
    limits: LinkLimits = LinkLimits()
    patterns: PatternSettings = PatternSettings()

    @property
    def routers(self) -> tuple[str, ...]:
        places = [name for link in self.links for name in link] + [at for _, at in self.clients]
        return tuple(dict.fromkeys(places))

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", f"routing {self.routing}"]
        lines += ["advertisements"] * self.advertisements + ["hierarchy"] * self.hierarchy
        lines += ["graph"] * self.graph
        lines.append(" ".join(["links", *(f"{a}-{b}" for a, b in self.links)]))
        lines += struct_line("datagrams", self.datagrams, DatagramFaults())
        lines += struct_line("limits", self.limits, LinkLimits())
        lines += struct_line("patterns", self.patterns, PatternSettings())
        lines.append(" ".join(["clients", *(f"{c}@{r}" for c, r in self.clients)]))
        return "\n".join([*lines, "", *map(str, self.operations)]) + "\n"


def parse_router_plan(text: str) -> RouterPlan:
    """Read a scenario; an error names the line."""
    settings, operations = GRAMMAR.read(text, _client_operation, RouterOperation)
    return checked(RouterPlan(operations=operations, **{"links": (), "clients": ()} | settings))


def _client_operation(time_us: int, verb: str, client: str, argument: Any) -> RouterOperation:
    return RouterOperation(time_us, RouterVerb(verb), client, argument=argument)


def checked(plan: RouterPlan) -> RouterPlan:
    """The plan itself, if its names fit together and its routers form a tree."""
    routers, clients = set(plan.routers), dict(plan.clients)
    if len(clients) < len(plan.clients) or not routers.isdisjoint(clients):
        raise PalioError("clients and routers need names of their own, each named once")
    if not routers:
        raise PalioError("a network has at least one router: links 1-2, or clients a@1")
    if len({frozenset(link) for link in plan.links}) < len(plan.links):
        raise PalioError("two routers have at most one link")
    is_tree = len(plan.links) == len(routers) - 1
    if not (is_tree or plan.graph) or len(reached(plan)) != len(routers):
        shape = "" if plan.graph else " in a tree: no cycles,"
        raise PalioError(f"the links do not connect all routers{shape or ':'} no islands")
    if plan.graph and (plan.hierarchy or plan.routing != "covering"):
        raise PalioError("a graph has routing covering, and no hierarchy")
    if plan.hierarchy and len({below for _, below in plan.links}) < len(plan.links):
        raise PalioError("in a hierarchy a router has one master: links MASTER-BELOW")
    watched = [(o.client, o.argument.id) for o in plan.operations if isinstance(o.argument, Watch)]
    if len(set(watched)) < len(watched):
        raise PalioError("a client uses the number of a watch once: watch 1 ..., then watch 2 ...")
    if watched and plan.graph:
        raise PalioError("clients watch patterns on trees only, not on a graph")
    if watched and plan.routing != "covering":
        raise PalioError(f"only routing covering knows patterns, not routing {plan.routing}")
    neighbours = {frozenset(link) for link in plan.links}
    for operation in plan.operations:
        if operation.client and operation.client not in clients:
            raise PalioError(f"there is no client {operation.client!r}: {operation}")
        if any(name not in routers for name in operation.places):
            raise PalioError(f"there is no such router: {operation}")
        if len(operation.places) == 2 and frozenset(operation.places) not in neighbours:
            raise PalioError(f"there is no link between these routers: {operation}")
    return plan


def reached(plan: RouterPlan) -> set[str]:
    """The routers that a path leads to from the first."""
    found = {plan.routers[0]}
    for _ in plan.links:
        found |= {name for link in plan.links if not found.isdisjoint(link) for name in link}
    return found


def _setting(line: str) -> dict[str, Any]:
    word, *values = line.split()
    if word in ("advertisements", "hierarchy", "graph") and not values:
        return {word: True}
    if word == "seed" and len(values) == 1:
        return {word: int(values[0])}
    if word == "routing" and len(values) == 1 and values[0] in ROUTINGS:
        return {word: values[0]}
    if word == "links":
        return {word: tuple(pair_of(value, "-") for value in values)}
    if word == "clients":
        return {word: tuple(pair_of(value, "@") for value in values)}
    if word in STRUCTS:
        return {word: read_struct(word, values, STRUCTS[word])}
    raise PalioError(
        f"a setting is one of seed N, routing {'|'.join(ROUTINGS)}, advertisements, hierarchy, graph, "
        "links A-B ..., datagrams NAME=SHARE ..., limits NAME=N ..., patterns NAME=N ..., "
        "clients NAME@ROUTER ..."
    )


def _filter(text: str) -> Filter:
    filters = parse(text).filters
    if len(filters) != 1:
        raise PalioError(f"a subscription here is one filter, this is {len(filters)}")
    return filters[0]


def _advertisement(text: str) -> Advertisement:
    return Advertisement(_filter(text).constraints)


def _watch(text: str) -> Watch:
    number, _, pattern = text.partition(" ")
    if not number.isdigit():
        raise PalioError(f"a watch has a number and a pattern: watch 1 [...], not {text!r}")
    return Watch(int(number), parse_pattern(pattern))


STRUCTS: dict[str, type[msgspec.Struct]] = {
    "datagrams": DatagramFaults,
    "limits": LinkLimits,
    "patterns": PatternSettings,
}
CLIENT_VERBS: dict[str, Callable[[str], RouterArgument]] = {
    RouterVerb.SUBSCRIBE: _filter,
    RouterVerb.UNSUBSCRIBE: _filter,
    RouterVerb.ADVERTISE: _advertisement,
    RouterVerb.UNADVERTISE: _advertisement,
    RouterVerb.PUBLISH: Message.from_json,
    RouterVerb.WATCH: _watch,
    RouterVerb.UNWATCH: lambda text: Unwatch(int(text)),
}
NETWORK_VERBS = (
    NetworkVerb.CRASH, NetworkVerb.RESTART, NetworkVerb.PARTITION, NetworkVerb.HEAL,
    NetworkVerb.SETTLE, NetworkVerb.SHOW,
)  # fmt: skip
GRAMMAR = PlanGrammar(_setting, CLIENT_VERBS, NETWORK_VERBS)
