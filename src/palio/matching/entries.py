"""What a table is compiled from: predicates of interfaces, or rows of constraints, as columns.

mapping, pairs, frame    text ──parse──▶ Predicate ──▶ columns     an error names the interface
rows of constraints      one row for each constraint  ──▶ columns
columns                  as they are
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from palio.errors import InvalidPredicate
from palio.matching.encode.columns import ConstraintColumns, from_predicates
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.frames import arrow_rows, is_frame
from palio.model.language import parse
from palio.model.predicate import Predicate

if TYPE_CHECKING:
    from palio.matching.statistics import Reduction

PAIR_COLUMNS = ("interface", "predicate")
PAIR = {*PAIR_COLUMNS}

Pairs: TypeAlias = Mapping[str, Predicate | str] | Iterable[tuple[str, Predicate | str]]
Entries: TypeAlias = Pairs | pa.Table | ConstraintColumns


def columns_of(
    entries: Entries, reduce: bool, zone: str | None
) -> tuple[ConstraintColumns, Reduction | None]:
    """The constraints of the entries, and what reducing them saved."""
    from palio.matching.encode.column_reduction import reduce_columns, reduce_predicates

    if is_frame(entries):
        rows = arrow_rows(entries)
        if set(rows.schema.names) != PAIR:
            rows = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
            columns = from_constraint_rows(rows)
            return reduce_columns(columns) if reduce else (columns, None)
        entries = zip(*(rows.column(name).to_pylist() for name in PAIR_COLUMNS), strict=True)
    if isinstance(entries, ConstraintColumns):
        return reduce_columns(entries) if reduce else (entries, None)
    parsed = parsed_pairs(entries, zone)
    return reduce_predicates(parsed) if reduce else (from_predicates(parsed), None)


def parsed_pairs(entries: Pairs, zone: str | None = None) -> Iterator[tuple[str, Predicate]]:
    """Interfaces with their predicates; texts are in a time zone."""
    for name, predicate in _pairs(entries):
        if not isinstance(name, str):
            raise InvalidPredicate(f"an interface is named by a string, not by {name!r}")
        try:
            yield name, parse(predicate, zone=zone)
        except InvalidPredicate as error:
            raise error.at(interface=name) from None


def _pairs(entries: Any) -> Iterator[tuple[str, Predicate | str]]:
    """What callers gave, checked: it may be anything."""
    if isinstance(entries, Mapping):
        yield from entries.items()
        return
    if isinstance(entries, str | bytes) or not isinstance(entries, Iterable):
        raise _no_entries(entries)
    for one in entries:
        if not isinstance(one, tuple | list) or len(one) != 2:
            raise _no_entries(entries)
        yield one[0], one[1]


def _no_entries(entries: object) -> InvalidPredicate:
    return InvalidPredicate(
        "a table is compiled from a mapping, or pairs, of interface and predicate, "
        f"not from this {type(entries).__name__}",
        remedy="a frame has the columns interface and predicate",
    )
