"""A workload: predicates as one row a constraint, messages, and where the data are from.

    constraints   interface  filter  name   op      type    value
                  i0         0       river  prefix  string  ab
                  i0         0       cloud  <       int     17
                  i0         1       ...                            rows of a filter are adjacent,
                  i1         2       ...                            filters of an interface too

`filter` ascends and is unique over the table. Values are text: 17, 2.5, true, 2013-01-31T10:00:00Z,
a string as it is; for `in` a JSON list; null for `any` and `absent`. Messages are sparse (one
column `attributes`, a list of name, type and value) or wide (a column an attribute).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.errors import InvalidPredicate
from palio.model import rows
from palio.model.arrays import Content
from palio.model.message import Message
from palio.model.operands import Operand
from palio.model.predicate import Constraint, Filter, Op, Predicate
from palio.model.values import Type, Value, format_instant, parse_instant

ENCODED = pa.dictionary(pa.int32(), pa.string())

CONSTRAINTS = pa.schema(
    [
        ("interface", ENCODED),
        ("filter", pa.int64()),
        ("name", ENCODED),
        ("op", ENCODED),
        ("type", ENCODED),
        ("value", ENCODED),
    ]
)
ATTRIBUTE = pa.struct([("name", ENCODED), ("type", ENCODED), ("value", pa.string())])
SPARSE_MESSAGES = pa.schema([("attributes", pa.list_(ATTRIBUTE))])

Interfaces: TypeAlias = int | str | None
"""How many interfaces the filters are dealt to; "all" or None: one for each filter."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Predicates and messages; `source` says how they were made."""

    name: str
    constraints: pa.Table
    messages: pa.Table
    source: str

    @property
    def filters(self) -> int:
        """How many filters there are."""
        numbers = self.constraints["filter"]
        return numbers[-1].as_py() + 1 if len(numbers) else 0

    @property
    def interfaces(self) -> int:
        """How many interfaces there are."""
        return len(pc.unique(self.constraints["interface"]))

    @property
    def is_sparse(self) -> bool:
        """Are the messages lists of attributes, not wide rows?"""
        return bool(self.messages.schema.equals(SPARSE_MESSAGES))


class Generator(Protocol):
    """What makes a workload for the command line."""

    def __call__(
        self, filters: int, interfaces: Interfaces, messages: int, *, seed: int = ...
    ) -> Workload: ...


class PartGenerator(Generator, Protocol):
    """One that can draw further parts over the same names and words."""

    def __call__(
        self,
        filters: int,
        interfaces: Interfaces,
        messages: int,
        *,
        seed: int = ...,
        part: int = ...,
    ) -> Workload: ...


# ---- predicates as objects


def predicates(workload: Workload) -> Iterator[tuple[str, Predicate]]:
    """Yield each interface and its predicate, as objects: for oracles on small sizes."""
    for interface, parts in groupby(_constraint_tuples(workload.constraints), itemgetter(0)):
        filters = (
            Filter(tuple(read_constraint(*part[2:]) for part in group))
            for _, group in groupby(parts, itemgetter(1))
        )
        yield interface, Predicate(tuple(filters))


