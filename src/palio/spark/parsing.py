"""What executors do with the texts of predicates: each is read, and becomes rows of constraints.

rows  (place, interface, predicate)  ──parse_batches──▶ rows of PARSED: constraints, and rejects
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa

from palio import dialects
from palio.errors import PalioError
from palio.model.language import parse
from palio.model.operators import Op
from palio.model.predicate import Constraint, Predicate
from palio.model.reduction import reduce as reduced
from palio.model.values import format_instant

ReadRule: TypeAlias = Callable[[str], Predicate]

_ROWS_MAX = 50_000  # constraints of a batch on its way to the driver

# What executors send. A constraint: all up to `value`. A filter without constraints, which selects
# everything: no name. An interface without filters: no filter. A reject: `error`.
PARSED = pa.schema(
    [
        ("place", pa.int64()),  # of the row, to restore the order
        ("interface", pa.string()),
        ("filter", pa.int64()),
        ("name", pa.string()),
        ("op", pa.string()),
        ("type", pa.string()),
        ("value", pa.string()),
        ("predicate", pa.string()),
        ("error", pa.string()),
    ]
)
PARSED_SQL = (
    "place bigint, interface string, filter bigint, name string, op string, type string, "
    "value string, predicate string, error string"
)


def rule_reader(dialect: str, zone: str | None) -> ReadRule:
    """How texts are read; those in SQL were written in this time zone (None: UTC), and may have
    functions that only Spark computes."""
    if dialect == "sql":
        return partial(parse, zone=zone, foreign=True)
    dialects.require(dialect)
    return partial(dialects.read, dialect=dialect)


def parse_batches(batches: Iterable[pa.RecordBatch], read: ReadRule) -> Iterator[pa.RecordBatch]:
    """The rows of each text."""
    rows = _Rows(read)
    for place, interface, text in _texts(batches):
        parsed = rows.parse(place, interface, text)
        if parsed is not None:
            rows.add(place, interface, parsed)
        if len(rows) >= _ROWS_MAX:
            yield rows.batch()
    yield rows.batch()


def reduce_batches(batches: Iterable[pa.RecordBatch], read: ReadRule) -> Iterator[pa.RecordBatch]:
    """The rows of an interface come one after the other; their disjunction is reduced."""
    rows = _Rows(read)
    for interface, group in groupby(_texts(batches), key=lambda row: row[1]):
        whole, first = Predicate(()), None
        for place, _, text in group:
            parsed = rows.parse(place, interface, text)
            if parsed is not None:
                first = place if first is None else first
                whole = Predicate((*whole.filters, *parsed.filters))
        if first is not None:
            rows.add(first, interface, reduced(whole))
        if len(rows) >= _ROWS_MAX:
            yield rows.batch()
    yield rows.batch()


def _texts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Any, Any]]:
    for batch in batches:
        yield from zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True)


class _Rows:
    """Gathers rows of `PARSED`."""

    def __init__(self, read: ReadRule) -> None:
        self._read = read
        self._rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def parse(self, place: int, interface: str | None, text: str | None) -> Predicate | None:
        """The predicate of a row; a row that has none is a reject."""
        if interface is None or text is None:
            missing = "interface" if interface is None else "predicate"
            error = f"the {missing} is NULL"
        else:
            try:
                return self._read(text)
            except PalioError as refused:
                error = str(refused)
        self._rows.append((place, interface, None, None, None, None, None, text, error))
        return None

    def add(self, place: int, interface: Any, predicate: Predicate) -> None:
        if not predicate.filters:
            self._rows.append((place, interface, *(None,) * 7))
        for number, conjunction in enumerate(predicate.filters):
            if not conjunction.constraints:
                self._rows.append((place, interface, number, *(None,) * 6))
            for c in conjunction.constraints:
                type = c.type.value if c.type is not None else None
                row = (place, interface, number, c.name, c.op.value, type, value_text(c))
                self._rows.append((*row, None, None))

    def batch(self) -> pa.RecordBatch:
        columns = list(zip(*self._rows, strict=True)) or [()] * len(PARSED)
        self._rows = []
        arrays = [pa.array(c, f.type) for c, f in zip(columns, PARSED, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=PARSED)


def value_text(constraint: Constraint) -> str | None:
    """The value as constraint rows have it."""
    value: Any = constraint.value
    if constraint.op in (Op.ANY, Op.ABSENT):
        return None
    if constraint.op is Op.IN:
        return json.dumps([_member(member) for member in value], ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return format_instant(value)
    return value if isinstance(value, str) else repr(value)


def _member(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return repr(value)  # JSON has no word for it
    return value
