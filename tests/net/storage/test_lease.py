"""The lease on a broker's name: taken, renewed, released, expired, lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from palio.lab.bench.loopback.postgres import PostgresPair
from palio.net.storage.store import LeaseExpired, LeaseLost, StoreFailed

pytest.importorskip("psycopg")

from palio.net.storage.database import Database
from palio.net.storage.lease import Lease, Standby

pytestmark = pytest.mark.xdist_group("postgres")


@pytest.fixture
def database(postgres: PostgresPair) -> Iterator[Database]:
    made = Database(postgres.url(), "leased", "a test")
    yield made
    made.close()


def taken(database: Database, broker: str, lease_s: float) -> Lease:
    lease = Standby(database, broker, lease_s).wait()
    assert lease is not None
    return lease


def test_a_lease_has_one_holder_and_epochs_grow(database: Database) -> None:
    first = taken(database, "lease-1", 0.6)
    standby = Standby(database, "lease-1", 0.6)
    assert standby.wait(1.5) is None, "it is renewed"
    assert standby.other
    first.release()
    began = time.monotonic()
    second = taken(database, "lease-1", 0.6)
    assert time.monotonic() - began < 0.5
    assert (first.epoch, second.epoch) == (1, 2)
    second.release()


def test_a_lease_that_nobody_renews_expires(database: Database) -> None:
    lease = taken(database, "lease-2", 0.6)
    lease._released.set()  # its thread ends, as in a process that was killed
    began = time.monotonic()
    following = taken(database, "lease-2", 0.6)
    assert 0.3 < time.monotonic() - began < 5.0
    assert following.epoch == 2
    following.release()


def test_a_standby_that_is_cancelled_ends(database: Database) -> None:
    lease = taken(database, "three", 0.6)
    standby = Standby(database, "three", 0.6)
    threading.Timer(0.2, standby.cancel).start()
    assert standby.wait() is None
    lease.release()


def test_who_loses_the_lease_is_told(postgres: PostgresPair, database: Database) -> None:
    lease = taken(database, "four", 0.6)
    told: list[StoreFailed | None] = []
    postgres.sql(
        "UPDATE palio.lease SET epoch = epoch + 1, holder = 'rome:7' WHERE broker = 'four'"
    )
    lease.watch(told.append)
    wait_for(told)
    assert isinstance(told[0], LeaseLost)
    assert "the lease of epoch 1 was taken (it is with rome:7, epoch 2)" in str(told[0])
    lease.release()
    assert postgres.sql("SELECT holder FROM palio.lease WHERE broker = 'four'") == [("rome:7",)]


def test_a_lease_that_cannot_be_renewed_is_told_and_may_be_renewed_later(
    postgres: PostgresPair,
) -> None:
    postgres.sql("CREATE ROLE tenant LOGIN")
    postgres.sql("CREATE DATABASE tenant OWNER tenant")
    database = Database(postgres.url("tenant").replace("postgres@", "tenant@"), "five", "a test")
    lease = taken(database, "five", 0.6)
    told: list[StoreFailed | None] = []
    lease.watch(told.append)
    postgres.sql("ALTER ROLE tenant NOLOGIN")
    postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tenant'")
    wait_for(told)
    assert isinstance(told.pop(), LeaseExpired)
    postgres.sql("ALTER ROLE tenant LOGIN")
    wait_for(told)
    assert told == [None]
    lease.release()
    database.close()


def test_a_commit_under_way_holds_off_a_takeover_and_not_a_renewal(
    postgres: PostgresPair, database: Database
) -> None:
    """As it is while a commit waits for a synchronous standby."""
    lease = taken(database, "busy", 0.6)
    told: list[StoreFailed | None] = []
    lease.watch(told.append)
    with database.connect() as committer, committer.transaction():
        committer.execute("SELECT palio.commit('busy', %s, '{a}', '{b}', '{}')", (lease.epoch,))
        time.sleep(1.2)
        assert told == [], "it was renewed"
        lease._released.set()
        lease._thread.join()
        postgres.sql("UPDATE palio.lease SET expires = 'epoch' WHERE broker = 'busy'")
        assert Standby(database, "busy", 0.6).wait(1.0) is None
    following = taken(database, "busy", 0.6)
    assert following.epoch > lease.epoch
    following.release()


def wait_for(told: list[StoreFailed | None]) -> None:
    deadline = time.monotonic() + 20
    while not told:
        assert time.monotonic() < deadline
        time.sleep(0.02)
