"""Plans drawn at random from a seed: a tree of routers, clients, what they do, and faults.

Filters, advertisements and messages come from a small family on three attributes, built so that
covering is common: ranges of `x` and `y` at few steps, equalities and prefixes of `s`. All relations
on them are decided exactly. At the end of a plan the network is healed, then some messages are
published that must arrive wherever they are wanted. Plans with patterns are drawn by
`pattern_drawing.py`.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise
from random import Random

import msgspec

from palio.errors import PalioError
from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter
from palio.routing.patterns.watching import PatternSettings
from palio.sim.kernel.datagrams import DatagramFaults
from palio.sim.kernel.plans import NetworkVerb
from palio.sim.routers.kinds import ROUTINGS
from palio.sim.routers.links import LinkLimits
from palio.sim.routers.pattern_drawing import HOP_US, PatternDrawing
from palio.sim.routers.plans import RouterOperation, RouterPlan, RouterVerb, checked

TOPOLOGIES = ("tree", "line", "star", "hierarchy")
GRAPHS = ("ring", "mesh", "random")
"""With cycles."""
MESH_MAX = 8
"""Routers of a mesh: all with all."""
FAULTS = ("crash", "partition", "loss", "reorder", "duplicate")
STEPS = (0, 5, 10, 15)
WORDS = ("a", "ab", "abc", "b", "ba")
GAP_US_MAX = 10_000
DOWN_US_MAX = 300_000
PROBES = 5


class RouterSettings(msgspec.Struct, frozen=True):
    """What plans are drawn from, besides the seed."""

    routers: int = 20
    topology: str = "tree"
    operations: int = 100
    faults: tuple[str, ...] = ()
    routing: str = "covering"
    advertisements: bool = False
    patterns: bool = False
    """Clients watch patterns; advertisements are on then."""
    delegation: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.routers <= 1000:
            raise PalioError(f"a simulation has 1 to 1,000 routers, not {self.routers}")
        if not 0 <= self.operations <= 1_000_000:
            raise PalioError(f"a plan has 0 to 1,000,000 operations, not {self.operations}")
        for word, value, known in (
            ("topology", self.topology, (*TOPOLOGIES, *GRAPHS)),
            ("routing", self.routing, ROUTINGS),
            *(("fault", fault, FAULTS) for fault in self.faults),
        ):
            if value not in known:
                raise PalioError(f"there is no {word} {value!r}; there are {', '.join(known)}")
        if self.topology in GRAPHS and (self.patterns or self.routing != "covering"):
            raise PalioError(f"a {self.topology} goes with routing covering, without patterns")
        if self.topology == "mesh" and self.routers > MESH_MAX:
            raise PalioError(f"a mesh has at most {MESH_MAX} routers, not {self.routers}")
        if self.patterns and self.routing != "covering":
            raise PalioError(f"only routing covering knows patterns, not routing {self.routing}")


def draw(settings: RouterSettings, seed: int) -> RouterPlan:
    """The plan of a seed."""
    random = Random(f"plan {seed}")
    names = [str(i + 1) for i in range(settings.routers)]
    links = _links(settings.topology, names, random)
    clients = tuple((f"c{i + 1}", random.choice(names)) for i in range(max(2, settings.routers)))
    plan = RouterPlan(
        links=links,
        clients=clients,
        seed=seed,
        routing=settings.routing,
        advertisements=settings.advertisements,
        hierarchy=settings.topology == "hierarchy",
        graph=settings.topology in GRAPHS,
        datagrams=DatagramFaults(
            loss=random.uniform(0, 0.25) if "loss" in settings.faults else 0.0,
            duplicate=random.uniform(0, 0.2) if "duplicate" in settings.faults else 0.0,
            reorder=random.uniform(0, 0.3) if "reorder" in settings.faults else 0.0,
        ),
        limits=_limits(settings, random),
    )
    drawing = _RouterDrawing(settings, plan, random)
    if not settings.patterns:
        return checked(msgspec.structs.replace(plan, operations=tuple(drawing.operations())))
    watching = PatternDrawing(settings.operations, bool(settings.faults), plan, random)
    return checked(
        msgspec.structs.replace(
            plan,
            advertisements=True,
            limits=LinkLimits(),
            patterns=PatternSettings(
                settings.delegation, lateness=HOP_US * (settings.routers + 1), hop=HOP_US
            ),
            operations=tuple(watching.operations(drawing.faults)),
        )
    )


def _limits(settings: RouterSettings, random: Random) -> LinkLimits:
    """Small, so that partitions fill an outbox, and bursts a window."""
    window, outbox = random.choice((2, 8)), random.choice((8, 32))
    if settings.topology in GRAPHS:
        # A change of the topology restates each branch, at most one for each router. If those did not
        # fit, the session would end, which changes the topology again, for ever.
        outbox += settings.routers
    return LinkLimits(window=window, outbox=outbox)


def _links(topology: str, names: list[str], random: Random) -> tuple[tuple[str, str], ...]:
    if topology == "line":
        return tuple(pairwise(names))
    if topology == "star":
        return tuple((names[0], name) for name in names[1:])
    if topology == "mesh":
        return tuple(combinations(names, 2))
    if topology == "ring" and len(names) > 2:
        return (*pairwise(names), (names[0], names[-1]))
    tree = tuple((names[random.randrange(i)], names[i]) for i in range(1, len(names)))
    if topology == "random" and len(names) > 2:
        more = (random.sample(range(len(names)), 2) for _ in range(random.randint(1, len(names))))
        pairs = ((names[min(pair)], names[max(pair)]) for pair in more)
        return tuple(dict.fromkeys((*tree, *pairs)))
    return tree


class _RouterDrawing:
    """The operations of one plan."""

    def __init__(self, settings: RouterSettings, plan: RouterPlan, random: Random) -> None:
        self._settings = settings
        self._plan = plan
        self._random = random
        self._clients = [client for client, _ in plan.clients]
        self._filters: dict[str, list[Filter]] = {client: [] for client in self._clients}
        self._offers: dict[str, list[Advertisement]] = {client: [] for client in self._clients}

    def operations(self) -> list[RouterOperation]:
        random, time_us = self._random, 0
        operations: list[RouterOperation] = []
        if self._settings.advertisements:
            operations = [self._advertise(client, time_us) for client in self._clients[::2]]
        while len(operations) < self._settings.operations:
            time_us += random.randrange(GAP_US_MAX)
            operations.append(self._one(random.choice(self._clients), time_us))
        operations.extend(self.faults(time_us))
        operations.sort(key=lambda operation: operation.time_us)
        end_us = operations[-1].time_us if operations else 0
        operations.append(RouterOperation(end_us, NetworkVerb.SETTLE))
        operations.extend(
            self._publish(random.choice(self._clients), end_us) for _ in range(PROBES)
        )
        return operations

    def _one(self, client: str, time_us: int) -> RouterOperation:
        dice = self._random.random()
        filters, offers = self._filters[client], self._offers[client]
        if dice < 0.40:
            return self._publish(client, time_us)
        if dice < 0.45 and self._settings.advertisements:
            return self._advertise(client, time_us)
        if dice < 0.48 and offers:
            taken = offers.pop(self._random.randrange(len(offers)))
            return RouterOperation(time_us, RouterVerb.UNADVERTISE, client, argument=taken)
        if dice < 0.65 and filters:
            back = filters.pop(self._random.randrange(len(filters)))
            if self._random.random() < 0.2:  # one that may cover several, or none
                back = self._random.choice(family())
            return RouterOperation(time_us, RouterVerb.UNSUBSCRIBE, client, argument=back)
        wanted = self._random.choice(family())
        filters.append(wanted)
        return RouterOperation(time_us, RouterVerb.SUBSCRIBE, client, argument=wanted)

    def _advertise(self, client: str, time_us: int) -> RouterOperation:
        offer = self._random.choice(offers())
        self._offers[client].append(offer)
        return RouterOperation(time_us, RouterVerb.ADVERTISE, client, argument=offer)

    def _publish(self, client: str, time_us: int) -> RouterOperation:
        """A message; with advertisements mostly one that the client has advertised."""
        message = self._message()
        for _ in range(20 if self._settings.advertisements else 0):
            if any(offer.matches(message) for offer in self._offers[client]):
                break
            message = self._message()
        return RouterOperation(time_us, RouterVerb.PUBLISH, client, argument=message)

    def _message(self) -> Message:
        random = self._random
        values: dict[str, object] = {}
        if random.random() < 0.8:
            values["x"] = random.randrange(20)
        if random.random() < 0.5:
            values["y"] = random.randrange(20)
        if random.random() < 0.7:
            values["s"] = random.choice(WORDS)
        return Message(values)

    def faults(self, end_us: int) -> list[RouterOperation]:
        """Crashes and partitions up to a time."""
        random, operations = self._random, []
        count = max(1, self._settings.operations // 25)
        for fault in ("crash", "partition"):
            if fault not in self._settings.faults:
                continue
            for _ in range(random.randrange(count + 1)):
                begin_us = random.randrange(end_us + 1)
                finish_us = begin_us + random.randrange(1, DOWN_US_MAX)
                if fault == "crash":
                    where: tuple[str, ...] = (random.choice(self._plan.routers),)
                    verbs = (NetworkVerb.CRASH, NetworkVerb.RESTART)
                elif self._plan.links:
                    where = random.choice(self._plan.links)
                    verbs = (NetworkVerb.PARTITION, NetworkVerb.HEAL)
                else:
                    continue
                operations.append(RouterOperation(begin_us, verbs[0], places=where))
                operations.append(RouterOperation(finish_us, verbs[1], places=where))
        return operations


@cache
def family() -> tuple[Filter, ...]:
    """The filters that clients subscribe to."""
    ranges = [Constraint(name, op, step) for name in "xy" for op in ("<", ">=") for step in STEPS]
    words = [Constraint("s", "=", word) for word in WORDS]
    prefixes = [Constraint("s", "prefix", word) for word in ("a", "ab", "b")]
    singles = [*ranges, *words, *prefixes, Constraint("x", "any"), Constraint("s", "any")]
    pairs = [
        (a, b)
        for a in ranges[:8]
        for b in (*words[:3], *prefixes[:2], *ranges[8:10], Constraint("x", "<", 18))
    ]
    computed = [
        Constraint("=upper(s)", "=", "AB"), Constraint("=upper(s)", "prefix", "A"),
        Constraint("=x < y", "=", True), Constraint("=x < y", "=", False),
        Constraint("=abs(x - 9)", "<", 4), Constraint("=abs(x - 3)", "<=", 2),
        Constraint("=s LIKE 'a_'", "=", True), Constraint("=coalesce(y, 7)", ">=", 5),
    ]  # fmt: skip
    pairs += [(a, b) for a in computed for b in (*ranges[:2], *words[:2])]
    singles += computed
    # The same filter in another order: equal, but not the same value.
    turned = [(b, a) for a, b in pairs[::7]]
    return tuple(Filter(c) for c in [*((s,) for s in singles), *pairs, *turned])


@cache
def offers() -> tuple[Advertisement, ...]:
    """What clients advertise: all attributes that a message may have."""
    xs = [(Constraint("x", "any"),), (Constraint("x", "<", 10),), (Constraint("x", ">=", 10),)]
    ys: list[tuple[Constraint, ...]] = [(), (Constraint("y", "any"),), (Constraint("y", "<", 10),)]
    words: list[tuple[Constraint, ...]] = [
        (),
        (Constraint("s", "any"),),
        (Constraint("s", "=", "a"), Constraint("s", "=", "b")),
        (Constraint("s", "prefix", "ab"),),
    ]
    return tuple(Advertisement(x + y + s) for x in xs for y in ys for s in words)
