"""A broker as a process: listens, dials, handles signals, and stops cleanly.

    run(config)                  until SIGTERM or SIGINT; SIGHUP reloads identities, grants and schemas
    async with serving(config)   the same within a program: tests, a local cluster

Starting, in this order: lock and open the store (a standby waits there), make the core, listen, dial.
Stopping is the reverse: stop dialling, stop listening, then stop the host (host.py), then release the
lease on the store.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any

from palio.errors import MissingSoftware, PalioError
from palio.net import config as configuration
from palio.net import security
from palio.net.broker import descriptors, preflight
from palio.net.broker.clock import BrokerClock
from palio.net.broker.core import Core, MakeCore, make_core
from palio.net.broker.dialling import Dialler
from palio.net.broker.host import BrokerHost
from palio.net.broker.standby import StandbyEnded, open_store
from palio.net.config.mqtt import MqttConfig
from palio.net.config.values import Config
from palio.net.endpoint import Endpoint
from palio.net.listeners.listener import Listener
from palio.net.listeners.mqtt import MqttListener
from palio.net.listeners.native import NativeListener
from palio.net.monitoring import health, metrics
from palio.net.monitoring.logs import log_event
from palio.net.monitoring.measures import Measure
from palio.net.monitoring.web import WebServer
from palio.net.security import TlsContexts
from palio.net.storage.opening import OpenedStore
from palio.net.storage.store import (
    LeaseExpired,
    StoreAway,
    StoreFailed,
    StoreOutage,
    StoreUnreachable,
)
from palio.protocol.durability.last_values import LastValues
from palio.protocol.durability.storage import DamagedStore, Store
from palio.protocol.mqtt.shared import QueueName

if TYPE_CHECKING:
    from palio.net.listeners.http.listener import HttpListener

_SWITCH_S = 0.0005
"""How long the event loop may keep the interpreter lock from the thread that commits. Python's usual
5 ms is longer than a commit itself, and more than halves what a busy broker can store."""
_GARBAGE = (5_000, 3, 3_000)
"""Thresholds of the garbage collector. A broker makes few cycles but thousands of tuples in a turn; by
the usual threshold of 700 the collector would run all the time. But what refused predicates leave
behind is all cycles, and freeing 50,000 objects at once holds the event loop for 40 ms; looking at so
many takes 10 to 17 ms. So young generations are small, and all is looked at very rarely."""


class Server:
    """A broker that runs. Made by `serving`."""

    def __init__(
        self, config: Config, tls: TlsContexts, opened: OpenedStore, core: Core, clock: BrokerClock,
        random: Random,
    ) -> None:  # fmt: skip
        self._config, self._random = config, random
        self._opened = opened
        self._dialling_tls = tls.dialling
        limits = descriptors.bounded(config).limits
        http = (
            _http_listener() if config.http is not None else None
        )  # takes 100 ms: before its first turn
        self.host = BrokerHost(core, opened.store, clock, limits, config.times)
        if opened.lease is not None:
            loop = asyncio.get_running_loop()
            opened.lease.watch(lambda trouble: _call_in(loop, lambda: self._lease_changed(trouble)))
        self._native: Listener = NativeListener(
            config.listen,
            f"listen, in [broker] of {config.path}",
            config.limits.congested_bytes,
            tls.listening,
            config.times.dial_us_max / 1e6,
        )
        self._listeners: list[Listener] = [self._native]
        self._mqtt: MqttListener | None = None
        self._http: HttpListener | None = None
        if config.mqtt is not None:

            def forget(name: QueueName) -> None:
                now_us = clock.now_us()
                acts = core.listener_acts
                self.host.call("forget", lambda: acts.forget_durable(*name, now_us))

            def after_commit(call: Callable[[], None]) -> None:
                self.host.call("settle", lambda: core.listener_acts.after_commit(call))

            self._mqtt = _mqtt_listener(
                config, config.mqtt, tls, clock, opened.store, core.listener_acts.last_values, forget,
                after_commit,
            )  # fmt: skip
            self._listeners.append(self._mqtt)
        if http is not None and config.http is not None:
            self._http = http(config.http, config, tls.listening, opened.store)
            self._listeners.append(self._http)
        self._web: WebServer | None = None
        self._diallers: dict[str, asyncio.Task[None]] = {}
        self._reloads: asyncio.Task[None] | None = None
        """The last one; it waits for those before it."""
        self.metrics_endpoint = config.metrics
        """Where metrics are served; with the real port if the configuration says 0."""

    def _listener_measures(self) -> list[Measure]:
        return [measure for one in self._listeners for measure in one.measures()]

    @property
    def mqtt_endpoint(self) -> Endpoint | None:
        """Where MQTT clients connect to."""
        return self._mqtt.endpoint if self._mqtt else None

    @property
    def mqtt_websocket_endpoint(self) -> Endpoint | None:
        """Where MQTT clients connect to by WebSocket."""
        return self._mqtt.websocket_endpoint if self._mqtt else None

    @property
    def endpoint(self) -> Endpoint:
        """Where native clients and neighbours connect to."""
        return self._native.endpoint

    @property
    def http_endpoint(self) -> Endpoint | None:
        """Where HTTP is served; with the real port if the configuration says 0."""
        return self._http.endpoint if self._http else None

    async def start(self) -> None:
        config = self._config
        for listener in self._listeners:
            await listener.start(self.host)
        if config.metrics is not None:
            self._web = WebServer(health.pages(config.name, self.host, self._listener_measures))
            port = await self._web.start(config.metrics)
            self.metrics_endpoint = Endpoint(config.metrics.host, port)
        for name, address in config.neighbours.items():
            if address.endpoints:
                self.dial(name, *address.endpoints)
        log_event(logging.INFO, "broker listens", broker=config.name, address=self.endpoint,
                  metrics=self.metrics_endpoint or "", http=self.http_endpoint or "", tls=config.tls is not None,
                  routing=config.settings.routing)  # fmt: skip

    def _lease_changed(self, trouble: StoreFailed | None) -> None:
        if trouble is None:
            self.host.outages.end(LeaseExpired)
        elif isinstance(trouble, StoreOutage):
            self.host.store_unavailable(trouble)
        else:
            self.host.fail(trouble)

    def dial(self, name: str, *endpoints: Endpoint) -> None:
        """Dial a neighbour of the configuration at these endpoints in turn, from now on."""
        address = self._config.neighbours[name]
        tls = self._dialling_tls if address.tls else None
        dialler = Dialler(self.host, name, address, tls, self._config.times, self._random)
        if name in self._diallers:
            self._diallers[name].cancel()
        self._diallers[name] = asyncio.create_task(dialler.run(endpoints))

    def reload(self) -> asyncio.Task[None]:
        """Read the configuration again: identities, grants and schemas change then, the rest does not."""
        self._reloads = asyncio.create_task(self._reload(self._reloads))
        return self._reloads

    async def _reload(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:  # in a thread: grants may be long, and no message waits for them
            new = await asyncio.to_thread(configuration.read, self._config.path)
        except PalioError as error:
            log_event(logging.ERROR, "configuration not reloaded; the old one stays", reason=error)
            return
        waiting = configuration.changes_that_wait(self._config, new)
        if waiting:
            log_event(
                logging.WARNING, "these changes wait for a restart", changed=", ".join(waiting)
            )
        self.host.reload_access(new.settings.access, new.settings.schemas)
        log_event(logging.INFO, "identities and grants reloaded", access=new.settings.access,
                  schemas=len(new.settings.schemas))  # fmt: skip

    async def stop(self, reason: str = "this broker stops") -> None:
        log_event(logging.INFO, "broker stops", broker=self._config.name)
        tasks = [*self._diallers.values(), *([self._reloads] if self._reloads else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listener in self._listeners:
            listener.stop_accepting()
        await self.host.stop(reason)
        for listener in self._listeners:
            await listener.wait_closed()
        if self._web is not None:
            await self._web.stop()
        await asyncio.to_thread(self._opened.release)
        log_event(logging.INFO, "broker stopped", broker=self._config.name)


def _mqtt_listener(
    config: Config, mqtt: MqttConfig, tls: TlsContexts, clock: BrokerClock, store: Store,
    last_values: LastValues, forget: Callable[[QueueName], None], after_commit: Callable[[Callable[[], None]], None],
) -> MqttListener:  # fmt: skip
    return MqttListener(
        mqtt.listen,
        f"listen, in [mqtt] of {config.path}",
        mqtt.settings,
        config.settings.limits,
        config.limits.congested_bytes,
        clock.now_us,
        store,
        last_values,
        forget,
        after_commit,
        tls.listening if mqtt.tls else None,
        config.times.dial_us_max / 1e6,
        mqtt.websocket,
        mqtt.origins,
    )


@asynccontextmanager
async def serving(
    config: Config,
    make: MakeCore = make_core,
    *,
    random: Random | None = None,
    clock: BrokerClock | None = None,
    end: asyncio.Event | None = None,
    is_restart: bool = False,
) -> AsyncIterator[Server]:
    """A broker that runs while the block lasts. `random` draws the waits between dials.

    As a standby it first waits until it may run; StandbyEnded is raised if `end` is set before. A
    restart also waits for a database that is away.
    """
    # Certificates and packages first: a mistake there should not leave a new directory behind, or
    # show only when a standby takes over.
    tls = security.contexts(config)
    if config.metrics is not None:
        metrics.registry()  # loads the package now: later that would hold the event loop
    if config.http is not None:
        _http_listener()  # likewise
    opened = await open_store(config, end, is_restart=is_restart)
    clock = clock or BrokerClock()
    try:
        core = make(descriptors.bounded(config), opened.store, clock.now_us())
        server = Server(config, tls, opened, core, clock, random or SystemRandom())
    except BaseException:
        opened.store.close()
        await asyncio.to_thread(opened.release)
        raise
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


def run(config: Config, make: MakeCore = make_core, *, until_eof: bool = False) -> None:
    """Run a broker until a signal ends it; raises PalioError when it cannot start, or go on.

    With `until_eof` it also ends when standard input does. The program that starts a broker holds
    the other end of that pipe, so that the broker ends when the program is killed.
    """
    sys.setswitchinterval(_SWITCH_S)
    gc.set_threshold(*_GARBAGE)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            runner.run(_run(config, _frozen(make), until_eof))
        except DamagedStore as error:
            raise preflight.with_remedy(error, config) from None


def _frozen(make: MakeCore) -> MakeCore:
    """Makes a core whose objects, and all that the process has loaded, the garbage collector does not
    look at any more: they stay, and with them each full collection would hold the event loop."""

    def made(config: Config, store: Store, now_us: int) -> Core:
        core = make(config, store, now_us)
        gc.collect()
        gc.freeze()
        return core

    return made


async def _run(config: Config, make: MakeCore, until_eof: bool) -> None:
    descriptors.raise_soft_limit()
    for warning in preflight.warnings(config):
        log_event(logging.WARNING, warning)
    loop, end, is_changed = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, end)
    if until_eof:
        loop.add_reader(sys.stdin.fileno(), _end_with_input, end)
    error = await _run_once(config, make, end, is_changed)
    while isinstance(error, StoreAway | StoreUnreachable) and not end.is_set():
        log_event(logging.WARNING, "the broker starts again when the database is back")
        await asyncio.sleep(StoreUnreachable.retry_s)
        error = await _run_once(config, make, end, is_changed, is_restart=True)
    if error is not None:
        raise error


async def _run_once(
    config: Config,
    make: MakeCore,
    end: asyncio.Event,
    is_changed: asyncio.Event,
    is_restart: bool = False,
) -> BaseException | None:
    """Run a broker until `end` is set or it fails; gives the failure. `is_changed`: SIGHUP came."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, is_changed.set)
    try:
        async with serving(config, make, end=end, is_restart=is_restart) as server:

            def reload() -> None:
                is_changed.set()  # for a restart: `config` stays as it was read first
                server.reload()

            loop.add_signal_handler(signal.SIGHUP, reload)
            if is_changed.is_set():  # while it was a standby
                server.reload()
            ended = asyncio.create_task(end.wait())
            either: list[asyncio.Future[Any]] = [ended, server.host.finished]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
    except StandbyEnded:
        return None
    except (StoreAway, StoreUnreachable) as error:  # it went away while the broker started
        return error
    return server.host.finished.exception()


def _call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed: there is nobody to tell
        loop.call_soon_threadsafe(call)


def _end(end: asyncio.Event) -> None:
    if end.is_set():  # the second signal
        log_event(logging.WARNING, "broker stops at once")
        os._exit(1)
    end.set()


def _end_with_input(end: asyncio.Event) -> None:
    descriptor = sys.stdin.fileno()
    if not os.read(descriptor, 1 << 12):
        asyncio.get_running_loop().remove_reader(descriptor)
        end.set()


def _http_listener() -> type[HttpListener]:
    """A broker without [http] loads nothing of it."""
    try:
        from palio.net.listeners.http.listener import HttpListener
    except ModuleNotFoundError as error:
        if error.name not in ("anyio", "h11", "httpcore", "websockets"):
            raise
        raise MissingSoftware(
            f"[http] needs the package {error.name}: pip install 'palio[http]', or leave the section out"
        ) from None
    return HttpListener


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        log_event(logging.INFO, "uvloop is not installed; the broker is slower without it")
        return None
    return uvloop.new_event_loop
