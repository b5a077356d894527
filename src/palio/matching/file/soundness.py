"""Is what a file holds a table? Every number that kernels use as a place is checked at loading.

A checksum tells damage, not intent. Kernels check no bounds, so a file made by hand, or by a program
with a bug, must not bring them to read or write where they may not, or to walk in circles:

    offsets       begin at 0, never fall, end where the array that they cut ends
    numbers       of interfaces, names, directories, strings and sets are below their counts
    constraints   have an operator that goes with their type, and a run of them ends
    slots         of the hash table are not all taken

What is merely untrue (keys that are not sorted, a wrong hash) makes wrong answers and no harm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.arrays import Strings
from palio.matching.encode.columns import Ints
from palio.matching.file import file_kernels
from palio.matching.pivot.arrays import Pivots
from palio.model.ranges import float_key
from palio.model.values import INT_MAX, INT_MIN, TIME_MAX, TIME_MIN

# The types and the columns of arrays; all others are of int32 and have one dimension.
_TYPES = {
    **dict.fromkeys(("strings.blob", "strings.uses", "pivots.kind", "pivots.domain"), "|u1"),
    **dict.fromkeys(("pivots.once", "names.blob", "interfaces.blob"), "|u1"),
    **dict.fromkeys(("strings.begin", "names.offsets", "interfaces.offsets"), "<i8"),
    **dict.fromkeys(("pivots.keys", "pivots.set_at", "pivots.set_split"), "<i8"),
    "pivots.set_keys": "<i8",
    "strings.hash": "<u8",
    **dict.fromkeys(("hidden.op", "hidden.domain", "hidden.residual"), "|u1"),
    **dict.fromkeys(("hidden.key", "hidden.set_at", "hidden.set_split", "hidden.set_keys"), "<i8"),
    **dict.fromkeys(("hidden_names.offsets", "hidden_strings.offsets"), "<i8"),
    **dict.fromkeys(("hidden_names.blob", "hidden_strings.blob"), "|u1"),
}
_COLUMNS = {"pivots.entries": 5, "pivots.rest": 3}

_ORDERED = (codes.EQ, codes.NE, codes.LT, codes.LE, codes.GT, codes.GE)
_TEXT = tuple(range(codes.PREFIX, codes.NOT_CONTAINS + 1))
_INLINE = (*_ORDERED, codes.IN, *_TEXT)
_FILED = tuple(op for op in (*_ORDERED, *_TEXT) if op not in codes.KEPT_INLINE)
_DOMAINS = {  # with their least and greatest keys; how many strings there are is up to the table
    codes.BOOL: (0, 1),
    codes.INT: (INT_MIN, INT_MAX),
    codes.FLOAT: (float_key(-math.inf), float_key(math.nan)),
    codes.TIME: (TIME_MIN, TIME_MAX),
    codes.STRING: (0, -1),
}

ARRAYS: tuple[str, ...] = (
    *(f"pivots.{field}" for field in Pivots._fields),
    *(f"strings.{field}" for field in Strings._fields),
    *("names.offsets", "names.blob", "interfaces.offsets", "interfaces.blob"),
)
HIDDEN: tuple[str, ...] = (
    *(f"hidden.{field}" for field in ("filter", "name", "op", "domain", "key", "owner")),
    *(f"hidden.{field}" for field in ("residual", "set_at", "set_split", "set_keys")),
    *("hidden_names.offsets", "hidden_names.blob"),
    *("hidden_strings.offsets", "hidden_strings.blob"),
)
"""Of a table that has filters with residuals."""


def layout_of(name: str) -> tuple[str, tuple[int, ...]]:
    """The type of an array, and its columns if it has more than one."""
    columns = _COLUMNS.get(name)
    return _TYPES.get(name, "<i4"), () if columns is None else (columns,)


def first_unsound(arrays: dict[str, Ints], names: int, interfaces: int) -> str | None:
    """The first array whose numbers make no table, or None."""
    pivots = Pivots(*(arrays[f"pivots.{field}"] for field in Pivots._fields))
    strings = Strings(*(arrays[f"strings.{field}"] for field in Strings._fields))
    for array, sound in _checks(pivots, strings, names, interfaces):
        if not sound:
            return array
    return None


def first_unsound_hidden(
    arrays: dict[str, Ints], names: int, strings: int, interfaces: int
) -> str | None:
    """The first array of the filters with residuals whose numbers make none, or None."""
    for field, sound in _hidden_checks(arrays, names, strings, interfaces):
        if not sound:
            return f"hidden.{field}"
    return None


def _hidden_checks(
    arrays: dict[str, Ints], names: int, strings: int, interfaces: int
) -> Iterator[tuple[str, bool]]:
    filter, name, op, domain, key = (
        arrays[f"hidden.{field}"] for field in ("filter", "name", "op", "domain", "key")
    )
    owner, residual = arrays["hidden.owner"], arrays["hidden.residual"]
    at, split, keys = (arrays[f"hidden.set_{field}"] for field in ("at", "split", "keys"))
    yield "owner", _within(owner, interfaces)
    for field, array in (("name", name), ("op", op), ("domain", domain), ("key", key)):
        yield field, len(array) == len(filter)
    yield "residual", len(residual) == len(filter) and _within(residual, 2)
    yield "filter", len(np.unique(filter)) == len(owner) and _within(filter, len(owner))
    yield "filter", bool((filter[1:] >= filter[:-1]).all())
    yield "residual", len(np.unique(filter[residual == 1])) == len(owner)
    yield "name", _within(name, names)
    yield "set_at", is_offsets(at, len(keys)) and len(split) == len(at) - 1
    yield "set_split", bool(((at[:-1] <= split) & (split <= at[1:])).all())
    low, high = _bounds(_INLINE, tuple(_DOMAINS), strings, len(split))
    way = op.astype(np.int64) << 3 | domain
    yield "op", _within(op, 16) and _within(domain, 8)
    yield "key", bool(((low[way] <= key) & (key <= high[way])).all())
    for number in np.unique(key[op == codes.IN]).tolist():
        own = domain[(op == codes.IN) & (key == number)]
        members = keys[at[number] : at[number + 1]]
        is_text = own == codes.STRING
        yield "set_keys", len(np.unique(is_text)) == 1
        yield "set_keys", not is_text.any() or _within(members, strings)


def _checks(
    pivots: Pivots, strings: Strings, names: int, interfaces: int
) -> Iterator[tuple[str, bool]]:
    """Each check relies on those before it."""
    for array, sound in _string_checks(strings):
        yield f"strings.{array}", sound
    count = len(strings.begin) - 1
    for array, sound in _offset_checks(pivots, names):
        yield f"pivots.{array}", sound
    for array, sound in _number_checks(pivots, names, interfaces):
        yield f"pivots.{array}", sound
    filed = _bounds(_FILED, (*_DOMAINS, codes.NUMBER), count, 0)
    yield "pivots.kind", file_kernels.has_sound_directories(pivots, *filed)
    inline = _bounds(_INLINE, tuple(_DOMAINS), count, len(pivots.set_split))
    known = np.zeros(len(pivots.set_split), np.uint8)
    for array, head, rows in (("entries", 2, pivots.entries), ("rest", 0, pivots.rest)):
        yield (
            f"pivots.{array}",
            file_kernels.has_sound_constraints(rows, head, pivots, names, count, *inline, known),
        )
    yield "pivots.rest", not len(pivots.rest) or bool(pivots.rest[-1, 0] & 1)
    yield "pivots.once", len(pivots.once) == 1
    seen = np.zeros(interfaces, np.uint8)
    yield "pivots.once", not pivots.once[0] or file_kernels.is_once(pivots, seen)


def _bounds(
    ops: tuple[int, ...], types: tuple[int, ...], strings: int, sets: int
) -> tuple[Ints, Ints]:
    """The least and the greatest key of each operator and domain; none for what there is not."""
    low, high = np.ones(128, np.int64), np.zeros(128, np.int64)
    for op in ops:
        for domain in (codes.STRING,) if op in _TEXT else _DOMAINS:
            way = op << 3 | domain
            low[way], high[way] = _DOMAINS[domain]
            if op == codes.IN:
                low[way], high[way] = 0, sets - 1
            elif domain == codes.STRING:
                high[way] = strings - 1
    for op, domain in [
        *((codes.ANY, d) for d in (*types, codes.EVERY)),
        (codes.ABSENT, codes.EVERY),
    ]:
        low[op << 3 | domain], high[op << 3 | domain] = INT_MIN, INT_MAX
    return low, high


def _string_checks(strings: Strings) -> Iterator[tuple[str, bool]]:
    count = len(strings.begin) - 1
    yield "begin", is_offsets(strings.begin, len(strings.blob), exact=False)
    yield "hash", len(strings.hash) == count
    yield "uses", len(strings.uses) == count
    size = len(strings.slots)
    yield "slots", size > 1 and size & (size - 1) == 0 and _within(strings.slots, count + 1)
    yield "slots", not strings.slots.all()
    longest = int(np.diff(strings.begin).max()) if count else 0
    for field in ("prefix_lengths", "suffix_lengths", "part_lengths"):
        lengths = getattr(strings, field)
        yield field, _within(lengths, longest + 1) and bool((lengths[1:] > lengths[:-1]).all())


def _offset_checks(pivots: Pivots, names: int) -> Iterator[tuple[str, bool]]:
    directories, keys = len(pivots.kind), len(pivots.keys)
    unnamed = pivots.directory_at[:1]
    yield (
        "directory_at",
        len(pivots.directory_at) == names + 1 and _within(unnamed, directories + 1),
    )
    named = pivots.directory_at - unnamed
    yield "directory_at", is_offsets(named, directories - int(unnamed[0]))
    yield "domain", len(pivots.domain) == directories
    yield "keys_at", len(pivots.keys_at) == directories + 1 and is_offsets(pivots.keys_at, keys)
    for field, end in (("alone_at", len(pivots.alone)), ("entries_at", len(pivots.entries))):
        at = getattr(pivots, field)
        yield field, len(at) == keys + 1 and is_offsets(at, end)
    yield "set_at", is_offsets(pivots.set_at, len(pivots.set_keys))
    start, split = pivots.set_at, pivots.set_split
    yield (
        "set_split",
        len(split) == len(start) - 1 and bool(((start[:-1] <= split) & (split <= start[1:])).all()),
    )


def _number_checks(pivots: Pivots, names: int, interfaces: int) -> Iterator[tuple[str, bool]]:
    yield "alone", _within(pivots.alone, interfaces)
    yield "entries", _within(pivots.entries[:, 0], interfaces)
    rest, ends = len(pivots.rest), (pivots.entries[:, 2] & 1).astype(bool)
    yield "entries", _within(pivots.entries[:, 1], rest + 1)
    yield "entries", bool((ends | (pivots.entries[:, 1] < rest)).all())
    yield "missing", _within(pivots.missing, len(pivots.kind))
    yield "missing_name", len(pivots.missing_name) == len(pivots.missing)
    yield "missing_name", _within(pivots.missing_name, names)
    yield "always", _within(pivots.always, len(pivots.kind))


def is_offsets(at: Ints, end: int, *, exact: bool = True) -> bool:
    """Do these cut an array of so many items into runs? If not exact, items may be left over: bytes
    of no string, since no array of bytes is empty."""
    if not len(at) or at[0] != 0 or bool((at[1:] < at[:-1]).any()):
        return False
    return bool(at[-1] == end if exact else at[-1] <= end)


def _within(numbers: Ints, end: int) -> bool:
    """Are all from 0 to below `end`?"""
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() < end)
