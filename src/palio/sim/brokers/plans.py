"""The plans of brokers: links, clients at their home brokers, limits, and what happens.

    seed 17                            of all randomness
    routing PSF                        or forwarding, iPS, PIF, DRP
    advertisements                     with forwarding: clients advertise all that they publish
    links a-b b=c*2.5                  the first dials; with `=` both do; a weight after `*`
    masters b<a c<a                    with forwarding: a is the master of b and c
    clients ann@a bob@b/50000          home; the longest that it takes with a message, in us
    limits waiting_max=3 full=drop     of brokers; what is not named has its default
    bounds queue=2 backlog=10          of durable messages, likewise

    0.000 ann subscribe orders where x > 5
    0.000 ann subscribe dead-letters durable where dead_letter IS NOT NULL
    0.000 bob subscribe mail durable group=g credit=3 full=end past_us=1000000 where s = 'a'
    0.000 cy subscribe post durable called=mail group=h where s = 'b'
    5.000 ann publish durable body=6869 {"x": 7}
    5.000 ann publish durable retain=x,s {"x": 7, "s": "a"}   `forget`, too; `subscribe v last where ...`
    6.000 bob leave mail               a durable subscription waits for its client
    7.000 bob forget mail              it ends for good
    8.000 ann disconnect               and later: connect
    10.000 crash a in-commit           or silently, or neither

Also all verbs of `palio.sim.kernel.plans`. `subscribe` names the subscription: the client's other
verbs use this name, and it is the name of a durable one at its broker, unless that is `called`
otherwise: groups of one durable name are several subscriptions. When all operations have happened,
everything heals, probes are published, and everybody leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.message import Message
from palio.protocol.broker.settings import ROUTINGS
from palio.protocol.durability.bounds import Bounds
from palio.protocol.policies.subscription_forwarding import FORWARDING
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.last_values import retaining
from palio.protocol.wire.message_headers import (
    EXPIRES_US,
    NO_HEADERS,
    NOT_BEFORE_US,
    SIZE_MAX,
    headers_of,
    packed,
)
from palio.sim.kernel.plans import (
    NetworkVerb,
    Operation,
    PlanGrammar,
    SimulationPlan,
    pair_of,
    read_struct,
    struct_line,
)
from palio.sim.kernel.process import CrashMode

BOUNDS = Bounds(retention_us=150_000_000)
"""Short, so that what is kept for latecomers is gone at the end of a run."""


class BrokerVerb(StrEnum):
    """What clients of brokers do."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    LEAVE = "leave"
    FORGET = "forget"
    CONNECT = "connect"
    DISCONNECT = "disconnect"


class SubscriptionSpec(msgspec.Struct, frozen=True):
    """A subscription to make."""

    name: str
    predicate: str
    durable: bool = False
    past_us: int | None = None
    """Durable: it begins so long ago; None: now."""
    group: str = ""
    credit: int = 1000
    full: str = ""
    deliveries_max: int = 0
    called: str = ""
    """Durable: its name at the broker; empty: `name`."""
    last: bool = False  # live: it begins with last values

    @property
    def durable_name(self) -> str:
        """Its name at the broker; empty: it is live."""
        return (self.called or self.name) if self.durable else ""

    def __str__(self) -> str:
        flags = ["durable"] * self.durable + ["last"] * self.last
        flags += [f"past_us={self.past_us}"] * (self.past_us is not None)
        flags += [f"called={self.called}"] * bool(self.called)
        flags += [f"group={self.group}"] * bool(self.group)
        flags += [f"credit={self.credit}"] * (self.credit != 1000)
        flags += [f"full={self.full}"] * bool(self.full)
        flags += [f"deliveries_max={self.deliveries_max}"] * bool(self.deliveries_max)
        return " ".join([self.name, *flags, "where", self.predicate])


DEAD_LETTERS = SubscriptionSpec("dead-letters", "dead_letter IS NOT NULL", durable=True)
"""Who makes it gets all dead letters of the network."""


