"""What happens to a simulated network, as values and as text.

A scenario in text: first the network, then what happens and when (in milliseconds).

    seed 17                            of the network's randomness
    routing covering                   or plain, flooding
    advertisements                     subscriptions follow advertisements
    hierarchy                          the first router of a link is the master of the second
    links 1-2 1-3
    weather loss=0.1 duplicate=0.05    what is not named has its default
    limits window=8 outbox=32          of the links, likewise
    patterns lateness=90000 hop=6000   how routers deal with patterns, likewise
    clients a@1 b@3

    0.000 a subscribe x > 5 AND s = 'b'
    1.500 b advertise x IS NOT NULL AND s = 'b'
    9.250 b publish {"x": 7, "s": "b"}
    9.500 a watch 1 [x > 5] then [s = 'b'] within 1 second
    10.000 crash 2
    12.000 restart 2
    13.000 cut 1 3
    15.000 heal 1 3
    20.000 settle                      everything is healed; on when the network is quiet
    20.000 show 1                      the state of a router, into the trace

Also: unsubscribe, unadvertise, unwatch 1. A client uses the number of a watch once. The constraints of an advertisement are joined by AND in text, and
several on one name are alternatives. A plan and its text say the same.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from palio.errors import PalioError
from palio.model.advertisement import Advertisement
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.protocol.links import Limits
from palio.routing.patterns.language import parse as parse_pattern
from palio.routing.patterns.packets import Unwatch, Watch
from palio.routing.patterns.watching import PatternSettings
from palio.sim.network import Weather
from palio.sim.routers import ROUTINGS


class Verb(StrEnum):
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    ADVERTISE = "advertise"
    UNADVERTISE = "unadvertise"
    WATCH = "watch"
    UNWATCH = "unwatch"
    PUBLISH = "publish"
    CRASH = "crash"
    RESTART = "restart"
    CUT = "cut"
    HEAL = "heal"
    SETTLE = "settle"
    SHOW = "show"


Argument: TypeAlias = Filter | Advertisement | Message | Watch | Unwatch | tuple[str, ...]


class Operation(msgspec.Struct, frozen=True):
    """One thing that happens. `client` is empty when nobody but the network does it."""

    time_us: int
    verb: Verb
    client: str
    argument: Argument

    def __str__(self) -> str:
        argument = self.argument
        if isinstance(argument, Message):
            text = argument.to_json()
        elif isinstance(argument, tuple):
            text = " ".join(argument)
        elif isinstance(argument, Watch):
            text = f"{argument.id} {argument.pattern}"
        elif isinstance(argument, Unwatch):
            text = str(argument.id)
        else:
            text = str(Filter(argument.constraints))
        return " ".join(part for part in (ms(self.time_us), self.client, self.verb, text) if part)


class Plan(msgspec.Struct, frozen=True):
    """A network and all that happens to it: a run depends on nothing else."""

    links: tuple[tuple[str, str], ...]
    clients: tuple[tuple[str, str], ...]
    """Name and router."""
    operations: tuple[Operation, ...] = ()
    seed: int = 0
    routing: str = "covering"
    advertisements: bool = False
    hierarchy: bool = False
    weather: Weather = Weather()
    limits: Limits = Limits()
    patterns: PatternSettings = PatternSettings()

    @property
    def routers(self) -> tuple[str, ...]:
        places = [name for link in self.links for name in link] + [at for _, at in self.clients]
        return tuple(dict.fromkeys(places))

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", f"routing {self.routing}"]
        lines += ["advertisements"] * self.advertisements + ["hierarchy"] * self.hierarchy
        lines.append(" ".join(["links", *(f"{a}-{b}" for a, b in self.links)]))
        for word, value, default in (
            ("weather", self.weather, Weather()),
            ("limits", self.limits, Limits()),
            ("patterns", self.patterns, PatternSettings()),
        ):
            changed = {
                name: getattr(value, name)
                for name in value.__struct_fields__
                if getattr(value, name) != getattr(default, name)
            }
            if changed:
                lines.append(" ".join([word, *(f"{n}={v}" for n, v in changed.items())]))
        lines.append(" ".join(["clients", *(f"{c}@{r}" for c, r in self.clients)]))
        return "\n".join([*lines, "", *map(str, self.operations)]) + "\n"


def ms(time_us: int) -> str:
    """A time as it is written."""
    return f"{time_us // 1000}.{time_us % 1000:03d}"


def parse_plan(text: str) -> Plan:
    """Read a scenario; an error names the line."""
    fields: dict[str, object] = {"links": (), "clients": ()}
    operations: list[Operation] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip() if raw.lstrip().startswith("#") else raw.strip()
        if not line:
            continue
        try:
            if line[0].isdigit():
                operations.append(_operation(line))
            else:
                fields.update(_setting(line))
        except (PalioError, ValueError, TypeError) as error:
            raise PalioError(f"line {number} of the scenario, {line!r}: {error}") from None
    plan = Plan(operations=tuple(operations), **fields)  # type: ignore[arg-type]
    return checked(plan)


def checked(plan: Plan) -> Plan:
    """The plan itself, if its names fit together and its routers form a tree."""
    routers, clients = set(plan.routers), dict(plan.clients)
    if len(clients) < len(plan.clients) or not routers.isdisjoint(clients):
        raise PalioError("clients and routers need names of their own, each named once")
    if not routers:
        raise PalioError("a network has at least one router: links 1-2, or clients a@1")
    if len(plan.links) != len(routers) - 1 or len(_reached(plan)) != len(routers):
        raise PalioError("the links do not connect all routers in a tree: no cycles, no islands")
    if plan.hierarchy and len({below for _, below in plan.links}) < len(plan.links):
        raise PalioError("in a hierarchy a router has one master: links MASTER-BELOW")
    watched = [(o.client, o.argument.id) for o in plan.operations if isinstance(o.argument, Watch)]
    if len(set(watched)) < len(watched):
        raise PalioError("a client uses the number of a watch once: watch 1 ..., then watch 2 ...")
    if watched and plan.routing != "covering":
        raise PalioError(f"only routing covering knows patterns, not routing {plan.routing}")
    neighbours = {frozenset(link) for link in plan.links}
    for operation in plan.operations:
        argument = operation.argument
        if operation.client and operation.client not in clients:
            raise PalioError(f"there is no client {operation.client!r}: {operation}")
        if not isinstance(argument, tuple):
            continue
        if any(name not in routers for name in argument):
            raise PalioError(f"there is no such router: {operation}")
        if len(argument) == 2 and frozenset(argument) not in neighbours:
            raise PalioError(f"there is no link between these routers: {operation}")
    return plan


def _reached(plan: Plan) -> set[str]:
    reached = {plan.routers[0]}
    for _ in plan.links:
        reached |= {name for link in plan.links if not reached.isdisjoint(link) for name in link}
    return reached


def _setting(line: str) -> dict[str, object]:
    word, *values = line.split()
    if word in ("advertisements", "hierarchy") and not values:
        return {word: True}
    if word == "seed" and len(values) == 1:
        return {word: int(values[0])}
    if word == "routing" and len(values) == 1 and values[0] in ROUTINGS:
        return {word: values[0]}
    if word == "links":
        return {word: tuple(_two(value, "-") for value in values)}
    if word == "clients":
        return {word: tuple(_two(value, "@") for value in values)}
    if word in KINDS:
        kind = KINDS[word]
        pairs = dict(_two(value, "=") for value in values)
        for name in pairs.keys() - set(kind.__struct_fields__):
            known = ", ".join(kind.__struct_fields__)
            raise PalioError(f"there is no {name!r} in the {word}; there are {known}")
        return {word: msgspec.convert(pairs, kind, strict=False)}
    raise PalioError(
        f"a setting is one of seed N, routing {'|'.join(ROUTINGS)}, advertisements, hierarchy, "
        "links A-B ..., weather NAME=SHARE ..., limits NAME=N ..., patterns NAME=N ..., "
        "clients NAME@ROUTER ..."
    )


def _two(value: str, separator: str) -> tuple[str, str]:
    left, found, right = value.partition(separator)
    if not (left and found and right):
        raise PalioError(f"{value!r} is not of the form a{separator}b")
    return left, right


def _operation(line: str) -> Operation:
    time, _, rest = line.partition(" ")
    time_us = round(float(time) * 1000)
    word, _, argument = rest.strip().partition(" ")
    if word in NETWORK_VERBS:
        routers = tuple(argument.split())
        if len(routers) != NETWORK_VERBS[Verb(word)]:
            raise PalioError(f"{word} takes {NETWORK_VERBS[Verb(word)]} routers")
        return Operation(time_us, Verb(word), "", routers)
    verb, _, argument = argument.partition(" ")
    if verb not in CLIENT_VERBS:
        verbs = ", ".join([*CLIENT_VERBS, *NETWORK_VERBS])
        raise PalioError(f"no verb in {rest!r}; the verbs are {verbs}")
    return Operation(time_us, Verb(verb), word, CLIENT_VERBS[Verb(verb)](argument))


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


KINDS: dict[str, type[Weather | Limits | PatternSettings]] = {
    "weather": Weather,
    "limits": Limits,
    "patterns": PatternSettings,
}
CLIENT_VERBS: dict[Verb, Callable[[str], Argument]] = {
    Verb.SUBSCRIBE: _filter,
    Verb.UNSUBSCRIBE: _filter,
    Verb.ADVERTISE: _advertisement,
    Verb.UNADVERTISE: _advertisement,
    Verb.PUBLISH: Message.from_json,
    Verb.WATCH: _watch,
    Verb.UNWATCH: lambda text: Unwatch(int(text)),
}
NETWORK_VERBS = {
    Verb.CRASH: 1, Verb.RESTART: 1, Verb.CUT: 2, Verb.HEAL: 2, Verb.SETTLE: 0, Verb.SHOW: 1,
}  # fmt: skip
