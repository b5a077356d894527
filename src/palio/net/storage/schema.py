"""The tables of a database that holds the stores of brokers, and the function that commits to them.

    palio.format    one row: the version of all this
    palio.lease     a row for each broker: who runs it, under which epoch, until when
    palio.entries   the keys and values of all brokers

`palio.commit` is a whole commit in one round trip. It first locks the row of the lease, if that has
the epoch of the caller: nobody can take the lease before the commit ends, and a caller whose lease was
taken changes nothing.

The lock is FOR KEY SHARE, and the epoch is part of a unique key. So the lock excludes those who change
the epoch, and not those who renew the lease: a commit that waits for a synchronous standby does not
cost its broker the lease.
"""

from __future__ import annotations

from typing import Final

import psycopg

from palio.errors import InvalidFile
from palio.net.storage.database import LEASE_LOST, Connection
from palio.net.storage.store import StoreFailed

FORMAT: Final = 2
"""1 had values without checksums (checked.py); no release wrote it."""
_LOCK: Final = 0x50414C49
"""Of those who make or change the tables at the same time; the letters PALI."""

_TABLES: Final = """
CREATE SCHEMA IF NOT EXISTS palio;
CREATE TABLE palio.format (one boolean PRIMARY KEY DEFAULT true CHECK (one), version int NOT NULL);
CREATE TABLE palio.lease (
    broker text COLLATE "C" PRIMARY KEY, epoch bigint NOT NULL, holder text NOT NULL,
    expires timestamptz NOT NULL, UNIQUE (broker, epoch)
);
CREATE TABLE palio.entries (
    broker text COLLATE "C", key text COLLATE "C", value bytea NOT NULL, PRIMARY KEY (broker, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE palio.entries ALTER value SET STORAGE EXTERNAL;
"""

_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION palio.commit(b text, e bigint, ks text[], vs bytea[], gone text[])
RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    PERFORM 1 FROM palio.lease WHERE broker = b AND epoch = e FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lease on % is not of epoch %', b, e USING ERRCODE = '{LEASE_LOST}';
    END IF;
    IF cardinality(ks) > 0 THEN
        INSERT INTO palio.entries (broker, key, value)
        SELECT b, k, v FROM unnest(ks, vs) AS put(k, v)
        ON CONFLICT (broker, key) DO UPDATE SET value = excluded.value;
    END IF;
    IF cardinality(gone) > 0 THEN
        DELETE FROM palio.entries WHERE broker = b AND key = ANY(gone);
    END IF;
END $$;
"""

_MIGRATIONS: Final[dict[int, str]] = {}
"""Statements that bring the tables from a version to the next one."""


def prepare(connection: Connection, name: str) -> None:
    """Make the tables in a new database, or bring them to this version; refuse a newer one."""
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            _prepare(connection, name)
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreFailed(
            f"the database {name} cannot hold a broker's data: {error.diag.message_primary}",
            remedy="give the user the right (GRANT CREATE ON DATABASE ... TO ...)",
        ) from None


def check(connection: Connection, name: str) -> None:
    """Raise what `prepare` would raise because of what it finds; nothing is changed."""
    version = _version(connection, name)
    if version is not None:
        _check_version(version, name)


def _check_version(version: int, name: str) -> None:
    if version > FORMAT:
        raise InvalidFile(
            f"{name} has format {version}; this Palio reads and writes formats up to {FORMAT}: "
            f"use the Palio that wrote it, or a newer one"
        )
    for step in range(version, FORMAT):
        if step not in _MIGRATIONS:
            raise InvalidFile(
                f"{name} has format {step}, which this Palio cannot bring to format {FORMAT}; "
                f"update by way of an older version"
            )


def _prepare(connection: Connection, name: str) -> None:
    version = _version(connection, name)
    if version is None:
        connection.execute(_TABLES)
        connection.execute(_FUNCTION)
        connection.execute("INSERT INTO palio.format (version) VALUES (%s)", (FORMAT,))
    elif version < FORMAT:
        _migrate(connection, version, name)
    else:
        _check_version(version, name)


def _version(connection: Connection, name: str) -> int | None:
    row = connection.execute(
        "SELECT to_regclass('palio.format') IS NOT NULL, "
        "EXISTS (SELECT FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
        "WHERE n.nspname = 'palio')"
    ).fetchone()
    assert row is not None
    is_ours, is_used = row
    if not is_ours and is_used:
        raise InvalidFile(
            f"{name} has a schema palio of another program; give the brokers a database of their own"
        )
    if not is_ours:
        return None
    found = connection.execute("SELECT version FROM palio.format").fetchone()
    return 0 if found is None else int(found[0])


def _migrate(connection: Connection, version: int, name: str) -> None:
    """All brokers of the database change together, so none may run."""
    running = connection.execute(
        "SELECT broker FROM palio.lease WHERE expires > clock_timestamp() ORDER BY broker"
    ).fetchall()
    if running:
        raise StoreFailed(
            f"{name} has format {version} and would get format {FORMAT}, but brokers of the older "
            f"version use it: {', '.join(row[0] for row in running)}; stop them first"
        )
    _check_version(version, name)
    for step in range(version, FORMAT):
        connection.execute(_MIGRATIONS[step].encode())
    connection.execute(_FUNCTION)
    connection.execute("UPDATE palio.format SET version = %s", (FORMAT,))