class MessageSpec(msgspec.Struct, frozen=True):
    """A message to publish."""

    attributes: str
    body: bytes = b""
    durable: bool = False
    headers: bytes = NO_HEADERS
    """As they are sent."""
    expires_us: int = 0
    """It expires so long after it is published; 0: never."""
    delay_us: int = 0
    """Durable: it is published so long after it is stored."""
    retain: str = ""
    """Durable: it is the last value of the key of these names, which commas separate."""
    forget: bool = False

    def stamped(self, now_us: int) -> MessageSpec:
        """As it is published now."""
        named = dict(headers_of(self.headers))
        if self.expires_us:
            named[EXPIRES_US] = now_us + self.expires_us
        if self.delay_us:
            named[NOT_BEFORE_US] = now_us + self.delay_us
        if self.retain:
            named |= retaining(self.retain.split(","), forget=self.forget)
        if named == headers_of(self.headers):
            return self
        return msgspec.structs.replace(self, headers=packed(named, SIZE_MAX))

    def __str__(self) -> str:
        flags = ["durable"] * self.durable + [f"body={self.body.hex()}"] * bool(self.body)
        flags += [f"headers={self.headers.hex()}"] * (self.headers != NO_HEADERS)
        flags += [f"expires={self.expires_us}"] * bool(self.expires_us)
        flags += [f"delay={self.delay_us}"] * bool(self.delay_us)
        flags += [f"retain={self.retain}"] * bool(self.retain) + ["forget"] * self.forget
        return " ".join([*flags, self.attributes])


BrokerArgument: TypeAlias = SubscriptionSpec | MessageSpec | str


class BrokerOperation(Operation, frozen=True):
    """`argument`: a subscription, a message, or the name of a subscription."""

    argument: BrokerArgument | None = None

    @property
    def argument_text(self) -> str:
        return "" if self.argument is None else str(self.argument)


class PlannedLink(msgspec.Struct, frozen=True):
    """A link of two brokers. The first dials, and perhaps the second does too."""

    first: str
    second: str
    weight: float = 1.0
    both_dial: bool = False

    def __str__(self) -> str:
        sign = "=" if self.both_dial else "-"
        weight = "" if self.weight == 1 else f"*{self.weight:g}"
        return f"{self.first}{sign}{self.second}{weight}"


class ClientSpec(msgspec.Struct, frozen=True):
    name: str
    home: str
    pace_us: int = 1_000
    """The longest time that it takes to process a message."""

    def __str__(self) -> str:
        pace = "" if self.pace_us == 1_000 else f"/{self.pace_us}"
        return f"{self.name}@{self.home}{pace}"


class BrokerLimits(msgspec.Struct, frozen=True):
    """Of every broker; the meanings are those of `palio.protocol.broker.settings`."""

    link_credit: int = 20_000
    waiting_max: int = 10_000
    full: str = "block"


class BrokerPlan(SimulationPlan, frozen=True, kw_only=True):
    """A network of brokers and all that happens to it."""

    links: tuple[PlannedLink, ...] = ()
    masters: tuple[tuple[str, str], ...] = ()
    """Slaves, each with its master."""
    clients: tuple[ClientSpec, ...]
    operations: tuple[BrokerOperation, ...] = ()
    routing: str = "PSF"
    advertisements: bool = False
    limits: BrokerLimits = BrokerLimits()
    bounds: Bounds = BOUNDS

    @property
    def brokers(self) -> tuple[str, ...]:
        linked = [name for link in self.links for name in (link.first, link.second)]
        return tuple(sorted({*linked, *(client.home for client in self.clients)}))

    def role(self, name: str, neighbour: str) -> NeighbourRole:
        """What a neighbour is to a broker."""
        if (name, neighbour) in self.masters:
            return NeighbourRole.MASTER
        return NeighbourRole.SLAVE if (neighbour, name) in self.masters else NeighbourRole.PEER

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", f"routing {self.routing}"]
        lines += ["advertisements"] * self.advertisements
        lines += [" ".join(["links", *map(str, self.links)])] * bool(self.links)
        below = [f"{slave}<{master}" for slave, master in self.masters]
        lines += [" ".join(["masters", *below])] * bool(below)
        lines.append(" ".join(["clients", *map(str, self.clients)]))
        lines += struct_line("limits", self.limits, BrokerLimits())
        lines += struct_line("bounds", self.bounds, BOUNDS)
        return "\n".join([*lines, "", *map(str, self.operations)]) + "\n"


