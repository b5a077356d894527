"""Table files: they come back as they were, and a damaged one is refused."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from palio import ForwardingTable, Message
from palio.errors import InvalidFile
from palio.lab.data import workloads


@pytest.fixture(scope="module")
def load() -> workloads.Workload:
    return workloads.sigcomm03(2_000, 100, 40, seed=3)


@pytest.fixture
def saved(tmp_path: Path, load: workloads.Workload) -> Path:
    path = tmp_path / "table.palio"
    ForwardingTable.compile(load.constraints).save(path)
    return path


def test_a_loaded_table_forwards_as_before(saved: Path, load: workloads.Workload) -> None:
    table, again = ForwardingTable.compile(load.constraints), ForwardingTable.load(saved)
    assert again.interfaces == table.interfaces
    for message in workloads.message_dicts(load):
        assert again.forward(message) == table.forward(message)
    assert again.predicate("i7") == table.predicate("i7")


def test_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "empty.palio"
    ForwardingTable.compile({}).save(path)
    assert ForwardingTable.load(path).forward({"x": 1}) == []


def test_another_process_reads_it(saved: Path, load: workloads.Workload) -> None:
    message = workloads.message_dicts(load)[0]
    code = f"import palio; print(palio.ForwardingTable.load({str(saved)!r}).forward({message!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == str(ForwardingTable.load(saved).forward(message))


def test_every_damage_is_refused(saved: Path) -> None:
    """Cuts, flipped bits, wrong versions, growth, foreign files: an error, never a crash."""
    good = saved.read_bytes()
    draw = random.Random(1)
    damaged = [good[: draw.randrange(len(good))] for _ in range(60)]
    for _ in range(300):
        at = draw.randrange(len(good))
        damaged.append(good[:at] + bytes([good[at] ^ (1 << draw.randrange(8))]) + good[at + 1 :])
    for _ in range(40):
        at, size = draw.randrange(len(good)), draw.randrange(1, 5_000)
        changed = good[:at] + draw.randbytes(size) + good[at + size :]
        if changed != good:
            damaged.append(changed)
    damaged += [b"", b"hello", good + b"\0" * 8, good * 2, b"\0" * len(good)]
    for content in damaged:
        saved.write_bytes(content)
        with pytest.raises(InvalidFile, match=r"table\.palio"):
            ForwardingTable.load(saved)


def refusal(path: Path) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(InvalidFile) as error:
        ForwardingTable.load(path)
    sentence = str(error.value)
    assert sentence.startswith(f"{path}: ")
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path}: ")


def test_a_newer_format_says_so(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    content[8] = 9
    saved.write_bytes(content)
    assert refusal(saved).startswith("the table has format 9, this version of Palio reads 1 and 2;")


FIRST_FORMAT = {
    "ann": "price < 500 AND dest = 'MXP' OR price >= 10000",
    "bob": "name LIKE 'a%' AND name != 'ab'",
    "cy": "name LIKE '%son'",
    "dan": "text LIKE '%rain%' AND NOT urgent",
    "eve": "at >= TIMESTAMP '2013-01-31 10:00:00' AND at < TIMESTAMP '2014-01-01'",
    "fay": "gate IS NULL AND dest IN ('MXP', 'LIN', 'é')",
    "gus": "urgent = TRUE",
    "hal": "qty BETWEEN -3 AND 9007199254740993",
    "ivy": "TRUE",
    "joe": "price > 0.5 AND price < 1.5e300",
    "o'k \u2603": "x IS NOT NULL",
}
"""What is in format1.palio, which a version of Palio without expressions has written."""
AT = datetime(2013, 6, 1, tzinfo=UTC)
MESSAGES: list[dict[str, Any]] = [
    {}, {"price": 499.5, "dest": "MXP"}, {"price": 20_000, "gate": 3, "dest": "LIN"}, {"dest": "é"}, {"x": 1},
    {"name": "ab"}, {"name": "anderson", "x": "y"}, {"text": "it rains", "urgent": False}, {"urgent": True},
    {"at": AT, "qty": -3}, {"at": AT.replace(year=2014), "qty": 2**53 + 1}, {"qty": 2**53 + 2, "price": 0.5},
]  # fmt: skip


def test_the_first_format_is_read(tmp_path: Path) -> None:
    """Its tables have no expressions; they go on as if they had been written today."""
    path = Path(__file__).parent / "format1.palio"
    assert path.read_bytes()[8] == 1
    loaded, made = ForwardingTable.load(path), ForwardingTable.compile(FIRST_FORMAT)
    assert list(loaded.interfaces) == list(made.interfaces)
    for message in MESSAGES:
        assert loaded.forward(message) == made.forward(message)
    assert [str(loaded.predicate(name)) for name in FIRST_FORMAT] == [
        str(made.predicate(name)) for name in FIRST_FORMAT
    ]
    rows = pa.table({"message": [Message(message).to_json() for message in MESSAGES]})
    expected = made.forward_batch(rows, json="message").to_pylist()
    assert loaded.forward_batch(rows, json="message").to_pylist() == expected
    newer = loaded.updated(add={"kim": "lower(name) = 'anderson'"}, remove=["ivy"])
    newer.save(tmp_path / "newer.palio")
    again = ForwardingTable.load(tmp_path / "newer.palio")
    for message in MESSAGES:
        assert again.forward(message) == newer.forward(message)
    assert again.forward(MESSAGES[6]) == ["bob", "cy", "o'k \u2603", "kim"]


def test_every_damage_of_the_first_format_is_refused(tmp_path: Path) -> None:
    good, draw = (Path(__file__).parent / "format1.palio").read_bytes(), random.Random(2)
    path = tmp_path / "table.palio"
    for _ in range(100):
        at = draw.randrange(len(good))
        path.write_bytes(good[:at] + bytes([good[at] ^ (1 << draw.randrange(8))]) + good[at + 1 :])
        with pytest.raises(InvalidFile, match=r"table\.palio"):
            ForwardingTable.load(path)


def test_what_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"")
    assert refusal(path) == "this is not a table of Palio; the file is empty"
    path.write_bytes(b"PALIO")
    assert refusal(path) == "this is not a table of Palio; the file is too short"
    path.write_text("interface,predicate\nann,price < 500\n" * 3)
    assert refusal(path) == "this is not a table of Palio"
    assert refusal(tmp_path) == "the table cannot be read: Is a directory"
    assert refusal(tmp_path / "gone") == "the table cannot be read: No such file or directory"


def test_no_permission(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved.chmod(0)
    if os.geteuid() == 0:  # nothing is forbidden to root

        def forbidden(*_arguments: Any, **_options: Any) -> Any:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", forbidden)
    assert refusal(saved) == "the table cannot be read: Permission denied"


def test_places_that_cannot_be(tmp_path: Path) -> None:
    table = ForwardingTable.compile({"a": "x = 1"})
    with pytest.raises(InvalidFile, match="cannot be written: No such file"):
        table.save(tmp_path / "no" / "such" / "folder.palio")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidFile, match="cannot be written: Is a directory"):
        table.save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


FULL = """
import resource, sys
from palio import ForwardingTable
from palio.errors import InvalidFile
table = ForwardingTable.compile({f"i{n}": f"x = {n}" for n in range(3000)})
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    table.save(sys.argv[1])
except InvalidFile as error:
    print(error)
