"""A network of brokers on this machine: real processes, for tries, tests and measurements.

    async with local_cluster(5, "ring") as cluster:              # or: with
        async with palio.connect(cluster.urls[0]) as client: ...

    <folder>/b1.toml   a configuration for each broker            b1/     its disk
             b1.log    what it says                               secret  that all brokers share

Entering starts a process for each broker and waits until all see the same network; leaving stops
them. Each broker watches a pipe that this process holds, so none is left when it is killed. The
brokers are on loopback and let anybody in.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self, TypeAlias

from palio.errors import InvalidTopology, NetworkError, PalioError
from palio.net import certificates, kernels, shapes
from palio.net.client import connect
from palio.protocol.settings import FORWARDING, ROUTINGS
from palio.protocol.words import Place

HOST = "127.0.0.1"
START_S_MAX = 120.0
STOP_S_MAX = 15.0
_PORTS = range(20_000, 32_000)
"""Free ports are looked for here: below those that outgoing connections take."""
_LOOK_S = 0.1

Toml: TypeAlias = Mapping[str, Mapping[str, object]]
_USUAL: dict[str, dict[str, object]] = {"times": {"redial_max": "1 s"}}


def local_cluster(
    brokers: int = 5,
    topology: str = "ring",
    *,
    chords: int = 0,
    routing: str = "PSF",
    port: int = 0,
    data: str | os.PathLike[str] | None = None,
    tls: bool = False,
    settings: Toml | None = None,
) -> Cluster:
    """Brokers b1, b2, ... to be started by `async with` or `with`.

    topology  ring, line, star, tree (two children each) or mesh (all with all)
    chords    so many more links across it
    routing   PSF, iPS, PIF, DRP, or forwarding: that needs a line, a star or a tree
    port      of the first; the others follow. 0: any that are free
    data      a folder that stays; what is stored there goes on. None: a temporary one
    tls       with certificates of its own: `cluster.authority` is whom clients trust
    settings  more of broker.toml, for all: {"times": {"keepalive": "200 ms"}}
    """
    links = shapes.pairs(topology, brokers, chords)
    if routing not in ROUTINGS:
        raise NetworkError(f"there is no routing {routing!r}; choose one of {', '.join(ROUTINGS)}")
    if routing == FORWARDING and len(links) >= brokers:
        raise InvalidTopology(
            f"subscription forwarding needs a network without cycles, and a {topology} of {brokers} "
            f"with {chords} chords has one; take a line, a star or a tree, or another routing"
        )
    names = [f"b{i + 1}" for i in range(brokers)]
    ports = dict(zip(names, _ports(port, brokers), strict=True))
    named = [(names[a], names[b]) for a, b in links]
    return Cluster(ports, named, routing, None if data is None else Path(data), tls, settings or {})


class Cluster:
    """Brokers as processes. `local_cluster` makes it."""

    def __init__(
        self,
        ports: dict[str, int],
        links: list[tuple[str, str]],
        routing: str,
        data: Path | None,
        has_tls: bool,
        settings: Toml,
    ) -> None:
        self.links = links
        """Who is linked with whom; the first dials the second."""
        self.addresses = {pair: f"{HOST}:{ports[pair[1]]}" for pair in links}
        """What is dialled for each link: change it before the start to put something between."""
        self.authority: Path | None = None
        """With TLS: the file that clients need to trust the brokers."""
        self.folder = Path()
        self._ports, self._routing, self._data = ports, routing, data
        self._has_tls, self._settings = has_tls, settings
        self._secret = ""
        self._certificates: certificates.Certificates | None = None
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._exits = ExitStack()

    @property
    def names(self) -> list[str]:
        return list(self._ports)

    @property
    def urls(self) -> list[str]:
        """Where clients connect to, in the order of the names."""
        return [self.url(name) for name in self._ports]

    def url(self, name: str) -> str:
        return f"palio{'s' * self._has_tls}://{HOST}:{self._ports[name]}"

    @property
    def running(self) -> list[str]:
        """The brokers whose process is there; a frozen one too."""
        return [name for name, process in self._processes.items() if process.poll() is None]

    # ---- beginning and end

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(kernels.compile_once)
        try:
            self._begin()
            await self.agreed()
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self.close))
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.to_thread(self.close))

    def __enter__(self) -> Self:
        kernels.compile_once()
        try:
            self._begin()
            asyncio.run(self.agreed())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> None:
        if self._data is None:
            folder = self._exits.enter_context(tempfile.TemporaryDirectory(prefix="palio-"))
            self.folder = Path(folder)
        else:
            self.folder = self._data.absolute()
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise PalioError(f"{self.folder} cannot be used: {error.strerror}") from None
        self._secret = _secret(self.folder / "secret")
        if self._has_tls:
            self._certificates = certificates.make(self.folder)
            self.authority = self._certificates.authority
        for name in self._ports:
            self.start(name)

    def close(self) -> None:
        """Stop all brokers, and wait for them."""
        running = [self._processes[name] for name in self.running]
        for process in running:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        deadline = time.monotonic() + STOP_S_MAX
        for process in running:
            _wait(process, max(0.0, deadline - time.monotonic()))
        self._processes.clear()
        self._exits.close()

    # ---- one broker

    def start(self, name: str) -> None:
        """Start a broker that does not run; `agreed` waits until it is there."""
        if name in self.running:
            raise PalioError(f"{name} runs already")
        path = self.folder / f"{name}.toml"
        path.write_text(self._config(name))
        command = [sys.executable, "-m", "palio.cli", "broker", "--config", str(path)]
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*command, "--until-eof"],
                stdin=subprocess.PIPE,  # its end is how a broker sees that this process has gone
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process alone
            )

    def stop(self, name: str) -> None:
        """Let a broker end in good order."""
        process = self._taken(name)
        process.send_signal(signal.SIGCONT)
        process.terminate()
        _wait(process, STOP_S_MAX)

    def kill(self, name: str) -> None:
        """SIGKILL: it loses everything that is not on its disk."""
        process = self._taken(name)
        process.kill()
        process.wait()

    def freeze(self, name: str) -> None:
        """SIGSTOP: it is there, and says nothing."""
        self._process(name).send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._process(name).send_signal(signal.SIGCONT)

    def process_id(self, name: str) -> int:
        return self._process(name).pid

    def _process(self, name: str) -> subprocess.Popen[bytes]:
        if name not in self.running:
            raise PalioError(f"{name} does not run; there are {', '.join(self.running) or 'none'}")
        return self._processes[name]

    def _taken(self, name: str) -> subprocess.Popen[bytes]:
        """That it ends from now on is meant."""
        process = self._process(name)
        del self._processes[name]
        return process

    # ---- the network

    async def agreed(self, patience_s: float = START_S_MAX) -> tuple[Place, ...]:
        """Wait until all brokers that run see the same network: themselves, and their links.

        They then also know of the same number of subscriptions. Gives the map.
        """
        deadline = time.monotonic() + patience_s
        while True:
            left = deadline - time.monotonic()
            try:
                async with asyncio.timeout(max(left, _LOOK_S)):
                    maps = await asyncio.gather(*(self._map(name) for name in self.running))
            except TimeoutError:
                raise PalioError(
                    f"the brokers did not agree on the network within {patience_s:g} s; what they "
                    f"say is in {self.folder}/*.log"
                ) from None
            except NetworkError:  # one of them went meanwhile
                maps = []
            self._check()
            if maps and all(seen == maps[0] for seen in maps) and self._is_whole(maps[0]):
                return maps[0]
            await asyncio.sleep(_LOOK_S)

    async def watched(self) -> None:
        """Wait for ever; raises if a broker ends that nobody stopped."""
        while True:
            self._check()
            await asyncio.sleep(1.0)

    async def _map(self, name: str) -> tuple[Place, ...]:
        while not self._answers(name):
            self._check()
            await asyncio.sleep(_LOOK_S)
        async with connect(self.url(name), tls=self.authority, max_wait=5.0) as client:
            return await client.topology()

    def _answers(self, name: str) -> bool:
        try:
            with socket.create_connection((HOST, self._ports[name]), timeout=1.0):
                return True
        except OSError:
            return False

    def _is_whole(self, places: tuple[Place, ...]) -> bool:
        running = set(self.running)
        expected: dict[str, set[str]] = {name: set() for name in running}
        for a, b in self.links:
            if a in running and b in running:
                expected[a].add(b)
                expected[b].add(a)
        here = {place.broker: {name for name, _ in place.links} for place in places
                if place.broker in running}  # fmt: skip
        return here == expected

    def _check(self) -> None:
        """Raise if a broker ended that nobody stopped."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                log = self.folder / f"{name}.log"
                raise PalioError(f"broker {name} ended: {_last_line(log)} ({log})")

    def _config(self, name: str) -> str:
        sections: dict[str, dict[str, object]] = {
            "broker": {
                "name": name,
                "listen": f"{HOST}:{self._ports[name]}",
                "data": name,
                "routing": self._routing,
                "secret": self._secret,
            }
        }
        for a, b in self.links:
            if a == name:
                sections[f"neighbours.{b}"] = {"address": self.addresses[a, b]}
            elif b == name:
                sections[f"neighbours.{a}"] = {}
        if self._certificates is not None:
            sections["tls"] = {
                key: str(getattr(self._certificates, key)) for key in self._certificates._fields
            }
        for key, values in [*_USUAL.items(), *self._settings.items()]:
            sections.setdefault(key, {}).update(values)
        return "\n".join(_toml(sections))


