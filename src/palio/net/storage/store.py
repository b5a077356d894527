"""What the host needs of a store, beyond what the core needs (`protocol/durability/storage.py`).

    put, delete ──▶ pending ──begin()──▶ leaving ──commit()──▶ safe
    get, scan       see everything: pending, leaving and safe

The event loop's thread calls everything but `commit` and `checkpoint`: each of these has a worker
thread of its own, one call at a time. What always holds: a commit makes all changes that were pending
at `begin` safe, or none of them. After a commit that raised StoreOutage the changes are still leaving,
are still seen, and `commit` may be called again; it may turn out that they were safe already.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from palio.errors import PalioError
from palio.protocol.durability.storage import DamagedStore, Store


class StoreFailed(PalioError):
    """A commit or a read failed. Everything that was committed before is safe."""


class StoreDamaged(DamagedStore, StoreFailed):
    """What was committed is not all there any more, or cannot be read: `path` and `key` say where."""


class StoreOutage(StoreFailed):
    """The store takes nothing for the time being. The commit may be retried."""

    retry_s: ClassVar[float] = 1.0
    """How long to wait before the commit is retried."""


class StoreFull(StoreOutage):
    """No room is left. The commit may be retried later."""


class StoreUnreachable(StoreOutage):
    """The database does not answer, or nobody knows whether it took the commit."""

    retry_s = 0.2


class StoreAway(StoreFailed):
    """A read failed because the database is away. The broker cannot go on from where it is, and starts
    again from what is stored when the database is back."""


class LeaseExpired(StoreOutage):
    """The lease on the broker's name could not be renewed in time; nobody is known to have taken it."""


class LeaseLost(StoreFailed):
    """Another process has taken the lease and runs the broker now. This one must end."""


class CommittingStore(Store, Protocol):
    @property
    def pending_bytes(self) -> int:
        """Bytes in memory that wait for their commit."""
        ...

    @property
    def failure(self) -> StoreFailed | None:
        """The failure of a read. The core may take it for an error of a client; the host looks here."""
        ...

    @property
    def wants_checkpoint(self) -> bool: ...

    def begin(self) -> int:
        """Start a commit of everything that is pending; gives the number of keys."""
        ...

    def commit(self) -> None:
        """Make what is leaving safe; raises StoreOutage or StoreFailed."""
        ...

    def checkpoint(self) -> None:
        """Do maintenance beside commits; called when `wants_checkpoint` is set."""
        ...

    def close(self) -> None: ...
