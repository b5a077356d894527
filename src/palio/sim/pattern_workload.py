"""What clients do with patterns, drawn at random from a seed.

Messages are letters: {"t": "a", "k": 1}. A quarter of the clients publish, and each letter comes
from one of them, seldom two: so sub-patterns often come from one side of the tree. A plan has rounds: first clients advertise, watch patterns
and subscribe, then the network comes to rest, then messages are published, one every few
milliseconds. Between the rounds some watches and advertisements go and others come. With faults,
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
from palio.routing.patterns.pattern import And, Node, Or, Part, Pattern, Then, Within
from palio.sim.operations import Argument, Operation, Plan, Verb

LETTERS = "abcdef"
HOP_US = 20_000
"""A link takes 5 ms at most, and a little more when its window is full."""
GAP_US_MAX = 10_000
REST_US = 5_000_000
ROUNDS = 2


class PatternDrawing:
    """The operations of one plan with patterns."""

    def __init__(self, operations: int, faulty: bool, plan: Plan, random: Random) -> None:
        self._count = operations
        self._faulty = faulty
        self._random = random
        self._clients = [client for client, _ in plan.clients]
        self._sources = random.sample(self._clients, max(2, len(self._clients) // 4))
        self._offers: dict[str, list[str]] = {client: [] for client in self._clients}
        self._watches: list[tuple[str, int]] = []
        self._numbers = 0
        self._time_us = 0
        self._found: list[Operation] = []

    def operations(self, faults: Callable[[int], list[Operation]]) -> list[Operation]:
        """`faults`: those of a plan that takes so long."""
        for letter in LETTERS:
            for client in self._random.sample(self._sources, self._random.choice((1, 1, 1, 1, 2))):
                self._advertise(client, letter)
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
        found = self._found + faults(self._time_us)
        return sorted(found, key=lambda operation: operation.time_us)

    def _add(self, verb: Verb, client: str, argument: Argument) -> None:
        self._found.append(Operation(self._time_us, verb, client, argument))

    def _rest(self) -> None:
        self._add(Verb.SETTLE, "", ())
        self._time_us += REST_US

    def _one(self) -> None:
        dice, client = self._random.random(), self._random.choice(self._clients)
        if dice < 0.05:
            self._add(Verb.SUBSCRIBE, client, _wide(self._random).filters[0])
        elif dice < 0.10:
            self._add(Verb.UNSUBSCRIBE, client, _wide(self._random).filters[0])
        elif dice < 0.13 and self._faulty:
            self._change()
        else:
            self._publish()

    def _change(self) -> None:
        """Some watches and advertisements go, others come."""
        if self._watches:
            client, number = self._watches.pop(self._random.randrange(len(self._watches)))
            self._add(Verb.UNWATCH, client, Unwatch(number))
        offering = [client for client, letters in self._offers.items() if letters]
        if offering and self._random.random() < 0.5:
            client = self._random.choice(offering)
            letters = self._offers[client]
            letter = letters.pop(self._random.randrange(len(letters)))
            self._add(Verb.UNADVERTISE, client, _offer(letter))
        if self._random.random() < 0.5:
            self._advertise(self._random.choice(self._sources), self._random.choice(LETTERS))

    def _advertise(self, client: str, letter: str) -> None:
        if letter not in self._offers[client]:
            self._offers[client].append(letter)
            self._add(Verb.ADVERTISE, client, _offer(letter))

    def _publish(self) -> None:
        offering = [(c, letter) for c, letters in self._offers.items() for letter in letters]
        if offering:
            client, letter = self._random.choice(offering)
            self._add(Verb.PUBLISH, client, Message({"t": letter, "k": self._random.randint(1, 2)}))

    def _watch(self, client: str) -> None:
        random = self._random
        parts: list[Node] = [_part(random) for _ in range(random.randint(2, 4))]
        node = _tree(random, parts)
        pattern = Pattern(node, ("k",) if random.random() < 0.3 else ())
        self._numbers += 1
        self._watches.append((client, self._numbers))
        self._add(Verb.WATCH, client, Watch(self._numbers, pattern))


def _offer(letter: str) -> Advertisement:
    return Advertisement((Constraint("t", "=", letter), Constraint("k", "any")))


def _wide(random: Random) -> Predicate:
    return parse(random.choice([*(f"t = '{letter}'" for letter in LETTERS), "t IS NOT NULL"]))


def _part(random: Random) -> Part:
    letter = random.choice(LETTERS)
    if random.random() < 0.1:
        return Part(parse(f"t = '{letter}' OR t = '{random.choice(LETTERS)}'"))
    return Part(parse(f"t = '{letter}'" + " AND k = 1" * (random.random() < 0.2)))


def _tree(random: Random, parts: list[Node]) -> Node:
    if len(parts) == 1:
        return parts[0]
    cut = random.randrange(1, len(parts))
    nodes = (_tree(random, parts[:cut]), _tree(random, parts[cut:]))
    kind = random.choice((Then, Then, And, Or))
    try:
        node: Node = kind(nodes)
    except InvalidPattern:  # an `and` whose parts may want one message
        node = Then(nodes)
    return Within(node, random.randint(10, 300) * 1000) if random.random() < 0.3 else node