def parse_broker_plan(text: str) -> BrokerPlan:
    """Read a scenario; an error names the line."""
    settings, operations = GRAMMAR.read(text, _client_operation, BrokerOperation)
    return checked(BrokerPlan(operations=operations, **{"clients": ()} | settings))


def _client_operation(time_us: int, verb: str, client: str, argument: Any) -> BrokerOperation:
    return BrokerOperation(time_us, BrokerVerb(verb), client, argument=argument)


def checked(plan: BrokerPlan) -> BrokerPlan:
    """The plan itself, if its names fit together and its brokers are connected."""
    brokers, home_of = set(plan.brokers), {client.name: client.home for client in plan.clients}
    if len(home_of) < len(plan.clients) or not brokers.isdisjoint(home_of):
        raise PalioError("clients and brokers need names of their own, each named once")
    if not home_of:
        raise PalioError("a plan has at least one client: clients ann@a")
    pairs = {frozenset((link.first, link.second)) for link in plan.links}
    if len(pairs) < len(plan.links) or any(len(pair) < 2 for pair in pairs):
        raise PalioError("a link has two brokers, and two brokers have at most one link")
    if not is_connected(plan):
        raise PalioError("the links do not connect all brokers: no islands")
    check_masters(plan)
    pairs |= {frozenset(pair) for pair in home_of.items()}
    for operation in plan.operations:
        if operation.client and operation.client not in home_of:
            raise PalioError(f"there is no client {operation.client!r}: {operation}")
        known = brokers if operation.verb in BROKERS_ONLY else brokers | home_of.keys()
        if any(name not in known for name in operation.places):
            raise PalioError(f"there is no such place: {operation}")
        if len(operation.places) == 2 and frozenset(operation.places) not in pairs:
            raise PalioError(f"there is no link between these places: {operation}")
    return plan


def check_masters(plan: BrokerPlan) -> None:
    """Raise if masters are no neighbours, several of one broker, or form a cycle."""
    above = dict(plan.masters)
    if above and plan.routing != FORWARDING:
        raise PalioError(f"masters go with routing {FORWARDING}, not with routing {plan.routing}")
    pairs = {frozenset((link.first, link.second)) for link in plan.links}
    if len(above) < len(plan.masters) or any(frozenset(p) not in pairs for p in plan.masters):
        raise PalioError("a broker has one master, which is its neighbour: masters BELOW<MASTER")
    for name in above:
        seen = [name]
        while (master := above.get(seen[-1])) is not None:
            if master in seen:
                raise PalioError(f"masters form a cycle: {' < '.join([*seen, master])}")
            seen.append(master)


def is_connected(plan: BrokerPlan) -> bool:
    return reached(plan.links, plan.brokers[0]) == set(plan.brokers)


def reached(links: tuple[PlannedLink, ...], start: str) -> set[str]:
    """All brokers that a path leads to."""
    brokers = {start}
    for _ in links:
        for link in links:
            if not brokers.isdisjoint((link.first, link.second)):
                brokers |= {link.first, link.second}
    return brokers