def _toml(sections: Toml) -> Iterator[str]:
    for title, values in sections.items():
        yield f"[{title}]"
        for key, value in values.items():
            yield f"{key} = {json.dumps(value)}"
        yield ""


def _secret(path: Path) -> str:
    """What the brokers of this folder prove each other that they know."""
    if not path.exists():
        path.touch(0o600)
        path.write_text(secrets.token_hex(32))
    return path.read_text().strip()


def _ports(first: int, count: int) -> list[int]:
    """Ports that are free now."""
    if first == 0:
        chosen = random.SystemRandom().sample(_PORTS, len(_PORTS))
        free = (port for port in chosen if _why_taken(port) is None)
        return [next(free) for _ in range(count)]
    for port in range(first, first + count):
        if (reason := _why_taken(port)) is not None:
            raise PalioError(
                f"port {port} cannot be used: {reason}. The brokers take {count} ports from {first} "
                f"on: choose another first one, or 0 for any that are free"
            )
    return list(range(first, first + count))


def _why_taken(port: int) -> str | None:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except OverflowError:
        return "ports end at 65535"
    except OSError as error:
        return error.strerror
    return None


def _wait(process: subprocess.Popen[bytes], patience_s: float) -> None:
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(path: Path) -> str:
    lines = path.read_text("utf-8", "replace").strip().splitlines()
    return (lines or ["it said nothing"])[-1].removeprefix("palio: ")