def _constraint_tuples(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches(max_chunksize=65_536):
        yield from zip(*map(_python_values, batch.columns), strict=True)


def _python_values(array: pa.Array) -> list[Any]:
    """As to_pylist, which is several times slower on dictionaries."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return list(array.to_pylist())


@lru_cache(maxsize=65_536)
def read_constraint(name: str, op: str, type: str | None, value: str | None) -> Constraint:
    """A constraint from its row.

    >>> read_constraint("dest", "in", "string", '["LIN", "MXP"]')
    Constraint(dest IN ('LIN', 'MXP'))
    """
    if value is None or type is None:
        return Constraint(name, op, None, type)
    if op == Op.IN:
        return Constraint(name, op, [_member(Type(type), item) for item in json.loads(value)])
    return Constraint(name, op, READ[Type(type)](value))


READ: dict[Type, Callable[[str], Value]] = {
    Type.BOOL: "true".__eq__,
    Type.INT: int,
    Type.FLOAT: float,
    Type.STRING: str,
    Type.TIME: parse_instant,
}


def _member(type: Type, item: bool | int | float | str) -> Value:
    """JSON writes a time and an infinite float as strings; an int beside floats stays one."""
    return READ[type](item) if isinstance(item, str) else item


def constraint_rows(entries: Iterable[tuple[str, Predicate]]) -> pa.Table:
    """The constraint table of interfaces and their predicates: the inverse of `predicates`."""
    columns: dict[str, list[Any]] = {name: [] for name in CONSTRAINTS.names}
    number = 0
    for interface, predicate in entries:
        for filter in predicate:
            if not filter.constraints:
                raise InvalidPredicate(f"{interface}: a filter without constraints has no rows")
            for constraint in filter:
                columns["interface"].append(interface)
                columns["filter"].append(number)
                columns["name"].append(constraint.name)
                columns["op"].append(constraint.op.value)
                columns["type"].append(constraint.type and constraint.type.value)
                columns["value"].append(_value_text(constraint.value))
            number += 1
    arrays = [pa.array(columns[field.name], _plain(field.type)) for field in CONSTRAINTS]
    return pa.Table.from_arrays(
        [
            array.dictionary_encode() if field.type == ENCODED else array
            for array, field in zip(arrays, CONSTRAINTS, strict=True)
        ],
        schema=CONSTRAINTS,
    )


def _plain(type: pa.DataType) -> pa.DataType:
    return pa.string() if type == ENCODED else type


def _value_text(value: Operand) -> str | None:
    if isinstance(value, tuple):
        return json.dumps(list(map(_json_member, value)), ensure_ascii=False)
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)  # of a float: its repr


def _json_member(value: Value) -> Value:
    if isinstance(value, datetime) or (isinstance(value, float) and math.isinf(value)):
        return _value_text(value) or ""
    return value


# ---- messages


def message_dicts(workload: Workload, limit: int | None = None) -> list[dict[str, Content]]:
    """The first `limit` messages, or all, as dicts of typed Python values."""
    table = workload.messages.slice(0, limit)
    if not workload.is_sparse:
        return [dict(message) for message in rows.messages(table)]
    lists = table["attributes"].combine_chunks()
    names, types, texts = map(_python_values, lists.flatten().flatten())
    parts = ((n, READ[Type(t)](v)) for n, t, v in zip(names, types, texts, strict=True))
    return [dict(islice(parts, size)) for size in pc.list_value_length(lists).to_pylist()]


def json_messages(workload: Workload) -> pa.Table:
    """The messages as JSON objects: one column `message` of strings."""
    if workload.is_sparse:
        objects = _sparse_json(workload.messages["attributes"].combine_chunks())
    else:
        texts = (message.to_json() for message in rows.messages(workload.messages))
        objects = pa.array(texts, pa.string())
    return pa.table({"message": objects})


def _sparse_json(messages: pa.ListArray) -> pa.StringArray:
    """Each distinct name and each distinct typed value is written once, then joined by columns."""
    names, types, values = messages.flatten().flatten()
    values = values.dictionary_encode()
    known_types, known_values = types.dictionary.to_pylist(), values.dictionary.to_pylist()
    pairs = _codes(values) * len(known_types) + _codes(types)
    distinct, places = np.unique(pairs, return_inverse=True)
    texts = [
        _json_text(known_types[pair % len(known_types)], known_values[pair // len(known_types)])
        for pair in distinct.tolist()
    ]
    keys = [json.dumps(name, ensure_ascii=False) for name in names.dictionary.to_pylist()]
    entries = pc.binary_join_element_wise(
        pa.array(keys, pa.string()).take(names.indices),
        pa.array(texts, pa.string()).take(pa.array(places)),
        ": ",
    )
    offsets = pc.subtract(messages.offsets, messages.offsets[0])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, entries), ", ")
    return pc.binary_join_element_wise("{", joined, "}", "")


def _codes(array: pa.DictionaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(array.indices).astype(np.int64)


def _json_text(type: str, text: str) -> str:
    """The value as Message writes it: a time and an infinite float are objects."""
    return Message({"v": READ[Type(type)](text)}).to_json()[len('{"v": ') : -1]
