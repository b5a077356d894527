"""What the chaos test publishes and subscribes to, and what brute force says who must have got it.

Workload    random predicates; messages drawn from a pool, so that brute force is affordable
Taken       a subscription, when it was acknowledged, and what came to it
Sent        what a client has published, and when it was stored
judge       compares the two: missing, doubled, unwanted
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import NamedTuple, TypeAlias

import palio

DESTINATIONS = ("MXP", "LUG", "BDR", "LAX", "JFK", "NRT", "CDG", "ZRH")
AIRLINES = ("UA", "UX", "AZ", "LX")
POOL = 3000
EXAMPLES = 5


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


@dataclass
class Taken:
    """A subscription."""

    name: str
    client: str
    home: str
    text: str
    is_durable: bool = True
    ready_at: float | None = None
    """When it was acknowledged; None: not yet."""
    since: float = inf
    """It must have what was published from then on."""
    got: Counter[Id] = field(default_factory=Counter)

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
"""By message of the pool: when it was published, and as what."""


def published(sent: Iterable[Sent]) -> Published:
    found: Published = defaultdict(list)
    for one in sent:
        for index, (which, at) in enumerate(zip(one.which, one.began, strict=True)):
            found[which].append((Id(one.client, index), at))
    return found


class Judge:
    """Brute force over everything that was published."""

    def __init__(self, workload: Workload) -> None:
        self._pool = workload.pool
        self._chosen: dict[str, set[int]] = {}

    def _selects(self, text: str) -> set[int]:
        """Which of the pool."""
        if text not in self._chosen:
            predicate = palio.parse(text)
            found = {i for i, message in enumerate(self._pool) if predicate.matches(message)}
            self._chosen[text] = found
        return self._chosen[text]

    def wanted(self, taken: Taken, published: Published, since: float) -> set[Id]:
        """What matches and was published from then on."""
        return {
            id for which in self._selects(taken.text) for id, at in published[which] if at >= since
        }

    def faults(self, taken: Taken, required: set[Id], allowed: set[Id]) -> dict[str, list[Id]]:
        """Empty: it got exactly what it must."""
        found = {
            "missing": sorted(required - taken.got.keys()),
            "doubled": sorted(id for id, count in taken.got.items() if count > 1),
            "unwanted": sorted(taken.got.keys() - allowed),
        }
        return {kind: ids for kind, ids in found.items() if ids}
