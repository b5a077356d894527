"""How a table reaches the workers: a closure carries a Location and never the table.

    driver                                         worker
    located(spark, table) ──▶ Location ──closure──▶ opened(Location) ──▶ ForwardingTable, kept

    what is given               where workers find it
    a file, a TableDirectory    at its path; beyond one machine it is shipped as an artifact too
    a ForwardingTable           in a temporary file of the driver's, then as a file
    a URL                       downloaded once a machine, into a cache directory

A file is known by its size and modification time, so what a job was planned with is what it runs
with, or an error. Workers map files into memory: those of one machine share the pages.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from palio.errors import InvalidFile
from palio.matching.expressions import TableExpressions
from palio.matching.table import ForwardingTable
from palio.spark.table_directory import TableDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Table: TypeAlias = ForwardingTable | TableDirectory | str | Path

_KEPT_MAX = 3  # versions that a worker keeps open


@dataclass(frozen=True, slots=True)
class Location:
    """Where a table is, and which it is; small enough for every closure."""

    address: str  # a path or a URL
    size: int  # bytes
    stamp: int  # when it was written, nanoseconds
    artifact: str | None = None  # the name under which it was shipped

    @property
    def is_remote(self) -> bool:
        return "://" in self.address

    @property
    def key(self) -> str:
        """A name for this very content."""
        known = f"{self.address}\n{self.size}\n{self.stamp}"
        return f"palio-{hashlib.sha256(known.encode()).hexdigest()[:20]}.palio"


# ---- the driver


def located(spark: SparkSession, table: Table, *, shared: bool | None = None) -> Location:
    """Make the table readable by the workers of a session and say where it is.

    `shared` says whether every worker sees the path; by default that is assumed of `local[N]` only,
    and the file is shipped everywhere else. A file that is missing or damaged raises InvalidFile.
    """
    location = driver_location(table)
    asked(location)  # it can be read, or this raises
    return location if location.is_remote else placed(spark, [location], shared)[0]


def placed(spark: SparkSession, files: list[Location], shared: bool | None) -> list[Location]:
    """Files of the driver's where the workers of a session find them: shipped, unless shared."""
    if shared is None:
        shared = _is_local(spark)
    if shared:
        return files
    return [replace(location, artifact=_shipped(spark, location)) for location in files]


def asked(location: Location) -> TableExpressions:
    """The attributes and the expressions that the predicates of a table ask for."""
    from palio.matching.file.loading import loaded

    with _lock:
        known = _asked.get(location.key)
    if known is None:
        known = loaded(local_file(location))[0].expressions()
        with _lock:
            _asked[location.key] = known
            while len(_asked) > _KEPT_MAX:
                _asked.popitem(last=False)
    return known


def asked_of_parts(rest: Location) -> TableExpressions:
    """The same of a partitioned table, whose rest knows all names: some shard asks for each. What the shards
    compare names with is not known here."""
    known = asked(rest)
    return replace(known, plain=known.plain | known.names, compared={})


def driver_location(table: Table) -> Location:
    """The table where the driver has it; a ForwardingTable is saved to a file."""
    if isinstance(table, ForwardingTable):
        table = _saved(table)
    elif isinstance(table, TableDirectory):
        table = table.current()[1]
    elif not isinstance(table, str | Path):
        raise InvalidFile(
            "a table is a ForwardingTable, the path or URL of its file, or a TableDirectory, "
            f"not a {type(table).__name__}"
        )
    elif "://" in str(table) and not str(table).startswith("file://"):
        return _remote(str(table))
    path = Path(str(table).removeprefix("file://")).absolute()
    if path.is_dir():
        path = TableDirectory(path).current()[1]
    return file_location(path)


def file_location(path: Path) -> Location:
    """A file of this machine, as it is now."""
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidFile(f"the table cannot be read: {error.strerror}", path=path) from None
    return Location(str(path), found.st_size, found.st_mtime_ns)


_saved_files: WeakKeyDictionary[ForwardingTable, Path] = WeakKeyDictionary()
_shipped_names: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
_asked: OrderedDict[str, TableExpressions] = OrderedDict()
_lock = threading.Lock()
_folders: list[Path] = []


def own_folder() -> Path:
    """A directory of this process, removed when it ends: jobs may need the files until then."""
    with _lock:
        if not _folders:
            _folders.append(Path(tempfile.mkdtemp(prefix="palio-driver-")))
            atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
        return _folders[0]


def _saved(table: ForwardingTable) -> Path:
    path = _saved_files.get(table)
    if path is None or not path.exists():
        handle, name = tempfile.mkstemp(dir=own_folder(), prefix="table-", suffix=".palio")
        os.close(handle)
        path = Path(name)
        table.save(path)
        _saved_files[table] = path
    return path


