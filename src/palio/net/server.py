"""A broker as a process: listens, dials, answers signals, and stops in good order.

    run(config)                  until SIGTERM or SIGINT; SIGHUP reads identities and grants again
    async with serving(config)   the same within a program: tests, a local cluster

The order of a start: lock and open the disk, make the core, listen, dial. A stop goes the other
way: no more dialling, no more listening, then the host settles (host.py).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random, SystemRandom
from typing import TypeAlias

from palio.errors import PalioError
from palio.net import config as configuration
from palio.net import security
from palio.net.broker_connection import BrokerConnection
from palio.net.clock import Clock
from palio.net.config import Config
from palio.net.core import Core
from palio.net.dialling import Dialler
from palio.net.health import Answer, Pages, as_json
from palio.net.host import Host
from palio.net.logs import told
from palio.net.metrics import CONTENT_TYPE, Metrics
from palio.net.sections import Endpoint
from palio.net.storage import SqliteStore
from palio.protocol.store import Store

_BACKLOG = 1024
_SWITCH_S = 0.0005
"""How long the loop may keep the thread of the disk from going on: 5 ms, the usual, is longer than
the commit itself, and more than halves what a busy broker can store."""


MakeCore: TypeAlias = Callable[[Config, Store, int], Core]


class Server:
    """A broker that runs. Made by `serving`."""

    def __init__(self, config: Config, make: MakeCore, random: Random, clock: Clock) -> None:
        self._config, self._random, self._clock = config, random, clock
        # Certificates first: a mistake there should not leave a new directory behind.
        tls = config.tls
        self._listening = None if tls is None else security.listening(tls)
        self._tls_s = config.times.dial_us_max / 1e6
        has_tls = any(way.tls for way in config.neighbours.values())
        self._dialling = security.dialling(tls) if has_tls else None
        self._store = SqliteStore(config.data)
        try:
            core = make(config, self._store, clock.now_us())
        except BaseException:
            self._store.close()
            raise
        self.host = Host(core, self._store, clock, config.room, config.times)
        self._listener: asyncio.Server | None = None
        self._pages: Pages | None = None
        self._diallers: dict[str, asyncio.Task[None]] = {}
        self.endpoint = config.listen
        """Where it listens; with the real port when the configuration said 0."""
        self.metrics_endpoint = config.metrics

    async def start(self) -> None:
        config = self._config
        await self._listen(config.listen)
        if config.metrics is not None:
            self._pages = self._made_pages()
            port = await self._pages.start(config.metrics)
            self.metrics_endpoint = Endpoint(config.metrics.host, port)
        for name, way in config.neighbours.items():
            if way.endpoint is not None:
                self.dial(name, way.endpoint)
        told(logging.INFO, "broker listens", broker=config.name, address=self.endpoint,
             tls=config.tls is not None, routing=config.settings.routing)  # fmt: skip

    async def _listen(self, endpoint: Endpoint) -> None:
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                lambda: BrokerConnection(self.host),
                endpoint.host,
                endpoint.port,
                ssl=self._listening,
                ssl_handshake_timeout=self._tls_s if self._listening is not None else None,
                backlog=_BACKLOG,
            )
        except OSError as error:
            raise PalioError(
                f"the broker cannot listen on {endpoint}: {_why(error)}; choose another address "
                f"(listen, in [broker] of {self._config.path})"
            ) from None
        self.endpoint = Endpoint(endpoint.host, self._listener.sockets[0].getsockname()[1])

    def dial(self, name: str, endpoint: Endpoint) -> None:
        """Dial a neighbour of the configuration here, from now on."""
        way = self._config.neighbours[name]
        dialler = Dialler(
            self.host,
            name,
            way,
            self._dialling if way.tls else None,
            self._config.times,
            self._random,
        )
        if name in self._diallers:
            self._diallers[name].cancel()
        self._diallers[name] = asyncio.create_task(dialler.run(endpoint))

    def reload(self) -> None:
        """Read the configuration again: identities and grants change at once, the rest does not."""
        try:
            read = configuration.read(self._config.path)
        except PalioError as error:
            told(logging.ERROR, "configuration not read again; the old one stays", reason=error)
            return
        waiting = configuration.changes_that_wait(self._config, read)
        if waiting:
            told(logging.WARNING, "these changes wait for a restart", changed=", ".join(waiting))
        self.host.grant(read.settings.access)
        told(logging.INFO, "grants read again", access=read.settings.access)

    async def stop(self, reason: str = "this broker stops") -> None:
        told(logging.INFO, "broker stops", broker=self._config.name)
        for task in self._diallers.values():
            task.cancel()
        await asyncio.gather(*self._diallers.values(), return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        await self.host.stop(reason)
        if self._listener is not None:
            await self._listener.wait_closed()
        if self._pages is not None:
            await self._pages.stop()
        told(logging.INFO, "broker stopped", broker=self._config.name)

    def _made_pages(self) -> Pages:
        metrics = Metrics(self._config.name, self.host)
        return Pages(
            {
                "/metrics": lambda: Answer(200, CONTENT_TYPE, metrics.text()),
                "/healthz": self._health,
                "/readyz": self._readiness,
            }
        )

    def _health(self) -> Answer:
        if self.host.finished.done():
            return as_json(503, broker=self._config.name, status="failed")
        return as_json(200, broker=self._config.name, status="alive")

    def _readiness(self) -> Answer:
        host = self.host
        if host.is_taking:
            return as_json(200, broker=self._config.name, status="ready", connections=host.links)
        reason = host.trouble or "it stops"
        return as_json(503, broker=self._config.name, status="not ready", reason=reason)


@asynccontextmanager
async def serving(
    config: Config,
    make: MakeCore,
    *,
    random: Random | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Server]:
    """A broker while the block lasts. `random` draws the waits before neighbours are dialled."""
    server = Server(config, make, random or SystemRandom(), clock or Clock())
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


def run(config: Config, make: MakeCore) -> None:
    """A broker until a signal ends it; raises PalioError when it cannot begin, or go on."""
    sys.setswitchinterval(_SWITCH_S)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(config, make))


async def _run(config: Config, make: MakeCore) -> None:
    for warning in config.warnings():
        told(logging.WARNING, warning)
    async with serving(config, make) as server:
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _end, end)
        loop.add_signal_handler(signal.SIGHUP, server.reload)
        server.host.finished.add_done_callback(lambda _: end.set())
        await end.wait()
    if (error := server.host.finished.exception()) is not None:
        raise error


def _end(end: asyncio.Event) -> None:
    if end.is_set():  # asked twice: no more patience
        told(logging.WARNING, "broker stops at once")
        os._exit(1)
    end.set()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        told(logging.INFO, "uvloop is not installed: the broker is slower without it")
        return None
    return uvloop.new_event_loop


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program listens there"
    return os.strerror(error.errno) if error.errno else str(error)
