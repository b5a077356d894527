"""How tables reach workers: by path, shipped, downloaded; damaged ones; pages are shared."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import palio
import palio.spark
from palio.errors import InvalidFile
from palio.spark import broadcast
from palio.spark.messages import MessageColumns
from palio.spark.tables import Location, located, opened

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def frame(spark: Any) -> Any:
    return spark.range(6).selectExpr("id AS x")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "table.palio"
    palio.ForwardingTable.compile({"a": "x > 3", "b": "x = 0"}).save(path)
    return path


EXPECTED = [["b"], [], [], [], ["a"], ["a"]]


def answers(routed: Any) -> list[list[str]]:
    return [row["interfaces"] for row in sorted(routed.collect(), key=lambda row: row["x"])]


def test_every_way_to_name_a_table(frame: Any, path: Path) -> None:
    table = palio.ForwardingTable.load(path)
    updated = palio.ForwardingTable.compile({"a": "x > 3"}).updated(add={"b": "x = 0"})
    naive = palio.ForwardingTable.compile({"a": "x > 3", "b": "x = 0"}, engine="naive")
    for given in (path, str(path), path.as_uri(), table, updated, naive):
        assert answers(palio.spark.forward(frame, given)) == EXPECTED
    assert answers(palio.spark.forward(frame, {"a": "x > 3", "b": "x = 0"})) == EXPECTED
    with pytest.raises(InvalidFile, match=r"a table is a ForwardingTable, .* not a set"):
        palio.spark.forward(frame, {"x > 3"})  # type: ignore[arg-type]


def test_a_relative_path(frame: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    assert answers(palio.spark.forward(frame, path.name)) == EXPECTED


def test_shipped(spark: Any, frame: Any, path: Path) -> None:
    """The worker finds the artifact when the path is gone; the same name may have new content."""
    first = palio.spark.forward(frame, path, shared=False)
    palio.ForwardingTable.compile({"c": "x = 5"}).save(path)
    second = palio.spark.forward(frame, path, shared=False)
    path.unlink()
    assert answers(first) == EXPECTED
    assert answers(second) == [[], [], [], [], [], ["c"]]


def test_a_url_is_fetched_once(
    spark: Any, frame: Any, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    found = path.stat()
    location = Location(path.as_uri(), found.st_size, found.st_mtime_ns)
    messages = MessageColumns((F.struct("x"),))
    routed = broadcast.with_matches(frame, messages, location, "array", "interfaces", "error")
    assert answers(routed) == EXPECTED
    path.unlink()  # the copy is there
    assert opened(location).forward({"x": 0}) == ["b"]
    gone = Location(path.as_uri(), found.st_size, 17)
    with pytest.raises(InvalidFile, match="cannot be fetched"):
        opened(gone)


def test_urls_of_fsspec(frame: Any, path: Path, tmp_path: Path) -> None:
    """`local://` and `memory://` are read by fsspec only, pyarrow does not know them."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    url = f"local://{path}"
    assert answers(palio.spark.forward(frame, url)) == EXPECTED
    memory = fsspec.filesystem("memory")
    address = f"memory://{tmp_path.name}/table.palio"
    other = tmp_path / "other.palio"
    palio.ForwardingTable.compile({"b": "x > 3", "a": "x = 0"}).save(other)
    assert path.stat().st_size == other.stat().st_size
    swapped = [[{"a": "b", "b": "a"}[name] for name in names] for names in EXPECTED]
    for file, expected in ((path, EXPECTED), (other, swapped)):  # memory tells no time of writing
        memory.pipe(f"/{tmp_path.name}/table.palio", file.read_bytes())
        assert answers(palio.spark.forward(frame, address)) == expected
    for gone in ("memory://gone.palio", f"local://{tmp_path}/gone.palio"):
        with pytest.raises(InvalidFile, match=r"gone\.palio: there is no such file"):
            palio.spark.forward(frame, gone)
    with pytest.raises(InvalidFile, match="nowhere://x: neither pyarrow nor fsspec can read this"):
        palio.spark.forward(frame, "nowhere://x")


def test_a_url_without_fsspec(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InvalidFile, match=r"nowhere://x: pyarrow cannot .* install fsspec and its"):
        palio.spark.forward(frame, "nowhere://x")


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def text(path: Path) -> None:
    path.write_text("no table at all, but long enough to be one of the shorter ones")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damaged, "the file is damaged"),
        (cut, "the file is cut"),
        (text, "this is not a table of Palio"),
        (Path.unlink, "No such file"),
    ],
)
def test_bad_files_are_refused_on_the_driver(
    frame: Any, path: Path, spoil: Any, message: str
) -> None:
    spoil(path)
    with pytest.raises(InvalidFile, match=message) as refused:
        palio.spark.forward(frame, path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(damaged, "has changed since the job was planned"), (Path.unlink, "does not see this table")],
)
def test_what_only_workers_see(frame: Any, path: Path, spoil: Any, message: str) -> None:
    routed = palio.spark.forward(frame, path)
    spoil(path)
    with pytest.raises(Exception, match=message) as refused:
        routed.collect()
    assert "InvalidFile" in str(refused.value)


def test_workers_share_the_pages(spark: Any, tmp_path: Path) -> None:
    """Two workers that have a table open hold its pages once: nothing of it is private."""
    count = 120_000
    rows = {
        "interface": [f"i{n}" for n in range(count)],
        "filter": range(count),
        "name": ["x"] * count,
        "op": ["="] * count,
        "type": ["string"] * count,
        "value": [f"value number {n}" for n in range(count)],
    }
    path = tmp_path / "big.palio"
    palio.ForwardingTable.compile(pa.table({k: pa.array(v) for k, v in rows.items()})).save(path)
    location = located(spark, path)
    meeting = str(tmp_path)

    def measure(batches: Any) -> Any:
        import re
        import time

        import pyarrow as pa

        from palio.spark.tables import opened

        table = opened(location)
        assert table.forward({"x": "value number 77"}) == ["i77"]
        Path(meeting, f"here-{os.getpid()}").touch()
        until = time.monotonic() + 30
        while len(list(Path(meeting).glob("here-*"))) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        blocks = re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
        block = next(block for block in blocks if location.address in block)
        sizes = {k: int(v) for k, v in re.findall(r"^(\w+): +(\d+) kB", block, re.MULTILINE)}
        list(batches)
        Path(meeting, f"done-{os.getpid()}").touch()
        while len(list(Path(meeting).glob("done-*"))) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        keys = ["Rss", "Pss", "Private_Dirty"]
        values = {key: [sizes[key]] for key in keys}
        yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], **values})

    schema = "pid long, Rss long, Pss long, Private_Dirty long"
    found = spark.range(2, numPartitions=2).mapInArrow(measure, schema).collect()
    assert len({row["pid"] for row in found}) == 2
    for row in found:
        assert row["Rss"] > 0.9 * location.size / 1024
        assert row["Pss"] < 0.6 * row["Rss"]
        assert row["Private_Dirty"] < 0.02 * row["Rss"]
    print([row.asDict() for row in found])
