"""Tables from DataFrames of predicates: executors read the predicates, the driver files them.

    rows  (interface, predicate)         ──parse, on executors──▶ constraint rows and rejects ─┐
    rows  (interface, filter, name, op, type, value)                                            │
                                         ──as they are──────────▶ constraint rows ─────────────┤
                                                                       driver: columns ──▶ table

The table is that of `ForwardingTable.compile` on the collected rows, interfaces in their order.
To reduce, the rows of an interface come together in one task first. Every row ends in the table or
among the rejects.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from palio.errors import InvalidPredicate, PalioError, RejectedPredicates, RejectedRow
from palio.matching.encode import constraint_rows
from palio.matching.encode.columns import ConstraintColumns
from palio.matching.table import ForwardingTable
from palio.model.language import parse
from palio.model.operators import Op
from palio.model.predicate import Constraint, Predicate
from palio.model.reduction import reduce as reduced
from palio.model.values import format_instant
from palio.spark.messages import quoted
from palio.spark.table_directory import TableDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN_MAX = 5  # rejects in an error
_ROWS_MAX = 50_000  # constraints of a batch on its way to the driver

# What executors send. A constraint: all up to `value`. A filter without constraints, which selects
# everything: no name. An interface without filters: no filter. A reject: `error`.
_PARSED = pa.schema(
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
_PARSED_SQL = (
    "place bigint, interface string, filter bigint, name string, op string, type string, "
    "value string, predicate string, error string"
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A table, and the rows that are not in it: interface, predicate and error."""

    table: ForwardingTable
    rejects: pa.Table


def compile(
    predicates: DataFrame,
    *,
    interface: str = "interface",
    predicate: str = "predicate",
    reduce: bool = False,
    path: str | Path | TableDirectory | None = None,
) -> ForwardingTable:
    """A table from rows of interface and predicate text, or from constraint rows (the columns
    interface, filter, name, op, type, value).

    `reduce` drops what other filters of the same interface cover. `path`: also write the table
    to this file, or publish it in this directory. A row that is no predicate raises
    InvalidPredicate, which shows the first few and says how many there are.
    """
    compiled = compile_with_rejects(
        predicates, interface=interface, predicate=predicate, reduce=reduce
    )
    if compiled.rejects.num_rows:
        raise rejected(compiled.rejects)
    if isinstance(path, TableDirectory):
        path.publish(compiled.table)
    elif path is not None and Path(path).is_dir():
        TableDirectory(path).publish(compiled.table)
    elif path is not None:
        compiled.table.save(path)
    return compiled.table


def compile_with_rejects(
    predicates: DataFrame,
    *,
    interface: str = "interface",
    predicate: str = "predicate",
    reduce: bool = False,
) -> Compiled:
    """The table of the rows that are predicates, and the others with what is wrong with them."""
    if are_constraints(predicates, predicate):
        return Compiled(_from_constraints(predicates, interface, reduce), _no_rejects())
    require_columns(predicates, interface, predicate)
    texts = predicates.select(
        F.col(quoted(interface)).cast("string").alias("interface"),
        F.col(quoted(predicate)).alias("predicate"),
    )
    return _assembled(_parsed(texts, reduce))


def require_columns(predicates: DataFrame, interface: str, predicate: str) -> None:
    """Raise InvalidPredicate unless the DataFrame has these, the texts as strings."""
    for column in (interface, predicate):
        found = [f.dataType for f in predicates.schema.fields if f.name == column]
        if not found:
            raise InvalidPredicate(
                f"the DataFrame of predicates has no column {column!r}",
                remedy=f"there are "
                f"{', '.join(predicates.columns) or 'none'}. It has an interface and a predicate, "
                f"or {', '.join(constraint_rows.REQUIRED)}",
            )
        if column == predicate and not isinstance(found[0], T.StringType):
            raise InvalidPredicate(
                f"the column {column!r} holds the SQL of predicates, and its type is "
                f"{found[0].simpleString()} instead of string"
            )


