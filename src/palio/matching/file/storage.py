"""Tables in files: one file of aligned arrays that is memory-mapped, shared by all processes.

    byte 0    magic (8)  version (4)  header length (4)  checksum (8)  size of the file (8)
    byte 32   header: JSON, the name, type, shape and place of each array
    then      the arrays, each at a multiple of 64 bytes; zeros to a multiple of 8 at the end

The checksum covers everything behind byte 16, so a file that was cut or changed is refused before
any of it is used; `soundness` refuses one that was made wrong. A file is written beside its place
and moved there when it is whole.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidFile
from palio.matching.encode.arrays import Strings
from palio.matching.encode.columns import Ints
from palio.matching.file import soundness
from palio.matching.file.file_kernels import checksum
from palio.matching.pivot.arrays import Pivots, PivotTable

MAGIC = b"PALIOTB\n"
VERSION = 1
_HEAD = struct.Struct("<8sIIQQ")
_ALIGN = 64


def save(path: Path, table: PivotTable, interfaces: pa.StringArray) -> None:
    """Write a table; what was at `path` is replaced at once, or not at all."""
    arrays = {
        **{f"pivots.{k}": v for k, v in table.pivots._asdict().items()},
        **{f"strings.{k}": v for k, v in table.strings._asdict().items()},
        **_packed("names", table.names),
        **_packed("interfaces", interfaces.to_pylist()),
    }
    header, places, size = _layout(arrays)
    try:
        temporary, file = _beside(path)
        try:
            with file:
                _write(file, header, arrays, places, size)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise InvalidFile(f"{path}: the table cannot be written: {error.strerror}") from None


def _beside(path: Path) -> tuple[Path, Any]:
    """A new file in the same folder, as readable as any file that the user makes."""
    for number in itertools.count():
        name = path.with_name(f"{path.name}.{os.getpid()}-{number}.part")
        with contextlib.suppress(FileExistsError):
            return name, name.open("x+b")
    raise AssertionError("numbers do not end")


def _layout(arrays: dict[str, Ints]) -> tuple[bytes, dict[str, int], int]:
    """The header, the place of each array, and the size of the file."""
    places: dict[str, int] = {}
    room = 0
    while True:  # the header names the places, and they begin behind it
        described = [
            {"name": k, "dtype": v.dtype.str, "shape": v.shape, "offset": places.get(k, 0)}
            for k, v in arrays.items()
        ]
        header = json.dumps({"arrays": described}).encode()
        if room and len(header) <= room:
            break
        room = len(header) + 64 + 12 * len(arrays)
        at = _HEAD.size + room
        for name, array in arrays.items():
            places[name] = at = -(-at // _ALIGN) * _ALIGN
            at += array.nbytes
        size = -(-at // 8) * 8
    return header.ljust(room), places, size


def _write(
    file: Any, header: bytes, arrays: dict[str, Ints], places: dict[str, int], size: int
) -> None:
    file.truncate(size)
    file.seek(_HEAD.size)
    file.write(header)
    for name, array in arrays.items():
        file.seek(places[name])
        file.write(np.ascontiguousarray(array).data)
    file.seek(0)
    file.write(_HEAD.pack(MAGIC, VERSION, len(header), 0, size))
    file.flush()
    with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as view:
        words = np.frombuffer(view, np.uint64)[3:].copy()
    file.seek(16)
    file.write(struct.pack("<Q", int(checksum(words))))
    file.flush()
    os.fsync(file.fileno())


def load(path: Path) -> tuple[PivotTable, pa.StringArray]:
    """Map a table into memory, or refuse it."""
    view = _mapped(path)
    magic, version, length, expected, size = _HEAD.unpack_from(view)
    if magic != MAGIC:
        raise InvalidFile(f"{path}: this is not a table of Palio")
    if version != VERSION:
        raise InvalidFile(
            f"{path}: the table has format {version}, this version of Palio reads {VERSION}; "
            "compile it again, or update Palio"
        )
    if size != len(view) or size % 8 or _HEAD.size + length > size:
        raise InvalidFile(f"{path}: the file is cut or changed; its size is not what it says")
    if int(checksum(np.frombuffer(view, np.uint64)[3:])) != expected:
        raise InvalidFile(f"{path}: the file is damaged; its checksum is wrong")
    arrays = _arrays(path, view, view[_HEAD.size : _HEAD.size + length])
    names = _unpacked(path, "names", arrays).to_pylist()
    interfaces = _unpacked(path, "interfaces", arrays)
    if len(set(names)) < len(names):
        raise _unsound(path, "names.blob")
    wrong = soundness.first_unsound(arrays, len(names), len(interfaces))
    if wrong is not None:
        raise _unsound(path, wrong)
    pivots = Pivots(*(arrays[f"pivots.{field}"] for field in Pivots._fields))
    strings = Strings(*(arrays[f"strings.{field}"] for field in Strings._fields))
    return PivotTable(names, len(interfaces), strings, pivots), interfaces


def _unsound(path: Path, array: str) -> InvalidFile:
    return InvalidFile(
        f"{path}: the array {array} is not that of a table; the file was not written by Palio, "
        "compile the table again"
    )


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _HEAD.size:
                what = "too short" if size else "empty"
                raise InvalidFile(f"{path}: this is not a table of Palio; the file is {what}")
            # Private and writable: pages stay shared, and kernels see ordinary arrays.
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise InvalidFile(f"{path}: the table cannot be read: {error.strerror}") from None


def _arrays(path: Path, view: mmap.mmap, header: bytes) -> dict[str, Ints]:
    """The arrays where the header says they are, of the types that they must have."""
    try:
        described = {entry["name"]: entry for entry in json.loads(header)["arrays"]}
    except (ValueError, TypeError, LookupError, RecursionError):
        raise InvalidFile(f"{path}: the header is not that of a table of Palio") from None
    found: dict[str, Ints] = {}
    for name in soundness.ARRAYS:
        array = _array(view, described.get(name), *soundness.layout_of(name))
        if array is None:
            raise _unsound(path, name)
        found[name] = array
    found["strings.blob"].setflags(write=False)  # as when compiled: one type, one compiled kernel
    return found


def _array(view: mmap.mmap, entry: Any, dtype: str, columns: tuple[int, ...]) -> Ints | None:
    if not isinstance(entry, dict) or entry.get("dtype") != dtype:
        return None
    shape: Any = entry.get("shape")
    offset: Any = entry.get("offset")
    numbers = [*shape, offset] if isinstance(shape, list) else []
    if not numbers or not all(type(number) is int and number >= 0 for number in numbers):
        return None
    if len(shape) != 1 + len(columns) or tuple(shape[1:]) != columns or offset % _ALIGN:
        return None
    items = math.prod(shape)
    if offset + items * np.dtype(dtype).itemsize > len(view):
        return None
    return np.frombuffer(view, dtype, items, offset).reshape(shape)


def _packed(name: str, texts: list[str]) -> dict[str, Ints]:
    parts = [text.encode() for text in texts]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return {
        f"{name}.offsets": offsets,
        f"{name}.blob": np.frombuffer(b"".join(parts) or b"\0", np.uint8),
    }


def _unpacked(path: Path, name: str, arrays: dict[str, Ints]) -> Any:
    offsets, blob = arrays[f"{name}.offsets"], arrays[f"{name}.blob"]
    if not soundness.is_offsets(offsets, len(blob), exact=False):
        raise _unsound(path, f"{name}.offsets")
    texts = pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(blob)
    )
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise _unsound(path, f"{name}.blob") from None
    return texts
