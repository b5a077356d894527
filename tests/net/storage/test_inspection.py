"""A database is inspected before it is used: what is missing, replaced or damaged is a sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from palio.net.storage.inspection import inspect
from palio.net.storage.marker import FILE as MARKER
from palio.net.storage.sqlite import SqliteStore
from palio.net.storage.sqlite_database import FILE
from palio.net.storage.store import StoreDamaged
from tests.net.storage.damage import LOG, contents, execute, filled, killed, overwrite


def test_a_sound_store_is_opened(tmp_path: Path) -> None:
    filled(tmp_path)
    state = inspect(tmp_path).state
    assert state is not None
    assert (state.rows, state.commits) == (200, 20)
    SqliteStore(tmp_path).close()


def test_a_killed_store_is_opened(tmp_path: Path) -> None:
    killed(tmp_path)
    before = contents(tmp_path)
    inspect(tmp_path)
    assert contents(tmp_path) == before, "an inspection changes nothing"
    store = SqliteStore(tmp_path)
    assert len(list(store.scan(""))) == 20
    store.close()


def test_an_empty_database(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(StoreDamaged, match=r"held a broker's data .* is empty: 20 commits are"):
        SqliteStore(tmp_path)


def test_a_lost_database(tmp_path: Path) -> None:
    filled(tmp_path, 10)
    (tmp_path / FILE).unlink()
    with pytest.raises(StoreDamaged, match=f"{FILE} is missing: 1 commit is missing"):
        SqliteStore(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_a_lost_log(tmp_path: Path) -> None:
    killed(tmp_path, 200)
    (tmp_path / LOG).unlink()
    with pytest.raises(StoreDamaged, match=f"older than {MARKER} says: 200 commits are missing"):
        SqliteStore(tmp_path)


def test_a_log_that_was_cut_or_changed_in_the_middle(tmp_path: Path) -> None:
    killed(tmp_path / "a", 20)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    log = tmp_path / "a" / LOG
    middle = log.stat().st_size // 2
    overwrite(log, middle, b"\x55\xaa")
    overwrite(log, middle + 2, b"\x55\xaa")
    with pytest.raises(StoreDamaged, match="commits are missing"):
        SqliteStore(tmp_path / "a")
    with (tmp_path / "b" / LOG).open("r+b") as file:
        file.truncate(middle)
    with pytest.raises(StoreDamaged, match="commits are missing"):
        SqliteStore(tmp_path / "b")


def test_what_is_damaged_is_not_touched(tmp_path: Path) -> None:
    killed(tmp_path, 20)
    overwrite(tmp_path / LOG, (tmp_path / LOG).stat().st_size // 2, b"\x55\xaa\x55\xaa")
    before = contents(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreDamaged):
            SqliteStore(tmp_path)
    assert {**contents(tmp_path), "broker.lock": b""} == {**before, "broker.lock": b""}


def test_another_database_in_its_place(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    filled(tmp_path / "b")
    shutil.copy(tmp_path / "b" / FILE, tmp_path / "a" / FILE)
    with pytest.raises(StoreDamaged, match="another database than the one that belongs here"):
        SqliteStore(tmp_path / "a")


def test_an_old_copy_in_its_place(tmp_path: Path) -> None:
    filled(tmp_path / "a", 100)
    shutil.copy(tmp_path / "a" / FILE, tmp_path / "old")
    filled(tmp_path / "a", 200)
    shutil.copy(tmp_path / "old", tmp_path / "a" / FILE)
    with pytest.raises(StoreDamaged, match="20 commits are missing"):
        SqliteStore(tmp_path / "a")


def test_lost_rows(tmp_path: Path) -> None:
    filled(tmp_path)
    execute(tmp_path, "DELETE FROM entries WHERE key IN ('k/0003', 'k/0004')")
    with pytest.raises(StoreDamaged, match="2 of 200 rows are missing"):
        SqliteStore(tmp_path)


def test_a_renamed_key_and_a_changed_value(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    execute(tmp_path / "a", "UPDATE entries SET key = 'k/9999' WHERE key = 'k/0003'")
    with pytest.raises(StoreDamaged, match="the value of 'k/9999' is damaged"):
        SqliteStore(tmp_path / "a")
    with pytest.raises(StoreDamaged, match="its keys are not those that were written"):
        inspect(tmp_path / "a", read_bytes_max=0)
    filled(tmp_path / "b")
    execute(tmp_path / "b", "UPDATE entries SET value = x'00' WHERE key = 'k/0003'")
    with pytest.raises(StoreDamaged, match=f"{FILE}: the value of 'k/0003' is damaged"):
        SqliteStore(tmp_path / "b")


def test_values_of_a_large_database_are_verified_when_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)
    execute(tmp_path, "UPDATE entries SET value = x'00' WHERE key = 'k/0003'")
    monkeypatch.setattr("palio.net.storage.inspection.READ_BYTES_MAX", 0)
    store = SqliteStore(tmp_path)
    assert store.get("k/0002") == b"\x02" * 300
    assert store.failure is None
    with pytest.raises(StoreDamaged, match="the value of 'k/0003' is damaged"):
        store.get("k/0003")
    assert isinstance(store.failure, StoreDamaged)
    with pytest.raises(StoreDamaged, match="the value of 'k/0003' is damaged"):
        list(store.scan("k/"))
    store.close()


def test_a_lost_row_of_the_state(tmp_path: Path) -> None:
    filled(tmp_path)
    execute(tmp_path, "DELETE FROM state")
    with pytest.raises(StoreDamaged, match="the row that counts its commits is missing"):
        SqliteStore(tmp_path)


def test_a_lost_marker_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path)
    (tmp_path / MARKER).unlink()
    SqliteStore(tmp_path).close()
    assert "the marker of the store was missing or damaged" in caplog.text
    assert inspect(tmp_path).has_marker
    (tmp_path / MARKER).write_bytes(b"?")
    SqliteStore(tmp_path).close()
    assert inspect(tmp_path).has_marker


def test_a_damaged_marker_beside_no_database(tmp_path: Path) -> None:
    filled(tmp_path)
    for name in (MARKER, FILE):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(StoreDamaged, match="is empty"):
        SqliteStore(tmp_path)


def test_a_damaged_head(tmp_path: Path) -> None:
    filled(tmp_path)
    overwrite(tmp_path / FILE, 68, b"\x11")
    with pytest.raises(StoreDamaged, match="its head is damaged"):
        SqliteStore(tmp_path)
