"""Brokers on PostgreSQL: processes that are killed and have a standby, and a primary that is killed.

TakeoverScene   each broker is two processes with one name: one runs, the other waits for the lease
FailoverScene   the primary of the database is killed and its synchronous standby promoted; then the
                dead one is made anew and follows as the synchronous standby, until the next failover
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from itertools import cycle

import palio
from palio.lab.bench.loopback.postgres import PostgresPair, postgres_pair, why_no_postgres
from palio.net.cluster.configuration import ClusterConfiguration
from palio.net.cluster.fork_server import fork_server
from palio.net.cluster.ports import HOST, answers, free_ports
from palio.net.cluster.processes import BrokerProcesses
from palio.net.cluster.shapes import link_pairs
from palio.protocol.wire.control import Place
from tests.net.chaos.plans import BROKERS, Fault
from tests.net.chaos.scene import CHORDS, Scene, probed

__all__ = ["FailoverScene", "TakeoverScene", "why_no_postgres"]

LISTENS = "the standby listens"
ACKNOWLEDGED = "a client has an acknowledgement"
"""With its reconnection; all clients are in one process, which is busy."""
_START_S_MAX = 120.0
_WAITS = b"standby: another process runs this broker"
_LEASE = {"500 ms": "1 s", "1 s": "3 s"}
"""By the keepalive of the plan: the long one has the usual lease."""


class DatabaseScene(Scene):
    """All brokers in one database, which is on both nodes of a pair."""

    _pair: PostgresPair

    def settings(self) -> dict[str, Mapping[str, object]]:
        storage = {"url": self._pair.url(), "lease_s": _LEASE[self.plan.keepalive]}
        return {**super().settings(), "storage": storage}

    async def build(self, stack: AsyncExitStack) -> None:
        self._pair = stack.enter_context(postgres_pair(fsync=False))
        self.note("a primary and its synchronous standby run")
        await super().build(stack)

    def after(self) -> str:
        return f"the database is gone; logs: {self.folder}"


class FailoverScene(DatabaseScene):
    async def build(self, stack: AsyncExitStack) -> None:
        self._primaries = cycle("ab")
        self._primary = next(self._primaries)
        await super().build(stack)

    async def hit(self, fault: Fault) -> None:
        old, self._primary = self._primary, next(self._primaries)
        began = time.monotonic()
        await asyncio.to_thread(self._pair.kill, old)
        probes = {
            name: asyncio.create_task(probed(self.cluster.url(name), f"probe-{name}-{began:.3f}"))
            for name in self.names
        }
        await asyncio.sleep(fault.lasts_s * fault.detail)  # somebody has to notice, and decide
        promotion = time.monotonic()
        await asyncio.to_thread(self._pair.promote, self._primary)
        self.note(f"node {self._primary} was promoted in {time.monotonic() - promotion:.2f} s, "
                  f"{promotion - began:.2f} s after node {old} was killed")  # fmt: skip
        await asyncio.gather(
            *(self.timed(name, ACKNOWLEDGED, probe, promotion) for name, probe in probes.items())
        )
        await asyncio.to_thread(self._pair.follow, old)
        self.note(f"node {old} follows, synchronous")


class TakeoverScene(DatabaseScene):
    """Without lines: clients and neighbours have both addresses of each broker."""

    async def build(self, stack: AsyncExitStack) -> None:
        self._pair = stack.enter_context(postgres_pair(fsync=False))
        self.note("a primary and its synchronous standby run")
        await asyncio.to_thread(fork_server)
        self._names = [f"b{i + 1}" for i in range(BROKERS)]
        pairs = [(self._names[a], self._names[b]) for a, b in link_pairs("ring", BROKERS, CHORDS)]
        self._pairs = pairs
        ports = free_ports(0, 2 * BROKERS)
        seats = [dict(zip(self._names, ports[:BROKERS], strict=True)),
                 dict(zip(self._names, ports[BROKERS:], strict=True))]  # fmt: skip
        self._seats = [
            ClusterConfiguration(ports, pairs, "PSF", False, self.settings()) for ports in seats
        ]
        self._running = dict.fromkeys(self._names, 0)
        self._processes = BrokerProcesses()
        stack.callback(self._processes.stop_all)
        for seat in self._seats:
            seat.prepare(self.folder)
            for pair in pairs:
                seat.addresses[pair] = [f"{HOST}:{one.ports[pair[1]]}" for one in self._seats]
        for name in self._names:
            self._start(name, 0)
        await self.agreed()
        for name in self._names:
            self._start(name, 1)
        await asyncio.gather(*(self._until_standby(name, 1, 0) for name in self._names))

    @property
    def names(self) -> list[str]:
        return self._names

    @property
    def links(self) -> list[str]:
        return ["-".join(pair) for pair in self._pairs]

    async def url(self, client: str, home: str, stack: AsyncExitStack) -> str:
        return self._url(home)

    def _url(self, name: str) -> str:
        return "palio://" + ",".join(f"{HOST}:{seat.ports[name]}" for seat in self._seats)

    def _start(self, name: str, seat: int) -> None:
        config = self._seats[seat].write(name, self.folder / f"{name}.{seat}.toml")
        self._processes.start(f"{name}.{seat}", config, config.with_suffix(".log"))

    # ---- the network

    async def agreed(self) -> None:
        expected = self._seats[0].expected_links(set(self._names))
        async with asyncio.timeout(_START_S_MAX):
            while True:
                self._processes.check()
                maps = await asyncio.gather(*map(self._map, self._names))
                seen = {place.broker: {name for name, _ in place.links} for place in maps[0]}
                if seen == expected and all(one == maps[0] for one in maps):
                    return
                await asyncio.sleep(0.1)

    async def _map(self, name: str) -> tuple[Place, ...]:
        async with palio.connect(self._url(name), wait=_START_S_MAX) as client:
            return await client.topology()

    async def watched(self) -> None:
        while True:
            self._processes.check()
            await asyncio.sleep(1.0)

    # ---- takeovers

    async def hit(self, fault: Fault) -> None:
        name = fault.target
        old = self._running[name]
        new = self._running[name] = 1 - old
        log_size = (self.folder / f"{name}.{old}.log").stat().st_size
        self._processes.kill(f"{name}.{old}")
        began = time.monotonic()
        probe = probed(self._url(name), f"probe-{name}-{began:.3f}")
        await asyncio.gather(
            self.timed(name, LISTENS, self._listens(name, new), began),
            self.timed(name, ACKNOWLEDGED, probe, began),
        )
        await asyncio.sleep(fault.lasts_s)
        self._start(name, old)
        await self._until_standby(name, old, log_size)

    async def _listens(self, name: str, seat: int) -> None:
        while not answers(self._seats[seat].ports[name]):
            await asyncio.sleep(0.02)

    async def _until_standby(self, name: str, seat: int, log_size: int) -> None:
        """Until the log, from there on, says that the process waits."""
        path = self.folder / f"{name}.{seat}.log"
        async with asyncio.timeout(_START_S_MAX):
            while _WAITS not in path.read_bytes()[log_size:]:
                await asyncio.sleep(0.05)
