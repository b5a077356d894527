"""Files made wrong, with a right checksum: refused by the name of an array, or harmless."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from palio import ForwardingTable, Message
from palio.errors import InvalidFile
from palio.matching.file.file_kernels import checksum

ENTRIES = {
    "numbers": "x = 1 OR x > 2.5 AND y < 3 OR y IN (1, 2.5, 7) AND x != 4 OR x >= 9 AND y <= 1e300",
    "sets": "s IN ('a', 'bc', 'abc') AND x IN (1, 2, 3) OR b AND s IN ('abc', 'x')",
    "texts": "s LIKE 'a%' AND s LIKE '%c' OR contains(s, 'b') AND t LIKE '%zz' OR s > 'b' AND x < 5",
    "negated": "NOT contains(s, 'q') AND s NOT LIKE 'x%' AND x <> 3",
    "nulls": "x IS NULL AND s IS NOT NULL OR y IS NULL AND b",
    "times": "at >= TIMESTAMP '2013-01-31 10:00:00' AND s = 'abc'",
    "bools": "b = true AND x = 1 AND s = 'abc' AND y = 2.5",
    "all": "TRUE",
    "more": " OR ".join(f"x = {n} AND y = {n} AND s = 's{n}'" for n in range(20)),
}
ONCE = {f"i{n}": f"x = {n % 7} AND s = 'a{n % 5}'" for n in range(30)} | {
    f"j{n}": f"x < {n}" for n in range(30)
}
HOT = {
    f"i{i}": " OR ".join(
        f"x = 1 AND {second}{' AND b' * (n % 2)}"
        for n in range(i, 40, 3)
        for second in (f"y > {n}.5", f"y <= {n - 20}", f"s = 'a{n % 5}'", f"s < 'a{n}'")
    )
    for i in range(5)
}
ROWS = pa.table(
    {
        "x": [1, None, 5, 3, 0],
        "y": [2.5, 1.0, None, 7.0, -1.0],
        "s": ["abc", "b", "", "a1", "a2"],
        "t": ["zzz", None, "zz", "", None],
        "b": [True, False, None, True, True],
        "at": pa.array([10**15, None, 0, 2 * 10**15, None], pa.timestamp("us", tz="UTC")),
    }
)


SELDOM = [{"x": n, "y": y, "s": s, "b": True} for n in range(30) for y in (-30, 90) for s in "aA"]


def saved(folder: Path, entries: dict[str, str]) -> Path:
    path = folder / "table.palio"
    sample = SELDOM if entries is HOT else None  # all is filed under x = 1
    ForwardingTable.compile(entries, sample=sample).save(path)
    return path


def described(content: bytes) -> list[dict[str, Any]]:
    (length,) = struct.unpack_from("<I", content, 12)
    found: list[dict[str, Any]] = json.loads(content[32 : 32 + length])["arrays"]
    return found


def sealed(content: bytes) -> bytes:
    """The file with the checksum that it should have."""
    words = np.frombuffer(content, np.uint64)[3:].copy()
    return content[:16] + struct.pack("<Q", int(checksum(words))) + content[24:]


def with_header(content: bytes, arrays: Any) -> bytes:
    """The file with another header of the same length."""
    (length,) = struct.unpack_from("<I", content, 12)
    header = json.dumps({"arrays": arrays}, separators=(",", ":")).encode()
    assert len(header) <= length
    return sealed(content[:32] + header.ljust(length) + content[32 + length :])


def items_of(content: bytearray, entry: dict[str, Any]) -> Any:
    """The items of an array, to be changed in place."""
    count = int(np.prod(entry["shape"]))
    return np.frombuffer(content, entry["dtype"], count, entry["offset"])


def changed(content: bytes, draw: random.Random) -> bytes:
    """One array, with wrong numbers or of a wrong shape."""
    arrays = described(content)
    entry = draw.choice([e for e in arrays if np.prod(e["shape"])])
    if draw.random() < 0.15:
        entry["shape"][0] = max(0, entry["shape"][0] + draw.choice([-1, 1, -5, 7]))
        return with_header(content, arrays)
    copy = bytearray(content)
    items = items_of(copy, entry)
    limits = np.iinfo(items.dtype)
    near = [len(items), len(items) - 1, len(items) + 1, 0, 1, 2, 3, 255, 256, 65_536]
    for _ in range(draw.choice([1, 1, 1, 2, 5, 40])):
        at = draw.randrange(len(items))
        wrong = draw.choice(
            [
                *(draw.choice(near), limits.min, limits.max, draw.randint(limits.min, limits.max)),
                *(int(items[at]) + draw.choice([-1, 1, 8, -256]), int(draw.choice(items.tolist()))),
                int(items[at]) ^ 1 << draw.randrange(8 * items.itemsize - 1),
            ]
        )
        items[at] = min(max(wrong, limits.min), limits.max)
    return sealed(bytes(copy))


def hunt(folder: Path, rounds: int, seed: int) -> int:
    """Load changed files and forward through them; how many were accepted."""
    draw = random.Random(seed)
    accepted = 0
    for entries in (ENTRIES, ONCE, HOT):
        path = saved(folder, entries)
        content = path.read_bytes()
        for _ in range(rounds):
            path.unlink()  # a table that is mapped keeps its file
            path.write_bytes(changed(content, draw))
            try:
                table = ForwardingTable.load(path)
            except InvalidFile:
                continue
            accepted += 1
            for row in ROWS.to_pylist():
                found = table.forward(row)
                assert set(found) <= set(table.interfaces)
            table._engine.match_rows(ROWS, "wide", "")
            batch = table._engine.encode([Message(row) for row in ROWS.to_pylist()])  # type: ignore[attr-defined]
            table._engine.match_batch(batch, ordered=False)  # type: ignore[attr-defined]
    return accepted


def test_wrong_numbers_do_no_harm(tmp_path: Path) -> None:
    assert 30 < hunt(tmp_path, 250, seed=1) < 600


@pytest.mark.slow
def test_no_wrong_number_is_out_of_bounds(tmp_path: Path) -> None:
    """The same with kernels that check every index; they are compiled for this."""
    root = Path(__file__).resolve().parents[3]
    code = (
        "import pathlib, sys; from tests.matching.file.test_soundness import hunt;"
        "print(hunt(pathlib.Path(sys.argv[1]), 2_000, 2))"
    )
    environment = {
        **os.environ,
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
        env=environment,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


def test_the_hot_one_has_hot_keys(tmp_path: Path) -> None:
    table = ForwardingTable.load(saved(tmp_path, HOT))
    assert len(table._engine.hot_keys.head) >= 4  # type: ignore[attr-defined]


def damage(content: bytes, array: str, at: int, value: int) -> bytes:
    copy = bytearray(content)
    (entry,) = [e for e in described(content) if e["name"] == array]
    items_of(copy, entry)[at] = value
    return sealed(bytes(copy))


WRONG = [
    ("names.offsets", -1, 10**6),
    ("names.blob", 0, 0xFF),
    ("interfaces.offsets", 0, 3),
    ("interfaces.blob", 0, 0xFF),
    ("strings.begin", 1, -1),
    ("strings.slots", 0, 10**6),
    ("strings.prefix_lengths", 0, -1),
    ("pivots.directory_at", 1, 10**6),
    ("pivots.kind", 0, 12),
    ("pivots.keys_at", -1, 10**6),
    ("pivots.alone_at", -1, 10**6),
    ("pivots.alone", 0, 9),
    ("pivots.entries_at", 1, -1),
    ("pivots.entries", 0, -1),
    ("pivots.entries", 2, 10**6 << 8),
    ("pivots.rest", 0, -1),
    ("pivots.rest", -3, 0),  # the last one does not end its run
    ("pivots.missing", 0, 10**6),
    ("pivots.missing_name", 0, -1),
    ("pivots.always", 0, 10**6),
    ("pivots.set_at", 1, -1),
    ("pivots.set_split", 0, 10**6),
    ("pivots.once", 0, 1),
]


@pytest.mark.parametrize(("array", "at", "value"), WRONG)
def test_the_wrong_array_is_named(tmp_path: Path, array: str, at: int, value: int) -> None:
    path = saved(tmp_path, ENTRIES)
    path.write_bytes(damage(path.read_bytes(), array, at, value))
    with pytest.raises(InvalidFile) as error:
        ForwardingTable.load(path)
    assert f"{path}: the array {array} is not that of a table" in str(error.value)


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, {"a": "x = 1 AND y = 1"})
    path.write_bytes(damage(path.read_bytes(), "names.blob", 1, ord("x")))
    with pytest.raises(InvalidFile, match=r"the array names\.blob"):
        ForwardingTable.load(path)


def test_a_full_hash_table_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, ENTRIES)
    content = bytearray(path.read_bytes())
    (entry,) = [e for e in described(bytes(content)) if e["name"] == "strings.slots"]
    items_of(content, entry)[:] = 1
    path.write_bytes(sealed(bytes(content)))
    with pytest.raises(InvalidFile, match=r"the array strings\.slots"):
        ForwardingTable.load(path)


def test_headers_that_lie(tmp_path: Path) -> None:
    path = saved(tmp_path, ENTRIES)
    content = path.read_bytes()
    size = len(content)
    for field, value in [
        *(("offset", n) for n in (-64, 1, size, 2**62, 1.5, None, "64")),
        *(("shape", n) for n in ([-1], [2**62], [], [3, 3], 7, None, ["3"], [True])),
        *(("dtype", n) for n in ("<i2", "|O", "no type", None, "<f8")),
        ("name", "another"),
    ]:
        for position in (0, 8, 20):
            arrays = described(content)
            array = arrays[position]["name"]
            arrays[position][field] = value
            path.write_bytes(with_header(content, arrays))
            with pytest.raises(InvalidFile, match=f"the array {array} is not"):
                ForwardingTable.load(path)
    for header in (None, 7, [7], ["pivots"], [[]]):
        path.write_bytes(with_header(content, header))
        with pytest.raises(InvalidFile, match="the header is not"):
            ForwardingTable.load(path)
    (length,) = struct.unpack_from("<I", content, 12)
    for text in (b"", b"{", b"[" * length, b"\xff", b"{}", b"NaN"):
        path.write_bytes(sealed(content[:32] + text.ljust(length) + content[32 + length :]))
        with pytest.raises(InvalidFile, match="the header is not"):
            ForwardingTable.load(path)
