"""The file of a backup: whole, damaged, cut off, of another program."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from palio.errors import InvalidFile
from palio.net.storage import archive

ENTRIES = [(f"k/{number:05}", bytes([number % 251]) * (number % 3000)) for number in range(1000)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "milan.backup"
    assert archive.write(path, "milan", 5, ENTRIES) == 1000
    return path


def test_what_is_written_is_read(file: Path) -> None:
    assert archive.verify(file) == archive.ArchiveHead(archive.FORMAT, "milan", 5)
    assert list(archive.read(file)) == ENTRIES
    assert file.stat().st_mode & 0o077 == 0, "nobody else may read messages"
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_an_empty_store_has_a_backup_too(tmp_path: Path) -> None:
    assert archive.write(tmp_path / "empty", "milan", 5, []) == 0
    archive.verify(tmp_path / "empty")
    assert list(archive.read(tmp_path / "empty")) == []


def test_a_file_that_is_there_stays(file: Path) -> None:
    with pytest.raises(InvalidFile, match="it exists already; choose another name"):
        archive.write(file, "milan", 5, [])
    archive.verify(file)


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def entries():  # type: ignore[no-untyped-def]
        yield "a", b""
        raise OSError(28, "No space left on device")

    with pytest.raises(InvalidFile, match="cannot be written: No space left"):
        archive.write(tmp_path / "b", "milan", 5, entries())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidFile, match="cannot be written: No such file"):
        archive.write(tmp_path / "no" / "b", "milan", 5, [])


def test_every_cut_is_noticed(file: Path) -> None:
    data = file.read_bytes()
    for length in [*range(8, 60), len(data) // 2, *range(len(data) - 60, len(data))]:
        file.write_bytes(data[:length])
        with pytest.raises(InvalidFile, match=r"is cut off|is damaged"):
            archive.verify(file)
    file.write_bytes(data + b"more")
    with pytest.raises(InvalidFile, match=r"is cut off|is damaged"):
        archive.verify(file)


def test_every_changed_byte_is_noticed(file: Path) -> None:
    data = file.read_bytes()
    for at in [*range(80), *range(1000, len(data), len(data) // 60), len(data) - 1]:
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        with pytest.raises(InvalidFile):
            archive.verify(file)


def test_a_block_that_is_missing_is_noticed(file: Path) -> None:
    """Each block is whole, so only the checksum of all of them tells."""
    data = file.read_bytes()
    second = 8 + 8 + int.from_bytes(data[8:12], "little")
    third = second + 8 + int.from_bytes(data[second : second + 4], "little")
    file.write_bytes(data[:second] + data[third:])
    with pytest.raises(InvalidFile, match="is damaged: its checksums do not fit; take another one"):
        archive.verify(file)


def test_other_files_are_sentences(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes\n")
    with pytest.raises(
        InvalidFile, match=r"notes.txt: this is no backup of a broker; `palio backup`"
    ):
        archive.verify(path)
    with pytest.raises(InvalidFile, match="cannot be read: No such file"):
        archive.verify(tmp_path / "no")
    later = msgspec.msgpack.encode({"format": 9, "broker": "milan", "written_us": 0})
    path.write_bytes(archive._MAGIC + archive._block(later))
    with pytest.raises(InvalidFile, match="has format 9; this Palio reads format 1; use the Palio"):
        archive.verify(path)
