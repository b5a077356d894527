"""A PostgreSQL database: connections with bounds, and sentences for what goes wrong with them.

What always holds for a connection: the server takes writes (of several hosts in the URL the one that
does), its timeline is not older than one seen before, and TCP notices a machine that is gone.

A timeline counts the promotions of a standby. An old primary that was started again after its standby
was promoted takes writes too, and a URL with several hosts may lead there; its timeline is older, so
it is refused.
"""

from __future__ import annotations

import logging
from typing import Any, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from palio.errors import PalioError
from palio.net.monitoring.logs import log_event
from palio.net.storage.stall_guard import StallGuard
from palio.net.storage.store import LeaseLost, StoreFailed, StoreFull, StoreUnreachable

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

LEASE_LOST = "PL001"
"""The SQLSTATE by which the function `palio.commit` refuses another epoch."""
_USUAL = {
    "connect_timeout": "3",
    "target_session_attrs": "read-write",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}
"""Settings of libpq; the URL may say otherwise."""
_TRANSIENT = ("08", "57P", "57014", "25006", "40", "55P03", "53")
"""SQLSTATEs, or how they begin, of statements that may succeed when they are repeated: the connection,
a shutdown, a cancelled statement, a standby, serialization, a lock, resources of the server."""
_REMEDIES = {
    "password": "set the password in the URL, in PGPASSWORD or in ~/.pgpass",
    "no pg_hba.conf entry": "let this user and host in (pg_hba.conf of the server)",
    "does not exist": "create it (createuser, createdb), or correct the URL",
    "Connection refused": "start the server, or correct host and port",
    "could not translate host name": "correct the host",
    "resolve": "correct the host",
    "timeout expired": "check that the host is up, and the way to it",
    "read-only": "add the host of the primary: postgresql://a,b/...?target_session_attrs=read-write",
}
"""Words of libpq and of the server, which give no code for a connection that fails, and what helps."""


class Database:
    """Of the broker `broker`; `place` says where its URL is written."""

    def __init__(self, url: str, broker: str, place: str) -> None:
        self._place = place
        try:
            given = conninfo_to_dict(url)
        except psycopg.ProgrammingError:  # its text shows the URL, and so the password
            raise PalioError(
                f"{place}: this is no URL of PostgreSQL",
                remedy="it is postgresql://user@host:5432/database?setting=value (the settings of "
                "libpq); in a password, @ : / and % are written as %40 %3A %2F and %25",
            ) from None
        self.name = _shown(given)
        """Where it is, without a password."""
        usual = {**_USUAL, "application_name": f"palio {broker}"}
        self._hosts = [make_conninfo("", **{**usual, **host}) for host in _hosts(given)]
        """A setting of libpq for each host of the URL; the first is the one that was used last."""
        self._timeline = 0
        self.guard = StallGuard()

    def connect(self) -> Connection:
        """A new connection, in autocommit mode; raises psycopg.Error."""
        failures: list[psycopg.Error] = []
        hosts = self._hosts  # several threads connect: the list is replaced, never changed
        for host in hosts:
            try:
                connection = self._connected(host)
            except psycopg.Error as error:
                failures.append(error)
                continue
            self._hosts = [host, *(other for other in hosts if other != host)]
            return connection
        if len(failures) == 1:
            raise failures[0]
        raise psycopg.OperationalError("; ".join(map(_text, failures)))

    def _connected(self, host: str) -> Connection:
        connection = psycopg.connect(host, autocommit=True)
        try:
            with self.guard.watching(connection, 5.0):
                connection.execute("SET plan_cache_mode = force_custom_plan")
                self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: Connection) -> None:
        row = connection.execute(
            "SELECT current_setting('server_encoding'), "
            "CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_walfile_name(pg_current_wal_lsn()) END"
        ).fetchone()
        assert row is not None
        encoding, segment = row
        if encoding != "UTF8":
            raise StoreFailed(
                f"{self.name} has the encoding {encoding}; create a database with UTF8 (createdb -E UTF8)"
            )
        timeline = int(segment[:8] or "0", 16)
        if timeline < self._timeline:
            raise psycopg.OperationalError(
                f"its timeline is {timeline}, and {self._timeline} was seen: an old primary runs again; "
                f"stop it"
            )
        self._timeline = timeline

    def first_connection(self) -> Connection:
        """The connection of a start; raises a sentence."""
        try:
            return self.connect()
        except psycopg.Error as error:
            text = _text(error)
            remedy = next((help for word, help in _REMEDIES.items() if word in text), "")
            raise StoreFailed(
                f"the database {self.name} ({self._place}) cannot be used: {text}",
                remedy=remedy or "correct the URL, or start the server",
            ) from None

    def failure(self, error: psycopg.Error, broker: str) -> StoreFailed:
        """The error of a store for an error of its database."""
        code = error.sqlstate or ""
        if code == LEASE_LOST:
            return LeaseLost(
                f"another process runs the broker {broker} now: it has taken the lease"
            )
        if code == "53100":
            return StoreFull(f"no room is left for {self.name}; free some on its disk")
        text = f"the database {self.name} cannot be used: {_text(error)}"
        if not code or code.startswith(_TRANSIENT):
            return StoreUnreachable(text)
        return StoreFailed(f"{text} ({code})")

    def warn_if_single(self, connection: Connection) -> None:
        """Say so if what is committed is on one machine only."""
        row = connection.execute("SELECT current_setting('synchronous_standby_names')").fetchone()
        if row == ("",):
            log_event(
                logging.WARNING,
                "commits are on one machine only: set synchronous_standby_names there",
                database=self.name,
            )

    def close(self) -> None:
        self.guard.close()


def _text(error: psycopg.Error) -> str:
    """What libpq or the server says, in one line."""
    text = (error.diag.message_primary or str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _hosts(given: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of each host: libpq would take the first that answers, an old primary too."""
    names = str(given.get("host") or "").split(",")
    ports = str(given.get("port") or "").split(",")
    if len(names) == 1 or given.get("hostaddr"):
        return [given]
    ports = ports * len(names) if len(ports) == 1 else ports
    pairs = list(zip(names, ports, strict=False))
    return [{**given, "host": host, "port": port or None} for host, port in pairs]


def _shown(given: dict[str, Any]) -> str:
    hosts = str(given.get("host") or given.get("hostaddr") or "localhost").split(",")
    ports = str(given.get("port") or "5432").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    places = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=False))
    return f"postgresql://{places}/{given.get('dbname') or given.get('user') or ''}"