def _parsed(texts: DataFrame, reduce: bool) -> pa.Table:
    """The rows of all predicates, in the order of the DataFrame."""
    placed = texts.select(F.monotonically_increasing_id().alias("place"), "interface", "predicate")
    if not reduce:
        return placed.mapInArrow(_parse_batches, _PARSED_SQL).toArrow().cast(_PARSED)
    together = placed.repartition("interface").sortWithinPartitions("interface", "place")
    return (
        together.mapInArrow(_reduce_batches, _PARSED_SQL).toArrow().cast(_PARSED).sort_by("place")
    )


# ---- executors


def _parse_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = _Rows()
    for place, interface, text in _texts(batches):
        parsed = rows.parse(place, interface, text)
        if parsed is not None:
            rows.add(place, interface, parsed)
        if len(rows) >= _ROWS_MAX:
            yield rows.batch()
    yield rows.batch()


def _reduce_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of an interface come one after the other; their disjunction is reduced."""
    rows = _Rows()
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
    """Gathers rows of `_PARSED`."""

    def __init__(self) -> None:
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
                return parse(text)
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
        columns = list(zip(*self._rows, strict=True)) or [()] * len(_PARSED)
        self._rows = []
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _PARSED, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_PARSED)


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


# ---- the driver


def _assembled(parsed: pa.Table) -> Compiled:
    rejects = parsed.filter(pc.is_valid(parsed["error"])).select(
        ["interface", "predicate", "error"]
    )
    kept = parsed.filter(pc.is_null(parsed["error"]))
    columns = _columns(kept)
    return Compiled(ForwardingTable.compile(columns), rejects)


def _columns(rows: pa.Table) -> ConstraintColumns:
    """ConstraintColumns from constraint rows, and the filters and interfaces that have none."""
    named = pc.is_valid(rows["name"])
    constraints = rows.filter(named)
    columns = constraint_rows.from_constraint_rows(_with_own_filters(constraints))
    everything = rows.filter(pc.and_(pc.invert(named), pc.is_valid(rows["filter"])))
    interfaces = pc.unique(rows["interface"]).to_pylist()
    place = {name: i for i, name in enumerate(interfaces)}
    moved = np.array([place[name] for name in columns.interfaces], np.int32)
    more = [place[name] for name in everything["interface"].to_pylist()]
    owner = moved[columns.owner] if len(moved) else columns.owner
    return dataclasses.replace(
        columns,
        owner=np.concatenate([owner, np.array(more, np.int32)]),
        interfaces=interfaces,
    )


def _with_own_filters(rows: pa.Table) -> pa.Table:
    """Filters are numbered within a row; here, over all rows."""
    place, filter = rows["place"].to_numpy(), rows["filter"].to_numpy()
    starts = np.ones(len(place), bool)
    starts[1:] = (place[1:] != place[:-1]) | (filter[1:] != filter[:-1])
    position = rows.column_names.index("filter")
    return rows.set_column(position, "filter", pa.array(np.cumsum(starts)))


def rejected(rejects: pa.Table) -> RejectedPredicates:
    """The error of a table that has rejects."""
    return RejectedPredicates(
        rejects.num_rows,
        [RejectedRow(**row) for row in rejects.slice(0, _SHOWN_MAX).to_pylist()],
        remedy="compile_with_rejects gives them as a table and compiles the rest",
    )


def _no_rejects() -> pa.Table:
    return pa.schema([_PARSED.field(n) for n in ("interface", "predicate", "error")]).empty_table()


# ---- constraint rows


def are_constraints(df: DataFrame, predicate: str) -> bool:
    rest = set(constraint_rows.REQUIRED) - {"interface"}
    return rest <= set(df.columns) and predicate not in df.columns


def _from_constraints(df: DataFrame, interface: str, reduce: bool) -> ForwardingTable:
    rows = df.select(
        F.col(quoted(interface)).cast("string").alias("interface"),
        *(F.col(quoted(name)) for name in constraint_rows.REQUIRED if name != "interface"),
    )
    table = ForwardingTable.compile(rows.toArrow())
    if not reduce:
        return table
    smaller = ((name, reduced(table.predicate(name))) for name in table.interfaces)
    return ForwardingTable.compile(smaller)
