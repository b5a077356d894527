"""Brokers that restart with another configuration, or reload identities and grants (SIGHUP).

Limits, credit windows, keepalives, memory and weights change at restarts; the routing policy stays, as
it must in a network. Half of the clients have a token, whose grant changes to another one that still
covers what they do. A visitor has an identity that comes and goes.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from random import Random

import palio
from palio.errors import RefusedByBroker, Unreachable
from palio.net.cluster.configuration import Toml
from tests.net.chaos.plans import Fault
from tests.net.chaos.scene import Scene

TOKEN, VISITOR = "chaos-token", "visitor-token"
_EVERYTHING = {"subscribe": "TRUE", "publish": "TRUE", "admin": True}
_GRANTS = ("TRUE", "price IS NOT NULL OR delay IS NOT NULL")
"""Each covers every predicate of the workload, and matches every message of it."""
_VISITS_S_MAX = 60.0


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class ConfigScene(Scene):
    def prepare(self, stack: AsyncExitStack) -> None:
        self._draw = Random(self.plan.seed)
        self._restarted: dict[str, dict[str, Mapping[str, object]]] = {n: {} for n in self.names}
        self._grants: dict[str, dict[str, Mapping[str, object]]] = {
            name: {"identities.chaos": {"token_sha256": _hashed(TOKEN), **_EVERYTHING}}
            for name in self.names
        }
        for name in self.names:
            self._apply(name)

    def settings(self) -> dict[str, Mapping[str, object]]:
        return {**super().settings(), "access": {"anonymous": True, **_EVERYTHING}}

    def token(self, client: str) -> str | None:
        return TOKEN if int(client[1:]) % 2 else None

    def _apply(self, name: str) -> None:
        listeners = self.own_settings.get(name, {})
        own: Toml = {**listeners, **self._restarted[name], **self._grants[name]}
        self.cluster.own_settings[name] = own

    async def hit(self, fault: Fault) -> None:
        name = fault.target
        match fault.kind.split():
            case ["reconfigure", *kill]:
                self._restarted[name] = self._drawn(name)
                self._apply(name)
                self.note(f"{name} restarts with {self._restarted[name]}")
                if kill:
                    self.kill(name)
                else:
                    self.restarts[name].append(time.monotonic())
                    await asyncio.to_thread(self.cluster.stop, name)
                await asyncio.sleep(fault.lasts_s / 2)
                self.cluster.start(name)
            case ["reload"]:
                grant = self._draw.choice(_GRANTS)
                changed = {"token_sha256": _hashed(TOKEN), "subscribe": grant, "publish": grant,
                           "admin": True}  # fmt: skip
                self._grants[name] = {**self._grants[name], "identities.chaos": changed}
                await self._reload(name)
                await asyncio.sleep(fault.lasts_s)
            case ["visitor"]:
                await self._visit(name)
            case _:
                await super().hit(fault)

    def _drawn(self, name: str) -> dict[str, Mapping[str, object]]:
        """What a broker says after its next restart."""
        draw = self._draw
        weights = {
            f"neighbours.{other}": {"weight": round(draw.uniform(0.5, 4.0), 2)}
            for pair in self.cluster.links
            if name in pair
            for other in pair
            if other != name
        }
        return {
            "limits": {
                "waiting": draw.choice((100, 1_000, 10_000)),
                "link": draw.choice(("64 KiB", "1 MiB")),
                "uncommitted": draw.choice(("256 KiB", "64 MiB")),
                "connections": draw.choice((100, 10_000)),
            },
            "queues": {
                "window": draw.choice((64, 128, 1024)),
                "window_bytes": draw.choice(("64 KiB", "16 MiB")),
                "bound": draw.choice((20_000, 100_000)),
                "backlog": draw.choice((50_000, 1_000_000)),
            },
            "log": {"memory": draw.choice(("256 KiB", "1 MiB", "64 MiB"))},
            "times": {
                "keepalive": draw.choice(("300 ms", "1 s", "3 s")),
                "redial": draw.choice(("50 ms", "500 ms")),
            },
            **weights,
        }

    async def _reload(self, name: str) -> None:
        """SIGHUP, when the broker has started to listen for it."""
        self._apply(name)
        await self._reached(name)
        self.cluster.reload(name)

    async def _reached(self, name: str) -> None:
        async with palio.connect(self.cluster.url(name), wait=_VISITS_S_MAX):
            pass

    # ---- the visitor

    async def _visit(self, name: str) -> None:
        """Its token is added, used and removed; each time the broker must follow."""
        given: Mapping[str, object] = {"token_sha256": _hashed(VISITOR), "publish": "visit = TRUE"}
        self._grants[name] = {**self._grants[name], "identities.visitor": given}
        await self._reload(name)
        await self._until(name, is_welcome=True)
        self._grants[name] = {
            key: value for key, value in self._grants[name].items() if key != "identities.visitor"
        }
        await self._reload(name)
        await self._until(name, is_welcome=False)
        self.note(f"{name} let the visitor in, and out again")

    async def _until(self, name: str, is_welcome: bool) -> None:
        url = self.cluster.url(name)
        async with asyncio.timeout(_VISITS_S_MAX):
            while True:
                try:
                    visitor = palio.connect(url, token=VISITOR, wait=_VISITS_S_MAX, max_wait=2.0)
                    async with visitor as client:
                        await client.publish({"visit": True})
                        let_in = True
                except (RefusedByBroker, Unreachable):  # the second: while it published
                    let_in = False
                if let_in is is_welcome:
                    return
                await asyncio.sleep(0.05)