def _is_local(spark: SparkSession) -> bool:
    """One machine for sure: the client of a Connect server may be on another."""
    if "connect" in type(spark).__module__:
        return False
    master = str(spark.conf.get("spark.master", "") or "")
    return master.startswith("local") and not master.startswith("local-cluster")


def _shipped(spark: SparkSession, location: Location) -> str:
    """Ship the file once a session, under a name that no other content has."""
    names = _shipped_names.setdefault(spark, set())
    if location.key not in names:
        path = own_folder() / location.key
        if not path.exists():
            try:
                os.link(location.address, path)
            except OSError:  # another file system
                shutil.copyfile(location.address, path)
        spark.addArtifact(str(path), file=True)
        names.add(location.key)
    return location.key


# ---- the worker


_opened: OrderedDict[str, ForwardingTable] = OrderedDict()


def opened(location: Location) -> ForwardingTable:
    """The table at a location, mapped into memory; the last few stay open."""
    with _lock:
        known = _opened.get(location.key)
        if known is not None:
            _opened.move_to_end(location.key)
            return known
    table = ForwardingTable.load(local_file(location))
    with _lock:
        _opened[location.key] = table
        while len(_opened) > _KEPT_MAX:
            _opened.popitem(last=False)
    return table


def local_file(location: Location) -> Path:
    """The file on this machine: at its path, shipped, or downloaded."""
    if location.is_remote:
        return _downloaded(location)
    path = Path(location.address)
    with contextlib.suppress(OSError):
        found = path.stat()
        if (found.st_size, found.st_mtime_ns) == (location.size, location.stamp):
            return path
    if location.artifact is not None:
        from pyspark import SparkFiles

        return Path(SparkFiles.get(location.artifact))
    if path.exists():
        raise InvalidFile(
            "the table has changed since the job was planned",
            remedy="leave published files as "
            "they are, and publish new versions in a TableDirectory",
            path=path,
        )
    raise InvalidFile(
        "a worker does not see this table",
        remedy="put it on storage that all machines share, or let it be shipped (shared=False)",
        path=path,
    )


# ---- URLs


def _remote(url: str) -> Location:
    files, path = _file_system(url)
    try:
        found = files.get_file_info(path)
    except OSError as error:
        raise InvalidFile(f"the table cannot be read: {error}", path=url) from None
    if not found.is_file:
        raise InvalidFile("there is no such file", path=url)
    return Location(url, found.size, found.mtime_ns or _mark(files, path))


def _mark(files: Any, path: str) -> int:
    """A number in place of the time of writing, where a file system does not tell it: fsspec makes
    a key of what it knows, such as an ETag."""
    handler = getattr(files, "handler", None)
    if handler is None:
        return 0
    return int(hashlib.sha256(handler.fs.ukey(path).encode()).hexdigest()[:15], 16)


def _file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL: pyarrow's (s3, gs, hdfs, ...), else fsspec's if it is installed."""
    from pyarrow import fs

    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(url)
        return found
    except (OSError, ValueError) as error:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise InvalidFile(
                f"pyarrow cannot read this ({error})",
                remedy=f"install fsspec and its package for {url.partition('://')[0]}",
                path=url,
            ) from None
    try:
        files, path = url_to_fs(url)
    except (ImportError, OSError, ValueError) as error:
        raise InvalidFile(f"neither pyarrow nor fsspec can read this: {error}", path=url) from None
    return fs.PyFileSystem(fs.FSSpecHandler(files)), path


def _downloaded(location: Location) -> Path:
    """The copy on this machine. The first process makes it, and the others wait for it."""
    folder = Path(tempfile.gettempdir()) / f"palio-tables-{os.getuid()}"
    path = folder / location.key
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise InvalidFile(
                "the cache of tables belongs to somebody else", remedy="remove it", path=folder
            )
        if path.exists():
            return path
        with (folder / f"{location.key}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _download(location, path)
    except OSError as error:
        raise InvalidFile(f"the table cannot be fetched: {error}", path=location.address) from None
    return path


def _download(location: Location, path: Path) -> None:
    files, source = _file_system(location.address)
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        with files.open_input_stream(source) as stream, beside.open("wb") as copy:
            shutil.copyfileobj(stream, copy, 1 << 22)
        if beside.stat().st_size != location.size:
            raise InvalidFile(
                "the table has changed since the job was planned",
                remedy="publish a new version under a new name",
                path=location.address,
            )
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
