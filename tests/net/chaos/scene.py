"""Five brokers, a ring with chords, with a line that can fail for each link and each client.

    clients c1..c20 ══ a line each ══▶ brokers b1..b5, a line for each link
    mqtt, http      ══ a line each ══▶ the listeners of two of them
                                       killed, restarted, frozen, thawed
                    lines: cut, silenced, stalled, delayed, broken in the middle of a frame

Scenes with other faults extend this one: they prepare something before the brokers start, and say
what their own kinds of faults do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import palio
from palio.net.cluster import Cluster, local_cluster
from palio.net.cluster.configuration import Toml
from palio.net.cluster.ports import HOST, free_ports
from palio.net.storage.sqlite import SqliteStore
from palio.protocol.durability.message_store import MessageStore
from tests.net.chaos.listeners import LISTENING, possible, section
from tests.net.chaos.plans import BROKERS, Fault, Plan
from tests.net.faults import Line

CHORDS = 2


class Scene:
    """`note` prints a line; `restarts` says of each broker when it went down. Faults of one target follow
    each other; those of others overlap."""

    has_true_clocks = True
    """Those of brokers and clients agree: delays and what expires soon can be judged."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        note: Callable[[str], None],
        restarts: dict[str, list[float]],
    ) -> None:
        self.plan, self.folder, self.note = plan, folder, note
        self.restarts = restarts
        self.cluster: Cluster
        self.took_s: dict[str, list[float]] = {}
        """How long takeovers took, by what was waited for."""
        self.listeners: dict[str, str] = {}
        """Where readers that are no clients of Palio connect to: MQTT, HTTP."""
        self.own_settings: dict[str, Toml] = {}
        """Of the brokers with a listener."""
        self._lines: dict[str, Line] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    # ---- the network

    @property
    def names(self) -> list[str]:
        return self.cluster.names

    @property
    def links(self) -> list[str]:
        return ["-".join(pair) for pair in self.cluster.links]

    def settings(self) -> dict[str, Mapping[str, object]]:
        """Of all brokers."""
        return {
            "times": {"keepalive": self.plan.keepalive, "redial_max": "1 s", "stop": "2 s"},
            "log": {"memory": "1 MiB"},  # so that much is read back from the disk
        }

    async def build(self, stack: AsyncExitStack) -> None:
        """Start the brokers, until the stack is left."""
        settings: Toml = self.settings()
        self.cluster = cluster = local_cluster(
            BROKERS, "ring", chords=CHORDS, data=self.folder, settings=settings
        )
        for pair in cluster.links:
            line = await stack.enter_async_context(Line(str(cluster.addresses[pair])))
            cluster.addresses[pair] = line.address
            self._lines["-".join(pair)] = line
        await self._listen(stack)
        self.prepare(stack)
        await stack.enter_async_context(cluster)

    async def _listen(self, stack: AsyncExitStack) -> None:
        """The listeners for those that are no clients of Palio."""
        listeners = possible()
        ports = free_ports(0, len(listeners))
        for name, port in zip(listeners, ports, strict=True):
            self.own_settings[LISTENING[name]] = section(name, port)
            line = await stack.enter_async_context(Line(f"{HOST}:{port}"))
            self._lines[name] = line
            self.listeners[name] = line.address
        self.cluster.own_settings.update(self.own_settings)

    def prepare(self, stack: AsyncExitStack) -> None:
        """Called before the brokers start."""

    async def url(self, client: str, home: str, stack: AsyncExitStack) -> str:
        """Where a client connects to."""
        line = await stack.enter_async_context(
            Line(self.cluster.url(home).removeprefix("palio://"))
        )
        self._lines[client] = line
        return f"palio://{line.address}"

    def token(self, client: str) -> str | None:
        """By which a client is known; None: it is anonymous."""
        return None

    async def agreed(self) -> None:
        await self.cluster.agreed()

    async def watched(self) -> None:
        """Raises when a broker ends that nobody stopped."""
        await self.cluster.watched()

    # ---- faults

    async def inflict(self, fault: Fault) -> None:
        async with self._locks.setdefault(fault.target, asyncio.Lock()):
            if fault.target in self._lines:
                await self._hit_line(self._lines[fault.target], fault)
            else:
                await self.hit(fault)

    async def hit(self, fault: Fault) -> None:
        """A fault of a broker, or of something that only this scene has."""
        cluster, name = self.cluster, fault.target
        if fault.kind == "freeze":
            cluster.freeze(name)
            await asyncio.sleep(fault.lasts_s)
            cluster.thaw(name)
            return
        for times in range(2 if fault.kind == "kill twice" else 1):
            if times:  # the second comes while it starts, or soon after
                await asyncio.sleep(2 * fault.detail)
            self.kill(name)
            await asyncio.sleep(fault.lasts_s / 2)
            cluster.start(name)

    def kill(self, name: str) -> None:
        self.restarts[name].append(time.monotonic())
        self.cluster.kill(name)

    async def _hit_line(self, line: Line, fault: Fault) -> None:
        match fault.kind.removeprefix("client "):
            case "cut":
                line.cut()
            case "silence":
                line.silence()
            case "stall":
                line.stall()
            case "delay":
                line.delay(0.01 + 0.2 * fault.detail)
            case "break":
                line.break_at(int(1 + 20_000 * fault.detail))
        await asyncio.sleep(fault.lasts_s)
        line.heal()

    async def timed(
        self, broker: str, what: str, waited_for: Awaitable[None], began: float
    ) -> None:
        """Print how long something took, and keep the figure for the summary."""
        await waited_for
        took_s = time.monotonic() - began
        self.took_s.setdefault(what, []).append(took_s)
        self.note(f"{broker}: {what} after {took_s:.2f} s")

    # ---- the end

    def after(self) -> str:
        """What the disks of the brokers hold."""
        lines = []
        for name in self.names:
            store = SqliteStore(self.folder / name)
            epoch = (store.get("broker/epoch") or b"").decode()
            now_us = time.time_ns() // 1000
            held = MessageStore(store, name, epoch, now_us).statistics()
            store.close()
            queues = {queue: count for queue, count in held.queues.items() if count}
            lines.append(f"{name}: {held.messages} messages, {held.publishers} publishers, "
                         f"streams {held.backlogs}, queues {queues}")  # fmt: skip
        return "\n".join([*lines, f"logs and disks: {self.folder}"])


async def probed(url: str, name: str) -> None:
    """Return when a broker has stored a message; no subscription of the chaos test selects it."""
    async with palio.connect(url, name=name, wait=30, max_wait=120.0) as client:
        await client.publish({"probe": True})
