"""Plans of brokers, drawn at random from a seed.

Messages and predicates come from a small family on two attributes, so that most messages match some
subscriptions and few match all. Now and then bounds are so small that queues, streams and links fill.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random

import msgspec

from palio.errors import PalioError
from palio.protocol.broker.settings import ROUTINGS
from palio.protocol.durability.bounds import Bounds
from palio.protocol.policies.subscription_forwarding import FORWARDING
from palio.protocol.wire.message_headers import NO_HEADERS, packed
from palio.sim.brokers.last_value_drawing import with_last_values
from palio.sim.brokers.plans import (
    BOUNDS,
    DEAD_LETTERS,
    BrokerArgument,
    BrokerLimits,
    BrokerOperation,
    BrokerPlan,
    BrokerVerb,
    ClientSpec,
    MessageSpec,
    PlannedLink,
    SubscriptionSpec,
    checked,
)
from palio.sim.kernel.plans import NetworkVerb
from palio.sim.kernel.process import CrashMode

TOPOLOGIES = ("ring", "random", "tree")
HIERARCHY = "hierarchy"
"""A tree in which every broker but the first has a master; with forwarding only."""
FAULTS = ("crash", "cut", "silence", "partition", "freeze")
ANY = "any"
CLIENTS_MAX = 10
SUBSCRIPTIONS_MAX = 30
GAP_US = 60_000
BURST = 150
"""How many messages come at once, now and then."""
PREDICATES = (
    "x < 3", "x >= 5", "x > 1 AND s = 'a'", "s = 'b' OR x = 7", "x != 4", "s LIKE 'a%'", "x >= 0",
    "x BETWEEN 2 AND 6 AND s != 'b'", "upper(s) = 'AB'", "x % 3 = 1 AND s != 'a'",
    "s LIKE 'a_' OR abs(x - 4) <= 1", "length(s) < x AND x < 7", "x > 2 AND coalesce(y, 0) = 0",
)  # fmt: skip
CRASH_MODES = (CrashMode.NOW, CrashMode.SILENTLY, *(CrashMode.IN_COMMIT,) * 3)
WORDS = ("a", "ab", "b")


class BrokerSettings(msgspec.Struct, frozen=True):
    """What plans are drawn from, besides the seed."""

    brokers: int = 5
    """The most; the seed says how many."""
    topology: str = ANY
    operations: int = 120
    faults: tuple[str, ...] = ()
    routing: str = ANY

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= 50:
            raise PalioError(f"a simulation has 1 to 50 brokers, not {self.brokers}")
        if not 0 <= self.operations <= 100_000:
            raise PalioError(f"a plan has 0 to 100,000 operations, not {self.operations}")
        for word, value, known in (
            ("topology", self.topology, (ANY, *TOPOLOGIES, HIERARCHY)),
            ("routing", self.routing, (ANY, *ROUTINGS)),
            *(("fault", fault, FAULTS) for fault in self.faults),
        ):
            if value not in known:
                raise PalioError(f"there is no {word} {value!r}; there are {', '.join(known)}")
        if self.topology == HIERARCHY and self.routing not in (ANY, FORWARDING):
            raise PalioError(f"a hierarchy goes with routing {FORWARDING}, not {self.routing}")


def draw(settings: BrokerSettings, seed: int) -> BrokerPlan:
    """The plan of a seed."""
    random = Random(f"brokers {seed}")
    routing = random.choice(ROUTINGS) if settings.routing == ANY else settings.routing
    if settings.topology == HIERARCHY:
        routing = FORWARDING
    topology = random.choice(TOPOLOGIES) if settings.topology == ANY else settings.topology
    count = random.randint(min(3, settings.brokers), settings.brokers)
    brokers = tuple(
        "abcdefghijklmnopqrstuvwxyz"[i] if count <= 26 else f"b{i}" for i in range(count)
    )
    links = _links(topology, brokers, random)
    clients = tuple(
        ClientSpec(f"c{i + 1}", random.choice(brokers), random.choice((1_000, 50_000, 1_500_000)))
        for i in range(random.randint(2, CLIENTS_MAX))
    )
    is_tight = random.random() < 0.4
    plan = BrokerPlan(
        seed=seed,
        routing=routing,
        links=links,
        clients=clients,
        advertisements=routing == FORWARDING and random.random() < 0.3,
        limits=BrokerLimits(
            link_credit=random.choice((2, 8)) if random.random() < 0.3 else 20_000,
            waiting_max=random.choice((3, 20)) if random.random() < 0.2 else 10_000,
            full=random.choice(("block", "block", "drop", "end")) if is_tight else "block",
        ),
        bounds=_bounds(random, is_tight),
    )
    plan = msgspec.structs.replace(plan, masters=_masters(settings.topology, plan))
    drawing = _BrokerDrawing(settings, plan, random)
    operations = with_last_values(drawing.operations(), Random(f"last values {seed}"))
    return checked(msgspec.structs.replace(plan, operations=operations))


def _bounds(random: Random, is_tight: bool) -> Bounds:
    if not is_tight:
        return BOUNDS
    return msgspec.structs.replace(
        BOUNDS,
        queue=random.choice((2, 5, 1000)),
        backlog=random.choice((3, 10, 1000)),
        window=random.choice((1, 3, 1024)),
        cache_bytes=random.choice((1, 1 << 20)),
    )


def _links(topology: str, names: tuple[str, ...], random: Random) -> tuple[PlannedLink, ...]:
    pairs: set[tuple[str, str]] = set()
    if topology == "ring":
        pairs.update(pairwise(names))
    else:
        pairs.update((names[random.randrange(i)], names[i]) for i in range(1, len(names)))
    if topology == "ring" and len(names) > 2:
        pairs.add((names[0], names[-1]))
    if topology not in ("tree", HIERARCHY) and len(names) > 1:
        for _ in range(random.randint(0, len(names) // 2)):
            i, j = sorted(random.sample(range(len(names)), 2))
            pairs.add((names[i], names[j]))
    links = []
    for a, b in sorted(pairs):
        first, second = (a, b) if random.random() < 0.5 else (b, a)
        weight = float(random.choice((1, 1, 2, 5)))
        links.append(PlannedLink(first, second, weight, random.random() < 0.2))
    return tuple(links)


def _masters(topology: str, plan: BrokerPlan) -> tuple[tuple[str, str], ...]:
    """Masters of some brokers: none, of a few, or of all but the first, in the order of their names.
    With advertisements only of those that have no other neighbour: a slave has no peers then."""
    random = Random(f"masters {plan.seed}")
    share = 1.0 if topology == HIERARCHY else random.choice((0.0, 0.0, 0.4, 1.0))
    if plan.routing != FORWARDING:
        return ()
    masters: list[tuple[str, str]] = []
    ordered = sorted(plan.brokers, key=lambda name: (len(name), name))
    for place, name in enumerate(ordered):
        beside = [other for other in ordered if _is_linked(plan, name, other)]
        above = [other for other in beside if other in ordered[:place]]
        is_free = topology == HIERARCHY or not plan.advertisements or len(beside) == 1
        if above and is_free and random.random() < share:
            masters.append((name, random.choice(above)))
    return tuple(masters)


def _is_linked(plan: BrokerPlan, a: str, b: str) -> bool:
    return any({link.first, link.second} == {a, b} for link in plan.links)


class _BrokerDrawing:
    """The operations of one plan."""

    def __init__(self, settings: BrokerSettings, plan: BrokerPlan, random: Random) -> None:
        self._settings = settings
        self._plan = plan
        self._random = random
        self._end_us = settings.operations * GAP_US
        self._subscriptions = self._draw_subscriptions()
        self._home_of = {client.name: client.home for client in plan.clients}
        self._found: list[BrokerOperation] = []

    def operations(self) -> tuple[BrokerOperation, ...]:
        for _ in range(self._settings.operations):
            self._work(self._random.randrange(self._end_us))
        for fault in self._settings.faults:
            for _ in range(self._random.randint(0, 4)):
                self._fault(fault, self._random.randrange(max(1, self._end_us)))
        collector = self._plan.clients[0].name
        self._add(0, BrokerVerb.SUBSCRIBE, collector, DEAD_LETTERS)
        return tuple(sorted(self._found, key=lambda operation: operation.time_us))

    def _add(
        self, time_us: int, verb: BrokerVerb, client: str, argument: BrokerArgument | None = None
    ) -> None:
        self._found.append(BrokerOperation(time_us, verb, client, argument=argument))

    def _add_fault(
        self, time_us: int, verb: NetworkVerb, *places: str, mode: CrashMode = CrashMode.NOW
    ) -> None:
        self._found.append(BrokerOperation(time_us, verb, "", places, mode))

    def _draw_subscriptions(self) -> list[tuple[SubscriptionSpec, list[str]]]:
        """Subscriptions, each with the clients that may take part."""
        random, subscriptions = self._random, []
        for i in range(random.randint(1, SUBSCRIPTIONS_MAX)):
            client = random.choice(self._plan.clients)
            durable = random.random() < 0.65
            neighbours = [c.name for c in self._plan.clients if c.home == client.home]
            in_group = len(neighbours) > 1 and random.random() < 0.25
            spec = SubscriptionSpec(
                f"s{i + 1}",
                random.choice(PREDICATES),
                durable,
                credit=random.choice((1, 3, 1000)),
                group=f"g{i + 1}" if in_group else "",
                full=random.choice(("", "", "", "block", "drop", "end")),
                deliveries_max=3 if durable and i % 3 == 0 else 0,
            )
            has_past = durable and not in_group and random.random() < 0.3
            if has_past and "end" not in (
                spec.full,
                self._plan.limits.full,
            ):  # else everything is redelivered
                past_us = random.choice((0, 1_000_000, 30_000_000))
                spec = msgspec.structs.replace(spec, past_us=past_us)
            may_block = durable and self._plan.limits.full == "block"  # else it is refused
            if spec.full == "block" and not may_block:
                spec = msgspec.structs.replace(spec, full="")
            subscriptions.append((spec, neighbours if in_group else [client.name]))
        return self._share_names(subscriptions)

    def _share_names(
        self, subscriptions: list[tuple[SubscriptionSpec, list[str]]]
    ) -> list[tuple[SubscriptionSpec, list[str]]]:
        """Give most durable subscriptions in groups the name of another one at the same broker."""
        random, found = Random(f"names {self._plan.seed}"), []
        home_of = {client.name: client.home for client in self._plan.clients}
        names: dict[str, list[str]] = {}
        for spec, clients in subscriptions:
            known = names.setdefault(home_of[clients[0]], [])
            if spec.durable and spec.group and known and random.random() < 0.8:
                spec = msgspec.structs.replace(spec, called=random.choice(known))
            elif spec.durable:
                known.append(spec.name)
            found.append((spec, clients))
        return found

    def _work(self, time_us: int) -> None:
        random = self._random
        draw = random.random()
        if draw < 0.55:
            self._publish(time_us)
            return
        spec, clients = random.choice(self._subscriptions)
        client = random.choice(clients)
        if draw < 0.78:
            self._add(time_us, BrokerVerb.SUBSCRIBE, client, spec)
        elif draw < 0.84:
            self._add(time_us, BrokerVerb.LEAVE, client, spec.name)
        elif draw < 0.90:
            self._add(time_us, BrokerVerb.FORGET, client, spec.name)
            if random.random() < 0.5:  # the name is reused at once
                predicate = random.choice((spec.predicate, random.choice(PREDICATES)))
                anew = msgspec.structs.replace(spec, predicate=predicate)
                if len(clients) == 1 and spec.past_us is None:
                    self._subscriptions[self._subscriptions.index((spec, clients))] = (
                        anew,
                        clients,
                    )
                    spec = anew
                self._add(
                    time_us + random.choice((0, 1, 3_000, 20_000)),
                    BrokerVerb.SUBSCRIBE,
                    client,
                    spec,
                )
        else:
            anybody = random.choice(self._plan.clients).name
            self._add(time_us, BrokerVerb.DISCONNECT, anybody)
            self._add(time_us + random.randrange(3_000_000), BrokerVerb.CONNECT, anybody)

    def _publish(self, time_us: int) -> None:
        random = self._random
        client = random.choice(self._plan.clients).name
        if random.random() < 0.03:  # many of one kind at once, which a broker reads by kernels
            durable = random.random() < 0.6
            for _ in range(BURST):
                self._add(time_us, BrokerVerb.PUBLISH, client, self._message(durable))
            return
        for i in range(random.choice((1, 1, 1, 2, 8))):
            spec = self._message(random.random() < 0.6)
            self._add(time_us + 500 * i, BrokerVerb.PUBLISH, client, spec)

    def _message(self, durable: bool) -> MessageSpec:
        random = self._random
        text = f'{{"x": {random.randrange(9)}, "s": "{random.choice(WORDS)}"}}'
        body = random.randbytes(random.choice((0, 5)))
        headers = packed({"of": body}, 100) if body else NO_HEADERS
        expires_us = 1 + 50_000 * body[1] if body and body[0] < 64 else 0
        delay_us = 10_000 * body[1] if durable and body and 64 <= body[0] < 96 else 0
        return MessageSpec(text, body, durable, headers, expires_us, delay_us)

    def _fault(self, fault: str, time_us: int) -> None:
        random = self._random
        places = [*self._plan.brokers, *self._home_of]
        broker = random.choice(self._plan.brokers)
        links = [(link.first, link.second) for link in self._plan.links]
        links += [random.choice(list(self._home_of.items()))]
        link = random.choice(links)
        lasts_us = random.choice((100_000, 2_000_000, 9_000_000))
        end_us = time_us + random.randrange(lasts_us)
        if fault == "crash":
            mode = random.choice(CRASH_MODES)
            self._add_fault(time_us, NetworkVerb.CRASH, broker, mode=mode)
            self._add_fault(end_us, NetworkVerb.RESTART, broker)
        elif fault == "cut":
            self._add_fault(time_us, NetworkVerb.CUT, *link)
        elif fault == "silence":
            self._add_fault(time_us, NetworkVerb.SILENCE, *link)
        elif fault == "freeze":
            place = random.choice(places)
            self._add_fault(time_us, NetworkVerb.FREEZE, place)
            self._add_fault(end_us, NetworkVerb.THAW, place)
        elif random.random() < 0.5:
            self._add_fault(time_us, NetworkVerb.PARTITION, *link)
            self._add_fault(end_us, NetworkVerb.HEAL, *link)
        else:
            self._split(time_us, end_us)

    def _split(self, time_us: int, end_us: int) -> None:
        """The network falls into two, each client on the side of its home broker or not."""
        brokers = self._plan.brokers
        side = set(self._random.sample(brokers, self._random.randint(1, len(brokers))))
        for link in self._plan.links:
            if (link.first in side) != (link.second in side):
                self._add_fault(time_us, NetworkVerb.PARTITION, link.first, link.second)
                self._add_fault(end_us, NetworkVerb.HEAL, link.first, link.second)