def _setting(line: str) -> dict[str, Any]:
    word, *values = line.split()
    if word == "advertisements" and not values:
        return {word: True}
    if word == "seed" and len(values) == 1:
        return {word: int(values[0])}
    if word == "routing" and len(values) == 1 and values[0] in ROUTINGS:
        return {word: values[0]}
    if word == "links":
        return {word: tuple(map(_link, values))}
    if word == "masters":
        return {word: tuple(pair_of(value, "<") for value in values)}
    if word == "clients":
        return {word: tuple(map(_client, values))}
    if word == "limits":
        return {word: read_struct(word, values, BrokerLimits)}
    if word == "bounds":
        changed = read_struct(word, values, Bounds)
        names = [value.partition("=")[0] for value in values]
        return {word: msgspec.structs.replace(BOUNDS, **{n: getattr(changed, n) for n in names})}
    raise PalioError(
        f"a setting is one of seed N, routing {'|'.join(ROUTINGS)}, advertisements, links A-B ..., "
        "masters BELOW<MASTER ..., clients NAME@BROKER ..., limits NAME=VALUE ..., bounds NAME=N ..."
    )


def _link(text: str) -> PlannedLink:
    ends, _, weight = text.partition("*")
    first, second = pair_of(ends, "=" if "=" in ends else "-")
    return PlannedLink(first, second, float(weight or 1), "=" in ends)


def _client(text: str) -> ClientSpec:
    name, rest = pair_of(text, "@")
    home, _, pace = rest.partition("/")
    return ClientSpec(name, home, int(pace or 1_000))


def _subscription(text: str) -> SubscriptionSpec:
    head, where, predicate = text.partition(" where ")
    name, *flags = head.split() or [""]
    if not where or not name:
        raise PalioError(f"a subscription has a name and a predicate: s1 where x > 5, not {text!r}")
    parse(predicate)
    values: dict[str, Any] = {flag: True for flag in flags if flag in ("durable", "last")}
    values |= dict(pair_of(flag, "=") for flag in flags if flag not in values)
    known = set(SubscriptionSpec.__struct_fields__) - {"name", "predicate"}
    if strange := sorted(values.keys() - known):
        raise PalioError(f"a subscription has no {strange[0]!r}; it has {', '.join(sorted(known))}")
    return msgspec.convert(
        {"name": name, "predicate": predicate} | values, SubscriptionSpec, strict=False
    )


def _message(text: str) -> MessageSpec:
    head, brace, rest = text.partition("{")
    attributes, flags = brace + rest, head.split()
    Message.from_json(attributes)
    found: dict[str, Any] = {}
    for flag in flags:
        word, is_pair, value = flag.partition("=")
        if is_pair and word in _MESSAGE_FLAGS:
            name, read = _MESSAGE_FLAGS[word]
            found[name] = read(value)
        elif flag in ("durable", "forget"):
            found[flag] = True
        else:
            raise PalioError(f"a message has no {flag!r}: publish durable body=6869 {{...}}")
    return MessageSpec(attributes, **found)


_MESSAGE_FLAGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "body": ("body", bytes.fromhex),
    "headers": ("headers", bytes.fromhex),
    "expires": ("expires_us", int),
    "delay": ("delay_us", int),
    "retain": ("retain", str),
}


def _name(text: str) -> str:
    if not text or " " in text:
        raise PalioError(f"this verb takes the name of a subscription, not {text!r}")
    return text


def _nothing(text: str) -> None:
    if text:
        raise PalioError(f"this verb takes nothing, not {text!r}")


CLIENT_VERBS: dict[str, Callable[[str], BrokerArgument | None]] = {
    BrokerVerb.PUBLISH: _message,
    BrokerVerb.SUBSCRIBE: _subscription,
    BrokerVerb.LEAVE: _name,
    BrokerVerb.FORGET: _name,
    BrokerVerb.CONNECT: _nothing,
    BrokerVerb.DISCONNECT: _nothing,
}
BROKERS_ONLY = (NetworkVerb.CRASH, NetworkVerb.RESTART, NetworkVerb.SHOW)
GRAMMAR = PlanGrammar(_setting, CLIENT_VERBS, NetworkVerb, CrashMode)
