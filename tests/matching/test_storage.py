"""Table files: they come back as they were, and a damaged one is refused."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from palio import ForwardingTable
from palio.errors import InvalidFile
from palio.lab import workloads


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


def test_a_newer_format_says_so(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    content[8] = 9
    saved.write_bytes(content)
    with pytest.raises(InvalidFile, match="format 9"):
        ForwardingTable.load(saved)


def test_places_that_cannot_be(tmp_path: Path) -> None:
    table = ForwardingTable.compile({"a": "x = 1"})
    with pytest.raises(InvalidFile, match="cannot be written"):
        table.save(tmp_path / "no" / "such" / "folder.palio")
    with pytest.raises(InvalidFile, match="cannot be read"):
        ForwardingTable.load(tmp_path / "gone.palio")
    with pytest.raises(InvalidFile, match="pivot"):
        ForwardingTable.compile({"a": "x = 1"}, engine="naive").save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
