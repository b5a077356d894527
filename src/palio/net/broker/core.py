"""What the host uses of a broker's core (`protocol/broker/broker.py`), and how a core is made.

The host calls only these methods; tests replace the core by a small one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from palio.model.language import parse
from palio.net.config.values import Config
from palio.protocol.broker.access import Access
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.effects import BackgroundJob, Effects
from palio.protocol.broker.links import ANYWHERE, LinkOrigin
from palio.protocol.broker.listener_acts import ListenerActs
from palio.protocol.broker.schemas import Schemas
from palio.protocol.broker.snapshot import Snapshot
from palio.protocol.durability.storage import Store


class Core(Protocol):
    """The times passed as `now_us` must never decrease."""

    @property
    def listener_acts(self) -> ListenerActs: ...

    @property
    def deadline_us(self) -> int:
        """When to call `wake` at the latest."""
        ...

    def open(
        self, link: int, now_us: int, origin: LinkOrigin = ANYWHERE, *, dials: str | None = None
    ) -> None: ...

    def secure(self, link: int, size: int, certificate: str, now_us: int) -> None: ...

    def receive(self, link: int, data: bytes, now_us: int) -> None: ...

    def close(self, link: int, now_us: int) -> None: ...

    def congest(self, link: int, is_congested: bool, now_us: int) -> None: ...

    def pause(self, now_us: int) -> None: ...

    def resume(self, now_us: int) -> None: ...

    def reload_access(
        self, access: Access, now_us: int, schemas: Schemas | None = None
    ) -> None: ...

    def wake(self, now_us: int) -> None: ...

    def committed(self, ticket: int, now_us: int) -> None: ...

    def finished(self, job: BackgroundJob[Any], now_us: int) -> None: ...

    def take(self) -> Effects: ...

    def is_linked(self, neighbour: str) -> bool: ...

    def snapshot(self) -> Snapshot: ...


MakeCore: TypeAlias = Callable[[Config, Store, int], Core]
"""Makes a core from a configuration, its store, and the time in microseconds."""


def make_core(config: Config, store: Store, now_us: int) -> Broker:
    parse("x = 1")  # loads the parser now, not when the first client waits
    return Broker(
        config.settings, store, now_us, os.urandom, defers=True, stopwatch=time.perf_counter
    )
