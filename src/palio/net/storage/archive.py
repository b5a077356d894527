"""A backup of a store: one file, checksummed.

    "PALIOBAK"                                          8 bytes
    block*     length (4 bytes), CRC-32 (4), msgpack    the first is the head, the last the end;
                                                        between them are lists of (key, value)
    head   {"format": 1, "broker": "milan", "written_us": ...}
    end    {"entries": 1234, "sha256": of everything before this block}

Numbers are little-endian. A file is written under another name and gets its own when it is whole.
`verify` reads all of it before anything is restored from it.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self, TypeAlias, TypeVar

import msgspec

from palio.errors import InvalidFile

FORMAT: Final = 1
_MAGIC: Final = b"PALIOBAK"
_LENGTHS: Final = struct.Struct("<II")
_BLOCK_BYTES: Final = 1 << 20
_BLOCK_BYTES_MAX: Final = 1 << 30


class ArchiveHead(msgspec.Struct, frozen=True):
    format: int
    broker: str
    written_us: int


class _End(msgspec.Struct, frozen=True):
    entries: int
    sha256: bytes


T = TypeVar("T")
Entries: TypeAlias = list[tuple[str, bytes]]


def write(path: Path, broker: str, written_us: int, entries: Iterable[tuple[str, bytes]]) -> int:
    """Write a backup; gives the number of entries. Raises InvalidFile."""
    if path.exists():
        raise InvalidFile(
            "it exists already", path=path, remedy="choose another name, or remove it"
        )
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("xb") as file:
            os.chmod(part, 0o600)  # messages are nobody else's business
            count = _write(file, ArchiveHead(FORMAT, broker, written_us), entries)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise InvalidFile(
            f"the backup cannot be written: {error.strerror}", path=path,
            remedy="choose a place where this user may write and there is room",
        ) from None  # fmt: skip
    finally:
        part.unlink(missing_ok=True)
    return count


def _write(file: BinaryIO, head: ArchiveHead, entries: Iterable[tuple[str, bytes]]) -> int:
    checksum = hashlib.sha256()

    def put(data: bytes) -> None:
        checksum.update(data)
        file.write(data)

    put(_MAGIC)
    put(_block(msgspec.msgpack.encode(head)))
    count, size, rows = 0, 0, Entries()
    for key, value in entries:
        rows.append((key, value))
        count += 1
        size += len(key) + len(value)
        if size >= _BLOCK_BYTES:
            put(_block(msgspec.msgpack.encode(rows)))
            size, rows = 0, []
    if rows:
        put(_block(msgspec.msgpack.encode(rows)))
    file.write(_block(msgspec.msgpack.encode(_End(count, checksum.digest()))))
    return count


def _block(payload: bytes) -> bytes:
    return _LENGTHS.pack(len(payload), zlib.crc32(payload)) + payload


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- reading


def verify(path: Path) -> ArchiveHead:
    """Check all of a file; raises InvalidFile if it is no backup, damaged or cut off."""
    with _ArchiveBlocks(path) as blocks:
        for _ in blocks.entries():
            pass
        return blocks.head


def read(path: Path) -> Iterator[tuple[str, bytes]]:
    """The entries, in the order in which they were written. An error may come at the end only."""
    with _ArchiveBlocks(path) as blocks:
        yield from blocks.entries()


class _ArchiveBlocks:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise InvalidFile(f"the backup cannot be read: {error.strerror}", path=path) from None
        self._checksum = hashlib.sha256()

    def __enter__(self) -> Self:
        try:
            self.head = self._read_head()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read_head(self) -> ArchiveHead:
        magic = self._read(len(_MAGIC))
        if magic != _MAGIC:
            raise InvalidFile(
                "this is no backup of a broker", path=self._path, remedy="`palio backup` makes one"
            )
        payload, _ = self._next()
        found = self._decoded(payload, ArchiveHead)
        if found.format != FORMAT:
            raise InvalidFile(
                f"the backup has format {found.format}; this Palio reads format {FORMAT}",
                path=self._path,
                remedy="use the Palio that wrote it",
            )
        return found

    def entries(self) -> Iterator[tuple[str, bytes]]:
        count = 0
        while True:
            payload, before = self._next()
            if self._is_at_end():
                break
            rows = self._decoded(payload, Entries)
            count += len(rows)
            yield from rows
        if self._decoded(payload, _End) != _End(count, before):
            raise self._wrong("is damaged: its checksums do not fit")

    def _next(self) -> tuple[bytes, bytes]:
        """The payload of the next block, and the checksum of everything before the block."""
        before = self._checksum.digest()
        length, checksum = _LENGTHS.unpack(self._read(_LENGTHS.size))
        if length > _BLOCK_BYTES_MAX:
            raise self._wrong("is damaged: its checksums do not fit")
        payload = self._read(length)
        if zlib.crc32(payload) != checksum:
            raise self._wrong("is damaged: its checksums do not fit")
        return payload, before

    def _read(self, count: int) -> bytes:
        try:
            data = self._file.read(count)
        except OSError as error:
            raise self._wrong(f"cannot be read: {error.strerror}") from None
        if len(data) < count:
            raise self._wrong("is cut off: its end is missing")
        self._checksum.update(data)
        return data

    def _is_at_end(self) -> bool:
        at = self._file.tell()
        is_at_end = not self._file.read(1)
        self._file.seek(at)
        return is_at_end

    def _decoded(self, payload: bytes, type: type[T]) -> T:
        try:
            return msgspec.msgpack.decode(payload, type=type)
        except msgspec.MsgspecError:  # a block that is whole, and the wrong one
            raise self._wrong("is cut off: its end is missing") from None

    def _wrong(self, what: str) -> InvalidFile:
        remedy = "take another one; nothing was restored"
        return InvalidFile(f"the backup {what}", path=self._path, remedy=remedy)
