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
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from palio.errors import InvalidFile
from palio.matching.computed.hidden import HiddenFilters
from palio.matching.encode.arrays import Strings
from palio.matching.encode.columns import Ints
from palio.matching.expressions import CHOICES
from palio.matching.file import hidden_arrays, soundness
from palio.matching.file.file_kernels import checksum
from palio.matching.file.packing import packed
from palio.matching.pivot.arrays import Pivots, PivotTable
from palio.model.expressions.names import is_computed
from palio.model.expressions.text import TEXT_MAX
from palio.model.literals import lift
from palio.model.values import shortened

MAGIC = b"PALIOTB\n"
VERSION = 2
READS = (1, 2)
"""Format 2 has the filters with residuals, where a table has any."""
_HEAD = struct.Struct("<8sIIQQ")
_ALIGN = 64


class StoredTable(NamedTuple):
    """What a file holds. The table has an interface more for each hidden filter."""

    table: PivotTable
    interfaces: pa.StringArray
    hidden: HiddenFilters | None
    choice: str
    """What later versions do with expressions."""


def save(
    path: Path,
    table: PivotTable,
    interfaces: pa.StringArray,
    hidden: HiddenFilters | None = None,
    choice: str = "auto",
) -> None:
    """Write a table; what was at `path` is replaced at once, or not at all."""
    arrays = {
        **{f"pivots.{k}": v for k, v in table.pivots._asdict().items()},
        **{f"strings.{k}": v for k, v in table.strings._asdict().items()},
        **packed("names", table.names),
        **packed("interfaces", interfaces.to_pylist()),
        **(hidden_arrays.arrays_of(hidden) if hidden is not None else {}),
    }
    hidden_names = hidden.columns.names if hidden is not None else ()
    check_expressions(path, filter(is_computed, (*table.names, *hidden_names)))
    header, places, size = _layout(arrays, choice)
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


def _layout(arrays: dict[str, Ints], choice: str) -> tuple[bytes, dict[str, int], int]:
    """The header, the place of each array, and the size of the file."""
    places: dict[str, int] = {}
    room = 0
    while True:  # the header names the places, and they begin behind it
        described = [
            {"name": k, "dtype": v.dtype.str, "shape": v.shape, "offset": places.get(k, 0)}
            for k, v in arrays.items()
        ]
        header = json.dumps({"arrays": described, "expressions": choice}).encode()
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


def load(path: Path) -> StoredTable:
    """Map a table into memory, or refuse it."""
    view = _mapped(path)
    magic, version, length, expected, size = _HEAD.unpack_from(view)
    if magic != MAGIC:
        raise InvalidFile(f"{path}: this is not a table of Palio")
    if version not in READS:
        raise InvalidFile(
            f"{path}: the table has format {version}, this version of Palio reads "
            f"{' and '.join(map(str, READS))}; compile it again, or update Palio"
        )
    if size != len(view) or size % 8 or _HEAD.size + length > size:
        raise InvalidFile(f"{path}: the file is cut or changed; its size is not what it says")
    if int(checksum(np.frombuffer(view, np.uint64)[3:])) != expected:
        raise InvalidFile(f"{path}: the file is damaged; its checksum is wrong")
    described, choice = _described(path, view[_HEAD.size : _HEAD.size + length])
    arrays = _arrays(path, view, described)
    names = _unpacked(path, "names", arrays).to_pylist()
    interfaces = _unpacked(path, "interfaces", arrays)
    if len(set(names)) < len(names):
        raise _unsound(path, "names.blob")
    hidden = _hidden(path, arrays, len(interfaces))
    inner = len(interfaces) + (len(hidden) if hidden else 0)
    wrong = soundness.first_unsound(arrays, len(names), inner)
    if wrong is not None:
        raise _unsound(path, wrong)
    pivots = Pivots(*(arrays[f"pivots.{field}"] for field in Pivots._fields))
    strings = Strings(*(arrays[f"strings.{field}"] for field in Strings._fields))
    return StoredTable(PivotTable(names, inner, strings, pivots), interfaces, hidden, choice)


def _hidden(path: Path, arrays: dict[str, Ints], interfaces: int) -> HiddenFilters | None:
    """The filters with residuals, if there are any."""
    if "hidden.filter" not in arrays:
        return None
    names = _unpacked(path, "hidden_names", arrays).to_pylist()
    strings = _unpacked(path, "hidden_strings", arrays).to_pylist()
    wrong = soundness.first_unsound_hidden(arrays, len(names), len(strings), interfaces)
    if wrong is not None:
        raise _unsound(path, wrong)
    return hidden_arrays.hidden_of(arrays, names, [text.encode() for text in strings])


SHAPES_MAX = 4_000_000
"""Characters of all expressions of a file without their literals, each of one shape once: they are parsed
when the file is loaded."""


def check_expressions(path: Path, names: Iterable[str]) -> None:
    """Raise where the expressions of these names would take too long to read."""
    shapes: set[str] = set()
    size = 0
    for name in names:
        shape = lift(name[1:])[0] if len(name) <= TEXT_MAX else ""
        if not shape:
            raise unsound_names(path, f"{shortened(name)} names no expression")
        if shape not in shapes:
            shapes.add(shape)
            size += len(shape)
        if size > SHAPES_MAX:
            raise InvalidFile(
                f"{path}: the expressions of the table have more than {SHAPES_MAX:,} characters without "
                "their literals, which would take minutes to read; divide the table"
            )


def unsound_names(path: Path, reason: str) -> InvalidFile:
    return InvalidFile(
        f"{path}: {reason}; the file was not written by Palio, compile the table again"
    )


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


def _described(path: Path, header: bytes) -> tuple[dict[str, Any], str]:
    """The arrays by name, and the choice about expressions: an older file says none."""
    try:
        read = json.loads(header)
        described = {entry["name"]: entry for entry in read["arrays"]}
        choice = read.get("expressions", "auto")
        if choice not in CHOICES:
            raise ValueError(choice)
    except (ValueError, TypeError, LookupError, RecursionError, AttributeError):
        raise InvalidFile(f"{path}: the header is not that of a table of Palio") from None
    return described, choice


def _arrays(path: Path, view: mmap.mmap, described: dict[str, Any]) -> dict[str, Ints]:
    """The arrays where the header says they are, of the types that they must have."""
    found: dict[str, Ints] = {}
    is_hiding = "hidden.filter" in described
    for name in (*soundness.ARRAYS, *(soundness.HIDDEN if is_hiding else ())):
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
