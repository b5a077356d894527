"""Routers in virtual time: links keep the order of packets and take random times; ticks come when
they are due. For patterns: what clients got, and how many messages and compounds crossed a link."""

from __future__ import annotations

import random
from collections.abc import Sequence
from heapq import heappop, heappush

from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Constraint
from palio.routing import (
    Advertise,
    Event,
    Joined,
    Packet,
    Publish,
    Received,
    Role,
    Router,
    Tick,
    Unadvertise,
)
from palio.routing.patterns import (
    Assembled,
    Compound,
    Monitor,
    Pattern,
    Sieved,
    Task,
    Unwatch,
    Watch,
)
from palio.routing.patterns.automaton import stamp
from palio.routing.patterns.watching import PatternSettings

DELAY_MAX = 50


def offer(symbol: str) -> Advertisement:
    return Advertisement((Constraint("t", "=", symbol), Constraint("k", "any")))


class TimedNetwork:
    """`parents[i]` is the neighbour of router i + 1 with a smaller number. At each router r is a
    client "c<r>"."""

    def __init__(
        self,
        parents: Sequence[int],
        rng: random.Random,
        settings: PatternSettings,
        *,
        advertisements: bool = True,
    ) -> None:
        self.now = 0
        self.rng = rng
        self.routers = {
            str(i): Router(
                str(i), advertisements=advertisements, patterns=settings, clock=lambda: self.now
            )
            for i in range(len(parents) + 1)
        }
        self.got: dict[tuple[str, int], list[Compound]] = {}
        self.delivered: list[tuple[str, Publish]] = []
        self.crossed = 0
        self.published: list[Publish] = []
        self.tasks: set[Task] = set()
        self._queue: list[tuple[int, int, str, Event]] = []
        self._free: dict[tuple[str, str], int] = {}  # when the last packet of a link arrives
        self._numbers = 0
        for name in self.routers:
            self._step(name, Joined(f"c{name}"))
        for child, parent in enumerate(parents, 1):
            for a, b in ((str(child), str(parent)), (str(parent), str(child))):
                self._step(a, Joined(b, Role.NEIGHBOUR))
        self.rest()

    # ---- what clients do

    def say(self, router: int, packet: Packet) -> None:
        self._step(str(router), Received(f"c{router}", packet))

    def advertise(self, router: int, symbol: str) -> None:
        self.say(router, Advertise(offer(symbol)))

    def unadvertise(self, router: int, symbol: str) -> None:
        self.say(router, Unadvertise(offer(symbol)))

    def watch(self, router: int, id: int, pattern: Pattern) -> None:
        self.got.setdefault((f"c{router}", id), [])
        self.say(router, Watch(id, pattern))

    def unwatch(self, router: int, id: int) -> None:
        self.say(router, Unwatch(id))

    def publish(self, router: int, symbol: str, key: int | None = 1) -> Publish:
        self._numbers += 1
        message = Message({"t": symbol} | ({} if key is None else {"k": key}))
        made = Publish(message, f"c{router}", self._numbers, self.now)
        self.published.append(made)
        self.say(router, made)
        return made

    # ---- time

    def wait(self, micros: int) -> None:
        """Let everything happen that happens in this time."""
        until = self.now + micros
        while (at := self._next()) is not None and at <= until:
            self._happen(at)
        self.now = until

    def rest(self) -> None:
        """Let everything happen, until nothing is on its way or held."""
        while (at := self._next()) is not None:
            self._happen(at)

    @property
    def is_quiet(self) -> bool:
        """Whether no packet is on its way."""
        return not self._queue

    @property
    def late(self) -> int:
        return sum(router.late for router in self.routers.values())

    def _next(self) -> int | None:
        times = [self._queue[0][0]] if self._queue else []
        times += [due for router in self.routers.values() if (due := router.due) is not None]
        return max(self.now, min(times)) if times else None

    def _happen(self, at: int) -> None:
        self.now = at
        if self._queue and self._queue[0][0] <= at:
            _, _, name, event = heappop(self._queue)
            self._step(name, event)
            return
        for name, router in self.routers.items():
            if router.due is not None and router.due <= at:
                self._step(name, Tick(at))

    def _step(self, name: str, event: Event) -> None:
        for send in self.routers[name].step(event):
            peer, packet = send.peer, send.packet
            if peer not in self.routers:
                if isinstance(packet, Assembled):
                    self.got[peer, packet.id].append(packet.compound)
                else:
                    assert isinstance(packet, Publish)
                    self.delivered.append((peer, packet))
                continue
            self.crossed += isinstance(packet, Publish | Assembled | Sieved)
            if isinstance(packet, Watch):
                self.tasks.add(packet.task)
            arrival = self.now + self.rng.randint(1, DELAY_MAX)
            arrival = self._free[name, peer] = max(arrival, self._free.get((name, peer), 0))
            self._numbers += 1
            heappush(self._queue, (arrival, self._numbers, peer, Received(name, packet)))


def found(pattern: Pattern, messages: list[Publish]) -> list[Compound]:
    """What one monitor finds that has all messages in order."""
    monitor = Monitor(pattern)
    return [c for m in sorted(messages, key=stamp) for c in monitor.feed(m)]
