"""A directory of versions: whole files, one current, several publishers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import palio
from palio.errors import InvalidFile
from palio.spark.table_directory import TableDirectory


def table(x: int) -> palio.ForwardingTable:
    return palio.ForwardingTable.compile({"a": f"x = {x}"})


def test_versions(tmp_path: Path) -> None:
    tables = TableDirectory(tmp_path / "new" / "tables")
    with pytest.raises(InvalidFile, match="no table was published here"):
        tables.current()
    assert [tables.publish(table(x)) for x in range(4)] == [1, 2, 3, 4]
    version, path = tables.current()
    assert (version, path.name) == (4, "table-000004.palio")
    assert palio.ForwardingTable.load(path).forward({"x": 3}) == ["a"]
    assert tables.prune(keep=3) == [1]
    assert tables.prune(keep=1) == [2, 3]
    assert tables.prune(keep=1) == []
    assert tables.publish(table(9)) == 5
    with pytest.raises(palio.InvalidValue, match="keep is at least 1"):
        tables.prune(keep=0)


def test_an_updated_table_is_compacted(tmp_path: Path) -> None:
    tables = TableDirectory(tmp_path)
    tables.publish(table(1).updated(add={"b": "x = 1"}, remove=["a"]))
    assert palio.ForwardingTable.load(tables.current()[1]).forward({"x": 1}) == ["b"]


def test_many_publish_at_once(tmp_path: Path) -> None:
    def publish(x: int) -> tuple[int, int]:
        tables = TableDirectory(tmp_path)
        version = tables.publish(table(x))
        assert tables.current()[0] >= version
        return version, x

    with ThreadPoolExecutor(8) as pool:
        published = dict(pool.map(publish, range(40)))
    assert sorted(published) == list(range(1, 41))
    tables = TableDirectory(tmp_path)
    assert tables.current()[0] == 40
    for version, x in published.items():
        path = tmp_path / f"table-{version:06d}.palio"
        assert palio.ForwardingTable.load(path).forward({"x": x}) == ["a"]
    left = {path.name for path in tmp_path.iterdir() if not path.name.endswith(".palio")}
    assert left == {"CURRENT", "LOCK"}


def test_a_table_that_cannot_be_written_leaves_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = TableDirectory(tmp_path)
    tables.publish(table(1))

    def fail(*_: object) -> None:
        raise InvalidFile("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(palio.ForwardingTable, "save", fail)
        with pytest.raises(InvalidFile, match="no space left"):
            tables.publish(table(2))
    assert tables.current()[0] == 1
    assert tables.publish(table(2)) == 2


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text("../../etc/passwd\n")
    with pytest.raises(InvalidFile, match="is no version of a table"):
        TableDirectory(tmp_path).current()
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="cannot be published here"):
        TableDirectory(tmp_path / "file").publish(table(1))
