"""A PostgreSQL primary and its synchronous standby on loopback, in a temporary folder.

initdb refuses root, so everything runs as the user `postgres` then.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from palio.errors import MissingSoftware, PalioError
from palio.lab.bench.loopback.processes import free_port

_USER = "postgres"
_START_S = 60.0
_LEFTOVERS_S = 10.0
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_log_hints = on
recovery_init_sync_method = syncfs
wal_keep_size = 256MB
max_wal_size = 2GB
fsync = {fsync}
"""


def why_no_postgres() -> str | None:
    """Why PostgreSQL cannot be used here; None: it can."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed (pip install 'palio[postgres]')"
    if _folder() is None:
        return "PostgreSQL is not installed (no initdb in PATH or /usr/lib/postgresql)"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL does not run as root, and there is no runuser"
    return None


def _folder() -> Path | None:
    """Where the programs of the newest PostgreSQL are."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3])
    )
    found = shutil.which("initdb")
    programs = [Path(found)] if found else installed[-1:]
    return programs[0].resolve().parent if programs else None


class PostgresPair:
    """`postgres_pair` makes it. The first node is the primary until it is killed."""

    def __init__(self, folder: Path, fsync: bool) -> None:
        programs = _folder()
        assert programs is not None
        self._folder, self._programs = folder, programs
        self._settings = _SETTINGS.format(fsync="on" if fsync else "off")
        self.ports = {"a": free_port(), "b": free_port()}

    def url(self, database: str = "postgres") -> str:
        """Leads to whichever node is the primary."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return f"postgresql://{_USER}@{hosts}/{database}?target_session_attrs=read-write"

    def start(self) -> None:
        a = self._folder / "a"
        self._run("initdb", "-D", a, "-U", _USER, "-A", "trust", "-k", "-E", "UTF8", "--locale=C",
                  "--no-sync")  # fmt: skip
        with (a / "postgresql.conf").open("a") as file:
            file.write(self._settings)
        self.start_node("a")
        self.follow("b")

    def follow(self, node: str) -> None:
        """Make a node anew, as the synchronous standby of the other one, which is the primary."""
        primary, folder = "b" if node == "a" else "a", self._folder / node
        shutil.rmtree(folder, ignore_errors=True)
        self.sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots", primary)
        source = f"host=127.0.0.1 port={self.ports[primary]} user={_USER} application_name=sb"
        self._run("pg_basebackup", "-D", folder, "-R", "-X", "stream", "-C", "-S", "sb", "-c", "fast",
                  "--no-sync", "-d", source)  # fmt: skip
        self.start_node(node)
        self.set_synchronous("sb", primary)
        self._wait_until_synchronous(primary)

    def start_node(self, node: str) -> None:
        words = ("pg_ctl", "-D", self._folder / node, "-o", f"-p {self.ports[node]}", "-l",
                 self._folder / f"{node}.log", "-w", "start")  # fmt: skip
        until = time.monotonic() + _LEFTOVERS_S
        while True:
            try:
                return self._run(*words)
            except PalioError:  # processes of a node that was killed may take a moment to end
                if time.monotonic() > until:
                    raise
            time.sleep(0.2)

    def sql(self, statement: str, node: str = "a") -> list[tuple[object, ...]]:
        import psycopg

        url = f"postgresql://{_USER}@127.0.0.1:{self.ports[node]}/postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def set_synchronous(self, name: str, node: str = "a") -> None:
        """Commits on a node wait for the standby of this name from now on."""
        self.sql(f"ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 ({name})'", node)
        self.sql("SELECT pg_reload_conf()", node)
        while self.sql("SHOW synchronous_standby_names", node) != [(f"FIRST 1 ({name})",)]:
            time.sleep(0.01)
        time.sleep(0.1)  # sessions that are open read it a moment later

    def require_password(self, role: str) -> None:
        """Everybody else is let in without one."""
        path = self._folder / "a" / "pg_hba.conf"
        path.write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n{path.read_text()}")
        self.sql("SELECT pg_reload_conf()")

    def kill(self, node: str) -> None:
        """As a power cut: all its processes are killed. Returns when they are gone."""
        file = self._folder / node / "postmaster.pid"
        if not file.exists():
            return
        pid = int(file.read_text().split()[0])
        processes = [pid, *_children(pid)]
        for one in processes:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        until = time.monotonic() + _LEFTOVERS_S
        while any(map(_is_running, processes)) and time.monotonic() < until:
            time.sleep(0.01)

    def promote(self, node: str) -> None:
        self.sql("SELECT pg_promote()", node)

    def _wait_until_synchronous(self, primary: str) -> None:
        until = time.monotonic() + _START_S
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        while self.sql(query, primary) != [(1,)]:
            if time.monotonic() > until:
                raise PalioError(f"the standby is not synchronous; see {self._folder}/*.log")
            time.sleep(0.05)

    def _run(self, program: str | Path, *arguments: str | Path) -> None:
        words = [str(self._programs / program), *map(str, arguments)]
        if os.geteuid() == 0:
            words = ["runuser", "-u", _USER, "--", *words]
        done = subprocess.run(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
            timeout=2 * _START_S, cwd="/", stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            raise PalioError(f"{program} failed: {done.stderr.strip()[-500:]}")


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return []


def _is_running(pid: int) -> bool:
    """It exists, and has not only been left by its parent as a zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextmanager
def postgres_pair(*, fsync: bool = True) -> Iterator[PostgresPair]:
    """A primary and a synchronous standby while the block lasts."""
    if reason := why_no_postgres():
        raise MissingSoftware(reason)
    folder = Path(tempfile.mkdtemp(prefix="palio-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, _USER)
    pair = PostgresPair(folder, fsync)
    try:
        pair.start()
        yield pair
    finally:
        for node in pair.ports:
            pair.kill(node)
        shutil.rmtree(folder, ignore_errors=True)
