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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from palio.errors import InvalidPredicate, RejectedPredicates, RejectedRow
from palio.matching.encode import constraint_rows
from palio.matching.encode.columns import ConstraintColumns, from_predicates
from palio.matching.table import ForwardingTable
from palio.model.language import parse
from palio.model.predicate import Predicate
from palio.model.reduction import reduce as reduced
from palio.spark.expressions import session_zone
from palio.spark.messages import quoted
from palio.spark.parsing import (
    PARSED,
    PARSED_SQL,
    ReadRule,
    parse_batches,
    reduce_batches,
    rule_reader,
)
from palio.spark.table_directory import TableDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN_MAX = 5  # rejects in an error


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
    dialect: str = "sql",
    reduce: bool = False,
    path: str | Path | TableDirectory | None = None,
) -> ForwardingTable:
    """A table from rows of interface and predicate text, or from constraint rows (the columns
    interface, filter, name, op, type, value). `dialect`: the language of the texts, one of
    palio.dialects.DIALECTS.

    `reduce` drops what other filters of the same interface cover. `path`: also write the table
    to this file, or publish it in this directory. A row that is no predicate raises
    InvalidPredicate, which shows the first few and says how many there are.

    Texts in SQL are written in the time zone of the session, and may have functions that only Spark
    computes.
    """
    compiled = compile_with_rejects(
        predicates, interface=interface, predicate=predicate, dialect=dialect, reduce=reduce
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
    dialect: str = "sql",
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
    read = rule_reader(dialect, session_zone(predicates.sparkSession))
    return _assembled(_parsed(texts, reduce, read))


def table_of(rules: Mapping[str, str | Predicate], zone: str | None) -> ForwardingTable:
    """A table from interfaces and the texts of predicates, written in this time zone (None: UTC)."""
    entries = []
    for interface, rule in rules.items():
        try:
            entries.append((interface, parse(rule, zone=zone, foreign=True)))
        except InvalidPredicate as refused:
            raise RejectedPredicates(
                1, [RejectedRow(interface=interface, predicate=str(rule), error=str(refused))]
            ) from None
    return ForwardingTable.compile(from_predicates(entries))


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


def _parsed(texts: DataFrame, reduce: bool, read: ReadRule) -> pa.Table:
    """The rows of all predicates, in the order of the DataFrame."""
    placed = texts.select(F.monotonically_increasing_id().alias("place"), "interface", "predicate")
    if not reduce:
        parse = partial(parse_batches, read=read)
        return placed.mapInArrow(parse, PARSED_SQL).toArrow().cast(PARSED)
    together = placed.repartition("interface").sortWithinPartitions("interface", "place")
    parse = partial(reduce_batches, read=read)
    return together.mapInArrow(parse, PARSED_SQL).toArrow().cast(PARSED).sort_by("place")


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
    return pa.schema([PARSED.field(n) for n in ("interface", "predicate", "error")]).empty_table()


# ---- constraint rows


def are_constraints(df: DataFrame, predicate: str) -> bool:
    rest = set(constraint_rows.REQUIRED) - {"interface"}
    return rest <= set(df.columns) and predicate not in df.columns


def _from_constraints(df: DataFrame, interface: str, reduce: bool) -> ForwardingTable:
    rows = df.select(
        F.col(quoted(interface)).cast("string").alias("interface"),
        *(F.col(quoted(name)) for name in constraint_rows.REQUIRED if name != "interface"),
    )
    table = ForwardingTable.compile(constraint_rows.from_constraint_rows(rows.toArrow()))
    if not reduce:
        return table
    smaller = ((name, reduced(table.predicate(name))) for name in table.interfaces)
    return ForwardingTable.compile(from_predicates(smaller))
