"""What clients do with patterns, drawn at random from a seed.

Messages carry symbols: {"t": "a", "k": 1}. A quarter of the clients publish, and each symbol comes
from one of them, seldom two, so sub-patterns often come from one side of the tree. A
plan has rounds: first clients advertise, watch patterns and subscribe, then the network comes to
rest, then messages are published, one every few milliseconds. Between the rounds some watches and advertisements go and others come. With faults,
advertisements also change and routers crash while messages are published.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from palio.errors import InvalidPattern
from palio.model.advertisement import Advertisement
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Constraint, Predicate
from palio.routing.patterns.packets import Unwatch, Watch
from palio.routing.patterns.pattern import (
    And,
    Node,
    Or,
    Part,
    Pattern,
    Then,
    With,
    Within,
    bounded,
    core,
)
from palio.sim.kernel.plans import NetworkVerb
from palio.sim.routers.plans import RouterArgument, RouterOperation, RouterPlan, RouterVerb

SYMBOLS = "abcdef"
HOP_US = 20_000
"""A link takes 5 ms at most, and a little more when its window is full."""
GAP_US_MAX = 10_000
REST_US = 5_000_000
ROUNDS = 2


class PatternDrawing:
    """The operations of one plan with patterns."""

    def __init__(self, operations: int, faulty: bool, plan: RouterPlan, random: Random) -> None:
        self._count = operations
        self._faulty = faulty
        self._random = random
        self._clients = [client for client, _ in plan.clients]
        self._sources = random.sample(self._clients, max(2, len(self._clients) // 4))
        self._offers: dict[str, list[str]] = {client: [] for client in self._clients}
        self._watches: list[tuple[str, int]] = []
        self._patterns: list[Pattern] = []
        self._numbers = 0
        self._time_us = 0
        self._found: list[RouterOperation] = []

    def operations(self, faults: Callable[[int], list[RouterOperation]]) -> list[RouterOperation]:
        """`faults`: those of a plan that takes so long."""
        for symbol in SYMBOLS:
            for client in self._random.sample(self._sources, self._random.choice((1, 1, 1, 1, 2))):
                self._advertise(client, symbol)
        for number in range(ROUNDS):
            if number:
                self._change()
            for _ in range(max(1, self._count // 30)):
                self._watch(self._random.choice(self._clients))
            self._rest()
            for _ in range(self._count // ROUNDS):
                self._time_us += self._random.randrange(GAP_US_MAX)
                self._one()
            self._rest()
        operations = self._found + faults(self._time_us)
        return sorted(operations, key=lambda operation: operation.time_us)

    def _add(self, verb: RouterVerb, client: str, argument: RouterArgument) -> None:
        self._found.append(RouterOperation(self._time_us, verb, client, argument=argument))

    def _rest(self) -> None:
        self._found.append(RouterOperation(self._time_us, NetworkVerb.SETTLE))
        self._time_us += REST_US

    def _one(self) -> None:
        dice, client = self._random.random(), self._random.choice(self._clients)
        if dice < 0.05:
            self._add(RouterVerb.SUBSCRIBE, client, _wide(self._random).filters[0])
        elif dice < 0.10:
            self._add(RouterVerb.UNSUBSCRIBE, client, _wide(self._random).filters[0])
        elif dice < 0.13 and self._faulty:
            self._change()
        else:
            self._publish()

    def _change(self) -> None:
        """Some watches and advertisements go, others come."""
        if self._watches:
            client, number = self._watches.pop(self._random.randrange(len(self._watches)))
            self._add(RouterVerb.UNWATCH, client, Unwatch(number))
        offering = [client for client, symbols in self._offers.items() if symbols]
        if offering and self._random.random() < 0.5:
            client = self._random.choice(offering)
            symbols = self._offers[client]
            symbol = symbols.pop(self._random.randrange(len(symbols)))
            self._add(RouterVerb.UNADVERTISE, client, _offer(symbol))
        if self._random.random() < 0.5:
            self._advertise(self._random.choice(self._sources), self._random.choice(SYMBOLS))

    def _advertise(self, client: str, symbol: str) -> None:
        if symbol not in self._offers[client]:
            self._offers[client].append(symbol)
            self._add(RouterVerb.ADVERTISE, client, _offer(symbol))

    def _publish(self) -> None:
        offering = [(c, symbol) for c, symbols in self._offers.items() for symbol in symbols]
        if offering:
            client, symbol = self._random.choice(offering)
            self._add(
                RouterVerb.PUBLISH, client, Message({"t": symbol, "k": self._random.randint(1, 2)})
            )

    def _watch(self, client: str) -> None:
        pattern = self._pattern()
        self._patterns.append(pattern)
        self._numbers += 1
        self._watches.append((client, self._numbers))
        self._add(RouterVerb.WATCH, client, Watch(self._numbers, pattern))

    def _pattern(self) -> Pattern:
        """A new pattern; or one that is watched already, the same with another `within`, or with one
        more step."""
        random = self._random
        dice = random.random() if self._patterns else 1.0
        if dice > 0.45:
            parts: list[Node] = [_part(random) for _ in range(random.randint(2, 4))]
            return Pattern(_tree(random, parts), ("k",) if random.random() < 0.3 else ())
        known = random.choice(self._patterns)
        if dice > 0.3:
            return known
        plain = core(known)[0].node
        node = Then((plain, _part(random))) if dice > 0.1 else plain
        return bounded(Pattern(node, known.same), random.choice((None, 50_000, 500_000)))


def _offer(symbol: str) -> Advertisement:
    return Advertisement((Constraint("t", "=", symbol), Constraint("k", "any")))


def _wide(random: Random) -> Predicate:
    return parse(random.choice([*(f"t = '{symbol}'" for symbol in SYMBOLS), "t IS NOT NULL"]))


def _part(random: Random) -> Part:
    symbol = random.choice(SYMBOLS)
    if random.random() < 0.1:
        return Part(parse(f"t = '{symbol}' OR t = '{random.choice(SYMBOLS)}'"))
    return Part(parse(f"t = '{symbol}'" + " AND k = 1" * (random.random() < 0.2)))


def _tree(random: Random, parts: list[Node]) -> Node:
    if len(parts) == 1:
        return parts[0]
    cut = random.randrange(1, len(parts))
    nodes = (_tree(random, parts[:cut]), _tree(random, parts[cut:]))
    kind = random.choice((Then, Then, Then, And, With, Or))
    try:
        node: Node = kind(nodes)
    except InvalidPattern:  # an `and` whose parts may want one message
        node = Then(nodes)
    return Within(node, random.randint(10, 300) * 1000) if random.random() < 0.3 else node
