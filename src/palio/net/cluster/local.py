"""A local cluster: brokers b1, b2, ... as processes of this machine, on loopback, open to anybody.

Entering the context starts a process for each broker and waits until all know the same network;
leaving it stops them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from palio.errors import NetworkError, PalioError
from palio.net.client import connect
from palio.net.cluster.configuration import ClusterConfiguration, Toml
from palio.net.cluster.fork_server import fork_server
from palio.net.cluster.ports import HOST, answers, free_ports
from palio.net.cluster.processes import BrokerProcesses
from palio.net.cluster.shapes import link_pairs, master_pairs
from palio.protocol.broker.settings import ROUTINGS
from palio.protocol.policies.subscription_forwarding import FORWARDING
from palio.protocol.wire.control import Place

START_S_MAX = 120.0
_LOOK_S = 0.1


def local_cluster(
    brokers: int = 5,
    topology: str = "ring",
    *,
    chords: int = 0,
    routing: str = "iPS",
    port: int = 0,
    data: str | os.PathLike[str] | None = None,
    tls: bool = False,
    settings: Toml | None = None,
) -> Cluster:
    """Brokers b1, b2, ... that `async with` or `with` starts.

    topology  ring, line, star, tree (two children each), mesh (all with all), or hierarchy: a tree
              of masters and slaves, with routing forwarding
    chords    the number of further links across it
    routing   PSF, iPS, PIF, DRP or forwarding
    port      of the first broker; the others follow. 0: any that are free
    data      a folder that stays, and is used again if it exists. None: a temporary one
    tls       with certificates made for it; clients trust `cluster.authority`
    settings  more of broker.toml, for all: {"times": {"keepalive": "200 ms"}}
    """
    links = link_pairs(topology, brokers, chords)
    if routing not in ROUTINGS:
        raise NetworkError(f"there is no routing {routing!r}; choose one of {', '.join(ROUTINGS)}")
    masters = master_pairs(topology, brokers)
    if masters and routing != FORWARDING:
        raise NetworkError(
            f"a hierarchy goes with routing {FORWARDING!r}, not {routing!r}: choose that, or a tree"
        )
    names = [f"b{i + 1}" for i in range(brokers)]
    ports = dict(zip(names, free_ports(port, brokers), strict=True))
    named = [(names[a], names[b]) for a, b in links]
    configuration = ClusterConfiguration(ports, named, routing, tls, settings or {})
    configuration.masters = [(names[a], names[b]) for a, b in masters]
    return Cluster(configuration, None if data is None else Path(data))


class Cluster:
    """Brokers as processes. `local_cluster` makes it."""

    def __init__(self, configuration: ClusterConfiguration, data: Path | None) -> None:
        self._configuration, self._data = configuration, data
        self._processes = BrokerProcesses()
        self._exits = ExitStack()
        self.folder = Path()
        self.addresses: dict[tuple[str, str], str | list[str]] = configuration.addresses
        """What the first broker of each link dials. Change it before the start to put something
        between two brokers."""
        self.own_settings: dict[str, Toml] = configuration.own
        """More of broker.toml for single brokers, from their next start or `reload` on."""
        self.variables: dict[str, dict[str, str]] = {}
        """More of the environment for single brokers, from their next start on."""

    @property
    def names(self) -> list[str]:
        return list(self._configuration.ports)

    @property
    def urls(self) -> list[str]:
        """Where clients connect to, in the order of the names."""
        return [self.url(name) for name in self.names]

    def url(self, name: str) -> str:
        port = self._configuration.ports[name]
        return f"palio{'s' * self._configuration.has_tls}://{HOST}:{port}"

    @property
    def links(self) -> list[tuple[str, str]]:
        """Pairs of brokers; the first dials the second."""
        return self._configuration.links

    @property
    def authority(self) -> Path | None:
        """With TLS: the file that clients need to trust the brokers."""
        return self._configuration.authority

    @property
    def running(self) -> list[str]:
        """The brokers whose process exists; a frozen one too."""
        return self._processes.running

    # ---- all brokers

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(fork_server)
        try:
            self._start_all()
            await self.agreed()
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self.close))
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.to_thread(self.close))

    def __enter__(self) -> Self:
        if _is_in_event_loop():
            raise PalioError(
                "`with local_cluster(...)` waits for its brokers, and an event loop runs in this "
                "thread, which would stand still: use `async with local_cluster(...)`"
            )
        try:
            self._start_all()
            asyncio.run(self.agreed())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_all(self) -> None:
        if self._data is None:
            folder = self._exits.enter_context(tempfile.TemporaryDirectory(prefix="palio-"))
            self.folder = Path(folder)
        else:
            self.folder = self._data.absolute()
        self._configuration.prepare(self.folder)
        for name in self.names:
            self.start(name)

    def close(self) -> None:
        """Stop all brokers, and wait for them."""
        self._processes.stop_all()
        self._exits.close()

    # ---- one broker

    def start(self, name: str) -> None:
        """Start a broker that does not run; `agreed` waits until it is part of the network."""
        if name in self.running:
            raise PalioError(f"{name} runs already")
        log = self.folder / f"{name}.log"
        config = self._configuration.write(name, self.folder / f"{name}.toml")
        self._processes.start(name, config, log, self.variables.get(name))

    def reload(self, name: str) -> None:
        """SIGHUP, with `own_settings` as they are now: identities and grants change at once."""
        self._configuration.write(name, self.folder / f"{name}.toml")
        self._processes.signal(name, signal.SIGHUP)

    def stop(self, name: str) -> None:
        """SIGTERM: the broker commits and acknowledges what it took, then ends."""
        self._processes.stop(name)

    def kill(self, name: str) -> None:
        """SIGKILL: the broker loses everything that is not on its disk."""
        self._processes.kill(name)

    def freeze(self, name: str) -> None:
        """SIGSTOP: the process exists and does nothing."""
        self._processes.signal(name, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._processes.signal(name, signal.SIGCONT)

    def process_id(self, name: str) -> int:
        return self._processes.process_id(name)

    # ---- the network

    async def agreed(self, patience_s: float = START_S_MAX) -> tuple[Place, ...]:
        """Wait until all brokers that run know the same network; gives it as a map.

        They then know all of their links, and the same number of subscriptions.
        """
        deadline = time.monotonic() + patience_s
        while True:
            left = deadline - time.monotonic()
            try:
                async with asyncio.timeout(max(left, _LOOK_S)):
                    maps = await asyncio.gather(*(self._map(name) for name in self.running))
            except TimeoutError:
                raise PalioError(
                    f"the brokers did not agree on the network within {patience_s:g} s; their logs "
                    f"are {self.folder}/*.log"
                ) from None
            except NetworkError:  # a broker ended meanwhile
                maps = []
            self._processes.check()
            if maps and all(seen == maps[0] for seen in maps) and self._is_whole(maps[0]):
                return maps[0]
            await asyncio.sleep(_LOOK_S)

    async def watched(self) -> None:
        """Wait forever; raises PalioError if a broker ends that nobody stopped."""
        while True:
            self._processes.check()
            await asyncio.sleep(1.0)

    async def _map(self, name: str) -> tuple[Place, ...]:
        while not answers(self._configuration.ports[name]):
            self._processes.check()
            await asyncio.sleep(_LOOK_S)
        async with connect(self.url(name), tls=self.authority, max_wait=5.0) as client:
            return await client.topology()

    def _is_whole(self, places: tuple[Place, ...]) -> bool:
        running = set(self.running)
        seen = {place.broker: {name for name, _ in place.links} for place in places
                if place.broker in running}  # fmt: skip
        return seen == self._configuration.expected_links(running)


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
