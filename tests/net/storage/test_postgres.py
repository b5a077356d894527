"""The store in PostgreSQL: fencing, commits that are repeated, a synchronous standby that is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from palio.lab.bench.loopback.postgres import PostgresPair
from palio.net.storage.store import LeaseLost, StoreDamaged, StoreUnreachable

pytest.importorskip("psycopg")

from palio.net.storage import postgres as module
from palio.net.storage.database import Database
from palio.net.storage.lease import Lease, Standby
from palio.net.storage.postgres import PostgresStore

pytestmark = pytest.mark.xdist_group("postgres")
NAME = "fenced"


@pytest.fixture
def database(postgres: PostgresPair) -> Iterator[Database]:
    made = Database(postgres.url(), NAME, "a test")
    yield made
    made.close()


@pytest.fixture
def lease(database: Database) -> Iterator[Lease]:
    taken = Standby(database, NAME, 1.0).wait()
    assert taken is not None
    yield taken
    taken.release()


@pytest.fixture
def store(database: Database, lease: Lease) -> Iterator[PostgresStore]:
    made = PostgresStore(database, NAME, lease.epoch)
    yield made
    made.close()


def commit(store: PostgresStore, key: str, value: bytes = b"") -> None:
    store.put(key, value)
    store.begin()
    store.commit()


def test_an_old_epoch_changes_nothing(
    database: Database, store: PostgresStore, lease: Lease
) -> None:
    commit(store, "mine", b"1")
    old = PostgresStore(database, NAME, lease.epoch - 1)
    with pytest.raises(LeaseLost, match="another process runs the broker fenced now"):
        commit(old, "mine", b"2")
    old.close()
    other = PostgresStore(database, NAME, lease.epoch)
    assert other.get("mine") == b"1"
    other.close()


def test_a_commit_whose_connection_is_lost_is_repeated(
    postgres: PostgresPair, store: PostgresStore
) -> None:
    commit(store, "a", b"1")
    for turn in range(3):
        postgres.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE application_name = 'palio {NAME}'"
        )
        commit(store, "a", str(turn).encode())
        assert store.get("b") is None
        assert dict(store.scan("a")) == {"a": str(turn).encode()}


def test_a_standby_that_is_gone_is_an_outage_and_its_commit_is_not_acknowledged(
    postgres: PostgresPair, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The primary has committed, and says so; that is not enough. Nor does a repeated delete pass."""
    commit(store, "kept", b"1")
    commit(store, "gone", b"1")
    monkeypatch.setattr(module, "COMMIT_S_MAX", 0.3)
    postgres.set_synchronous("nobody")
    try:
        store.delete("gone")
        store.begin()
        for _ in range(2):
            with pytest.raises(StoreUnreachable, match="start its synchronous standby"):
                store.commit()
        assert store.pending_bytes > 0
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        assert postgres.sql(sessions) == [(0,)], "no session is left behind"
    finally:
        postgres.set_synchronous("sb")
    monkeypatch.undo()
    store.commit()
    assert store.pending_bytes == 0
    assert store.get("kept") == b"1"
    assert store.get("gone") is None


def test_a_server_that_is_stopped_ends_the_wait(
    postgres: PostgresPair, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is locked stands for a server that does not answer."""
    import psycopg

    monkeypatch.setattr(module, "COMMIT_S_MAX", 0.3)
    with psycopg.connect(postgres.url()) as blocker:
        blocker.execute("LOCK TABLE palio.entries")
        store.put("late", b"1")
        store.begin()
        with pytest.raises(StoreUnreachable, match="cannot be used: "):
            store.commit()
    store.commit()
    assert store.get("late") == b"1"


def test_a_damaged_value_is_noticed_when_it_is_read(
    postgres: PostgresPair, database: Database, lease: Lease, store: PostgresStore
) -> None:
    commit(store, "a/1", b"one")
    commit(store, "a/2", b"two")
    postgres.sql(
        f"UPDATE palio.entries SET value = 'x' || value WHERE broker = '{NAME}' AND key = 'a/2'"
    )
    other = PostgresStore(database, NAME, lease.epoch)
    with pytest.raises(StoreDamaged, match="'a/2' is damaged: its checksum is wrong") as raised:
        list(other.scan("a/"))
    assert other.failure is raised.value
    assert raised.value.path == database.name
    other.close()
    with pytest.raises(StoreDamaged):
        list(module.snapshot(database, NAME))
    commit(store, "a/2", b"")
