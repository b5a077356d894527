"""What the chaos test publishes and subscribes to, and what brute force says who must have got it.

Workload    random predicates; messages drawn from a pool, so that brute force is affordable
Draws       when a message expires, when it is published, and what subscriptions say of it
Taken       a subscription, when it was acknowledged, and what came to it
Sent        what a client has published, and when it was stored
judge       compares the two: missing, doubled, unwanted, unmarked, late, early
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from random import Random
from typing import NamedTuple, TypeAlias
from zlib import crc32

import palio

DESTINATIONS = ("MXP", "LUG", "BDR", "LAX", "JFK", "NRT", "CDG", "ZRH")
AIRLINES = ("UA", "UX", "AZ", "LX")
TOPIC = "flights"
"""Half of the messages have a topic below it."""
POOL = 3000
EXAMPLES = 5
FAR_S = 86_400.0
EARLY_S = 0.05
"""Clocks of one machine differ by less, when one of them is the monotonic one."""


class Id(NamedTuple):
    """A message: who published it, and which of its messages it is."""

    client: str
    index: int

    @property
    def body(self) -> bytes:
        return f"{self.client}:{self.index}".encode()

    @classmethod
    def of(cls, body: bytes) -> Id:
        client, _, index = body.decode().partition(":")
        return cls(client, int(index))


class Workload:
    def __init__(self, random: Random) -> None:
        self._random = random
        self.pool = [self._attributes() for _ in range(POOL)]

    def _attributes(self) -> dict[str, object]:
        draw = self._random
        found: dict[str, object] = {
            "dest": draw.choice(DESTINATIONS),
            "price": draw.randrange(1000),
            "delay": round(draw.expovariate(0.05), 2),
        }
        if draw.random() < 0.7:
            found["airline"] = draw.choice(AIRLINES) + str(draw.randrange(20))
        if draw.random() < 0.5:
            found["express"] = draw.random() < 0.3
        if draw.random() < 0.5:
            found |= palio.topics.attributes(f"{TOPIC}/{found['dest']}")
        return found

    def predicate(self) -> str:
        """It selects a few messages in a hundred."""
        draw, low = self._random, self._random.randrange(900)
        return draw.choice(
            [
                f"dest = '{draw.choice(DESTINATIONS)}' AND price BETWEEN {low} AND {low + 150}",
                f"airline LIKE '{draw.choice(AIRLINES)}1%' AND price < {low // 4 + 30}",
                f"delay > {draw.randrange(30, 60)} AND dest != '{draw.choice(DESTINATIONS)}' "
                f"OR price = {low}",
                f"express = TRUE AND dest IN ('MXP', 'LAX') AND price > {low // 2 + 400}",
                f"airline IS NULL AND price BETWEEN {low} AND {low + 60}",
            ]
        )


class Terms(NamedTuple):
    """In seconds; None: it never expires, it is published at once."""

    expires_in: float | None = None
    delay: float | None = None

    @property
    def is_short(self) -> bool:
        """It may expire before it arrives."""
        return self.expires_in is not None and self.expires_in < FAR_S


PLAIN = Terms()


class Answer(Enum):
    """What an application says of a message."""

    ACK = "ack"
    NACK = "nack"
    """The first time; then it acknowledges."""
    REJECT = "reject"
    NEVER = "never"
    """It gives the message back every time."""


class Draws:
    """All is drawn from the names alone, so nothing of it has to be kept.

    `plain_from`: the messages of a client from this index on have no terms and are acknowledged; some are
    best effort. Where clocks are wrong, nothing is delayed and nothing expires soon.
    """

    def __init__(self, seed: int, plain_from: int, has_true_clocks: bool) -> None:
        self._seed, self._plain_from, self._has_true_clocks = seed, plain_from, has_true_clocks

    def _share(self, what: str, id: Id) -> float:
        """From 0 to 1."""
        return crc32(f"{what} {self._seed} {id.client} {id.index}".encode()) / (1 << 32)

    def terms(self, id: Id) -> Terms:
        if id.index >= self._plain_from:
            return PLAIN
        share = self._share("terms", id)
        if share < 0.1:
            return Terms(expires_in=FAR_S)
        if not self._has_true_clocks:
            return PLAIN
        if share < 0.15:
            return Terms(expires_in=0.2 + 40 * (share - 0.1))
        if share < 0.22:
            return Terms(delay=0.1 + 20 * (share - 0.15))
        return PLAIN

    def answer(self, taken: Taken, id: Id) -> Answer:
        if not taken.is_durable or id.index >= self._plain_from:
            return Answer.ACK
        share = self._share(taken.name, id)
        if taken.deliveries_max:
            return Answer.NEVER if share < 0.3 else Answer.ACK
        if share < 0.03:
            return Answer.REJECT
        return Answer.NACK if share < 0.06 else Answer.ACK

    def wait_s(self, taken: Taken, id: Id) -> float:
        """The delay with which a message is given back; for many, none."""
        return max(0.0, self._share(f"wait {taken.name}", id) - 0.5)


class Repeats(Enum):
    """May a message come again that the application has not given back?"""

    NEVER = "never"
    MARKED = "marked"
    """As a redelivery: QoS 1 of MQTT. After a restart of the broker they come as new packets."""


@dataclass
class Taken:
    """A subscription."""

    name: str
    client: str
    home: str
    text: str
    is_durable: bool = True
    deliveries_max: int = 0
    repeats: Repeats = Repeats.NEVER
    has_pauses: bool = False
    """Its reader connects again when all is well, too, and then misses best-effort messages."""
    ready_at: float | None = None
    """When it was acknowledged; None: not yet."""
    since: float = inf
    """It must have what was published from then on."""
    got: Counter[Id] = field(default_factory=Counter)
    returned: Counter[Id] = field(default_factory=Counter)
    """Given back, each to come again."""
    rejected: set[Id] = field(default_factory=set)
    """If the broker has not heard of that when a connection is lost, they come again, marked."""
    unmarked: set[Id] = field(default_factory=set)
    """They came again and did not say so."""
    too_often: set[Id] = field(default_factory=set)
    """They said that they came more often than `deliveries_max`."""
    arrived: dict[Id, tuple[float, float]] = field(default_factory=dict)
    """First and last: of those with terms, and of those that may come again."""

    def came(self, id: Id, is_again: bool, terms: Terms) -> None:
        if self.got[id] and not is_again:
            self.unmarked.add(id)
        self.got[id] += 1
        if terms is not PLAIN or self.repeats is Repeats.MARKED:
            now = time.monotonic()
            self.arrived[id] = self.arrived.get(id, (now, now))[0], now

    @property
    def settled(self) -> set[Id]:
        """What has come, and is not given back to come again."""
        return {id for id, count in self.got.items() if count > self.returned[id]}

    def __str__(self) -> str:
        kind = "durable" if self.is_durable else "live"
        return f"{kind} subscription {self.name} of {self.client} at {self.home}: {self.text}"


@dataclass
class Sent:
    """The messages of one client: each is one of the pool."""

    client: str
    broker: str
    which: list[int] = field(default_factory=list)
    began: list[float] = field(default_factory=list)
    stored: list[float] = field(default_factory=list)
    """When it was acknowledged; shorter than the others while some wait for that."""


Published: TypeAlias = dict[int, list[tuple[Id, float]]]
"""By message of the pool: when it was published, its delay included, and as what."""


class Judge:
    """Brute force over everything that was published.

    `late_s`: what was sent in time may be under way for so long.
    """

    def __init__(self, workload: Workload, draws: Draws, late_s: float) -> None:
        self._pool, self._draws, self._late_s = workload.pool, draws, late_s
        self._chosen: dict[str, set[int]] = {}
        self.best_effort: set[Id] = set()
        """What was published so."""
        self.restarts: dict[str, list[float]] = defaultdict(list)
        """By broker: when it went down."""

    def published(self, sent: Iterable[Sent]) -> Published:
        found: Published = defaultdict(list)
        for one in sent:
            for index, (which, began) in enumerate(zip(one.which, one.began, strict=True)):
                id = Id(one.client, index)
                found[which].append((id, began + (self._draws.terms(id).delay or 0.0)))
        return found

    def _selects(self, text: str) -> set[int]:
        """Which of the pool."""
        if text not in self._chosen:
            predicate = palio.parse(text)
            found = {i for i, message in enumerate(self._pool) if predicate.matches(message)}
            self._chosen[text] = found
        return self._chosen[text]

    def allowed(self, taken: Taken, published: Published) -> set[Id]:
        """What matches."""
        return {id for which in self._selects(taken.text) for id, _ in published[which]}

    def required(self, taken: Taken, published: Published, since: float) -> set[Id]:
        """What matches, was published from then on, and does not expire too soon."""
        terms = self._draws.terms
        missed = self.best_effort if taken.has_pauses else set[Id]()
        return {
            id
            for which in self._selects(taken.text)
            for id, at in published[which]
            if at >= since and id not in missed and not terms(id).is_short
        }

    def faults(
        self,
        taken: Taken,
        required: set[Id],
        allowed: set[Id],
        given_up: Set[Id],
        sent: dict[str, Sent],
    ) -> dict[str, list[Id]]:
        """Empty: it got exactly what it must. `given_up`: by its queue."""
        doubled = {
            id
            for id, count in taken.got.items()
            if count > taken.returned[id] + 1 and id not in taken.rejected
        }
        found = {
            "missing": required - taken.settled - given_up,
            "doubled": doubled if taken.repeats is Repeats.NEVER else set[Id](),
            "unwanted": taken.got.keys() - allowed,
            "unmarked": {id for id in taken.unmarked if not self._may_be_new(id, taken)},
            "miscounted": taken.too_often,
            "early": {id for id, (first, _) in taken.arrived.items() if self._early(id, first, sent)},
            "late": {id for id, (_, last) in taken.arrived.items() if self._late(id, last, sent)},
        }  # fmt: skip
        return {kind: sorted(ids) for kind, ids in found.items() if ids}

    def _may_be_new(self, id: Id, taken: Taken) -> bool:
        """It comes again, and its broker has restarted between the two."""
        if taken.repeats is not Repeats.MARKED:
            return False
        first, last = taken.arrived[id]
        return any(first - self._late_s < at < last for at in self.restarts[taken.home])

    def _early(self, id: Id, first: float, sent: dict[str, Sent]) -> bool:
        delay = self._draws.terms(id).delay
        began = sent[id.client].began[id.index]
        return delay is not None and first < began + delay - EARLY_S

    def _late(self, id: Id, last: float, sent: dict[str, Sent]) -> bool:
        expires_in = self._draws.terms(id).expires_in
        began = sent[id.client].began[id.index]
        return expires_in is not None and last > began + expires_in + self._late_s