"""


def test_a_full_disk_leaves_what_was_there(saved: Path) -> None:
    before = saved.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", FULL, saved], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == f"{saved}: the table cannot be written: File too large\n"
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_disk_that_fills_while_writing(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full(*_arguments: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidFile, match="cannot be written: No space left on device"):
        ForwardingTable.compile({"a": "x = 1"}).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_table_is_replaced_at_once(tmp_path: Path) -> None:
    """Who loads while others save gets one table or another, whole; old maps stay as they were."""
    path = tmp_path / "table.palio"
    tables = [ForwardingTable.compile({f"i{n}-{k}": "x = 1" for k in range(50)}) for n in range(2)]
    tables[0].save(path)
    mode = path.stat().st_mode
    assert mode & 0o777 == 0o666 & ~umask()
    old = ForwardingTable.load(path)
    threads = [
        threading.Thread(target=lambda t=t: [t.save(path) for _ in range(20)]) for t in tables
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found = ForwardingTable.load(path).forward({"x": 1})
        assert found in [table.forward({"x": 1}) for table in tables]
    assert old.forward({"x": 1}) == tables[0].forward({"x": 1})
    assert list(tmp_path.iterdir()) == [path]


def umask() -> int:
    found = os.umask(0o022)
    os.umask(found)
    return found
