"""How the items of an Arrow type become Python objects: raw ones, then what an attribute holds.

    type                                   raw                    converted
    bool, int8 .. int64, float, string     Python's               as they are
    uint64, float16                        int, float             checked; float
    timestamp with a zone, date32, date64  the integer behind     the instant, checked
    decimal32 .. decimal256, uuid, binary  Decimal, UUID, bytes   as `as_content` takes them
    list, large_list, fixed_size_list      list                   of converted items
    struct, map (within these)             JsonObject             of converted items
    dictionary, extension                  as its values, as its storage

Reading raw objects never fails; converting one may. pyarrow is not imported: whoever has an array
has it already. Times are read as the integers behind them, since pyarrow needs pandas to show
nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from palio.errors import InvalidValue
from palio.model.arrays import JsonObject
from palio.model.values import INT_MAX, TIME_MAX, TIME_MIN, Value, instant_from_micros

LISTS = ("list<", "large_list<", "fixed_size_list<")
BINARY = ("binary", "large_binary", "binary_view", "fixed_size_binary[")


@dataclass(frozen=True, slots=True)
class ArrowReading:
    """How to read the arrays of one type."""

    raw: Callable[[Any], list[Any]]
    convert: Callable[[Any], Any] | None = None
    """Of what is not None; without it the raw objects are right."""
    is_plain: bool = True
    """The results are values already."""


def reading(name: str, kind: Any) -> ArrowReading:
    """How to read a column, or items, of this type. Raises InvalidValue where no attribute has it."""
    shown = str(kind)
    if shown in _SCALARS:
        storage, convert = _SCALARS[shown]
        return ArrowReading(_listed if storage is None else partial(_stored, storage), convert)
    if shown.startswith("timestamp["):
        if not kind.tz:
            raise InvalidValue(
                f"column {name!r}: the type {kind} has no time zone",
                remedy="if it is in UTC, cast it to timestamp('us', tz='UTC')",
            )
        return ArrowReading(partial(_stored, "int64"), _INSTANTS[kind.unit])
    if shown.startswith(("decimal", *BINARY)) or shown == "extension<arrow.uuid>":
        return ArrowReading(_listed, is_plain=False)
    if shown.startswith("dictionary<"):
        inner = reading(name, kind.value_type)
        return ArrowReading(partial(_entries, inner.raw), inner.convert, inner.is_plain)
    if shown.startswith("extension<"):
        inner = reading(name, kind.storage_type)
        return ArrowReading(lambda a: inner.raw(a.storage), inner.convert, inner.is_plain)
    if shown.startswith(LISTS):
        inner = reading(name, kind.value_type)
        items = None if inner.convert is None else partial(_items, inner.convert)
        return ArrowReading(partial(_lists, inner.raw), items, is_plain=False)
    if shown.startswith("struct<"):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        inside = [(field.name, reading(name, field.type)) for field in fields]
        converts = {key: one.convert for key, one in inside if one.convert is not None}
        members = partial(_members, converts) if converts else None
        return ArrowReading(partial(_structs, inside), members, is_plain=False)
    if shown.startswith("map<"):
        if str(kind.key_type) not in TEXTS:
            raise InvalidValue(
                f"column {name!r}: the keys of a map are strings, not {kind.key_type}"
            )
        inner = reading(name, kind.item_type)
        values = None if inner.convert is None else partial(_values, inner.convert)
        return ArrowReading(partial(_maps, inner.raw), values, is_plain=False)
    raise InvalidValue(
        f"column {name!r}: the type {kind} holds no value of an attribute",
        remedy="drop the column or "
        "cast it to bool, an integer, a float, string, date32 or a timestamp with a zone",
    )


# ---- raw objects


def _listed(array: Any) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found


def _stored(storage: str, array: Any) -> list[Any]:
    return _listed(array.cast(storage))


def _entries(raw: Callable[[Any], list[Any]], array: Any) -> list[Any]:
    entries = raw(array.dictionary)
    return [None if i is None else entries[i] for i in array.indices.to_pylist()]


def _lists(raw: Callable[[Any], list[Any]], array: Any) -> list[Any]:
    items = raw(array.flatten())  # those of NULL are left out
    size = getattr(array.type, "list_size", None)
    if size is None:
        lengths = array.value_lengths().to_pylist()
    else:
        lengths = [size if there else None for there in array.is_valid().to_pylist()]
    found: list[Any] = []
    at = 0
    for length in lengths:
        found.append(None if length is None else items[at : at + length])
        at += length or 0
    return found


def _structs(inside: list[tuple[str, ArrowReading]], array: Any) -> list[Any]:
    names = [name for name, _ in inside]
    columns = [one.raw(part) for (_, one), part in zip(inside, array.flatten(), strict=True)]
    rows = zip(*columns, strict=True) if columns else ((),) * len(array)
    return [
        JsonObject(zip(names, row, strict=True)) if there else None
        for there, row in zip(array.is_valid().to_pylist(), rows, strict=True)
    ]


def _maps(raw: Callable[[Any], list[Any]], array: Any) -> list[Any]:
    if not len(array):
        return []
    offsets = array.offsets.to_pylist()
    first, size = offsets[0], offsets[-1] - offsets[0]
    keys = array.keys.slice(first, size).to_pylist()
    values = raw(array.items.slice(first, size))
    return [
        JsonObject(zip(keys[a - first : b - first], values[a - first : b - first], strict=True))
        if there
        else None
        for there, a, b in zip(array.is_valid().to_pylist(), offsets, offsets[1:], strict=False)
    ]


# ---- conversions


def _items(convert: Callable[[Any], Any], found: list[Any]) -> list[Any]:
    return [None if item is None else convert(item) for item in found]


def _members(converts: dict[str, Callable[[Any], Any]], found: JsonObject) -> JsonObject:
    return JsonObject(
        (key, converts[key](value) if value is not None and key in converts else value)
        for key, value in found
    )


def _values(convert: Callable[[Any], Any], found: JsonObject) -> JsonObject:
    return JsonObject((key, None if value is None else convert(value)) for key, value in found)


def _int(value: int) -> int:
    if value > INT_MAX:
        raise InvalidValue(f"the integer {value} does not fit in 64 bits with a sign")
    return value


def _instant(micros_per_unit: int, value: int) -> datetime:
    micros = value * micros_per_unit
    if not TIME_MIN <= micros <= TIME_MAX:
        raise InvalidValue("the instant lies outside the years 1 to 9999 of UTC")
    return instant_from_micros(micros)


def _instant_of_nanos(value: int) -> datetime:
    micros, rest = divmod(value, 1000)
    if rest:
        raise InvalidValue(
            f"the instant ({value} nanoseconds) is finer than a microsecond",
            remedy="round it first",
        )
    return instant_from_micros(micros)  # 64 bits of nanoseconds end in the year 2262


_MS_PER_DAY = 86_400_000

_INSTANTS: dict[str, Callable[[Any], Value]] = {
    "s": partial(_instant, 1_000_000),
    "ms": partial(_instant, 1000),
    "us": partial(_instant, 1),
    "ns": _instant_of_nanos,
}

TEXTS = ("string", "large_string", "string_view")

_SCALARS: dict[str, tuple[str | None, Callable[[Any], Value] | None]] = {
    **dict.fromkeys(("null", "bool", *TEXTS), (None, None)),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), (None, None)),
    "uint64": (None, _int),
    "halffloat": (None, float),  # older releases of pyarrow give numpy's scalars
    "float": (None, None),
    "double": (None, None),
    "date32[day]": ("int32", partial(_instant, _MS_PER_DAY * 1000)),
    "date64[ms]": ("int64", lambda ms: _instant(_MS_PER_DAY * 1000, ms // _MS_PER_DAY)),
}
