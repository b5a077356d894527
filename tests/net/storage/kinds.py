"""The kinds of stores that pass the same tests: how each is opened, and opened again after a crash."""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from itertools import count
from pathlib import Path
from types import ModuleType

from palio.lab.bench.loopback.postgres import PostgresPair
from palio.net.storage import sqlite_reading
from palio.net.storage.buffered import BufferedStore
from palio.net.storage.sqlite import SqliteStore

_numbers = count(1)


class StoreKind(ABC):
    """A place for one store; `open` may be called again when it was closed, or its process killed."""

    module: ModuleType
    place: str
    """The argument of `opening`, Python that opens the store in another process."""
    opening: str
    examples: int

    @abstractmethod
    def open(self) -> BufferedStore: ...

    @abstractmethod
    def another(self) -> StoreKind:
        """The same kind with a store of its own."""

    def close(self) -> None:
        return None


class SqliteKind(StoreKind):
    module = sqlite_reading
    opening = """
from pathlib import Path
from palio.net.storage.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
"""
    examples = 40

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.place = self._folder.name

    def open(self) -> BufferedStore:
        return SqliteStore(Path(self.place))

    def another(self) -> StoreKind:
        return SqliteKind()

    def close(self) -> None:
        self._folder.cleanup()


class PostgresKind(StoreKind):
    """Each store is another broker of one database."""

    opening = """
from palio.net.storage.database import Database
from palio.net.storage.lease import Standby
from palio.net.storage.postgres import PostgresStore
url, name = sys.argv[1].rsplit(" ", 1)
database = Database(url, name, "a test")
lease = Standby(database, name, 0.5).wait()
store = PostgresStore(database, name, lease.epoch)
"""
    examples = 5

    def __init__(self, pair: PostgresPair) -> None:
        from palio.net.storage import postgres
        from palio.net.storage.database import Database

        self._pair, self.module = pair, postgres
        self._name = f"broker-{next(_numbers)}"
        self.place = f"{pair.url()} {self._name}"
        self._database = Database(pair.url(), self._name, "a test")
        self._epoch: int | None = None

    def open(self) -> BufferedStore:
        from palio.net.storage.lease import Standby
        from palio.net.storage.postgres import PostgresStore

        if self._epoch is None:
            lease = Standby(self._database, self._name, 0.5).wait()
            assert lease is not None
            self._epoch = lease.epoch
            lease.release()  # nobody else wants it, and commits ask for the epoch alone
        return PostgresStore(self._database, self._name, self._epoch)

    def another(self) -> StoreKind:
        return PostgresKind(self._pair)

    def close(self) -> None:
        self._database.close()
