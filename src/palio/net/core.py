"""What a host needs of its two other halves: the core, which decides, and the disk, which keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from palio.net.storage import StoreFailed
from palio.protocol.access import Access
from palio.protocol.effects import Effects
from palio.protocol.store import Store

Measure: TypeAlias = tuple[str, str, str, dict[str, str], float]
"""Name, kind (counter or gauge), what it is, labels, value."""


class Core(Protocol):
    """What the host needs of a `protocol.broker.Broker`."""

    @property
    def deadline_us(self) -> int: ...

    def open(
        self, link: int, now_us: int, *, certificate: str = "", dials: str | None = None
    ) -> None: ...

    def receive(self, link: int, data: bytes, now_us: int) -> None: ...

    def close(self, link: int, now_us: int) -> None: ...

    def press(self, link: int, pressed: bool, now_us: int) -> None:
        """More (or no longer more) waits on this connection than it should."""
        ...

    def wake(self, now_us: int) -> None: ...

    def committed(self, ticket: int, now_us: int) -> None: ...

    def take(self) -> Effects: ...

    def is_linked(self, neighbour: str) -> bool: ...

    def grant(self, access: Access, now_us: int) -> None: ...

    def measures(self) -> Iterable[Measure]: ...


class Disk(Store, Protocol):
    """A store with its commits: storage.py."""

    @property
    def pending_bytes(self) -> int: ...

    @property
    def failure(self) -> StoreFailed | None: ...

    @property
    def wants_checkpoint(self) -> bool: ...

    def begin(self) -> int: ...

    def commit(self) -> None: ...

    def checkpoint(self) -> None: ...

    def close(self) -> None: ...
