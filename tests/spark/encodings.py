"""Real flights as messages in every encoding, predicates on them, and what Spark SQL selects.

A map has one type of value, so it holds the string columns only and gets predicates on those:

    all        predicates over every column           wide, json, attributes, variant
    strings    predicates over string columns only    map

All encodings are asked in one query, a column each: `routed`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.differential.generate import columns_of, draw_predicates

import palio
import palio.spark
from palio.lab.data import flights

ROWS = 600  # of the year's 336,776 flights, evenly spread
PREDICATES = 75  # Spark compiles each of them: most of the time goes there
FEW = 200  # rows, for what is slow to collect or to shuffle
ATTRIBUTES = pa.list_(pa.struct([(n, pa.string()) for n in ("name", "type", "value")]))
ENCODINGS: dict[str, dict[str, Any]] = {
    "wide": {"columns": flights.SCHEMA.names},
    "json": {"json": "json"},
    "attributes": {"attributes": "attributes"},
    "variant": {"variant": "variant"},
    "map": {"map": "map"},
}


@dataclass(frozen=True)
class Case:
    """The messages, and the predicates by interface of both kinds."""

    messages: pa.Table
    predicates: dict[str, str]
    strings: dict[str, str]

    @property
    def texts(self) -> dict[str, dict[str, str]]:
        """Both kinds, for another process."""
        return {"predicates": self.predicates, "strings": self.strings}

    def for_encoding(self, encoding: str) -> dict[str, str]:
        return self.strings if encoding == "map" else self.predicates


def draw(seed: int, rows: int = ROWS, predicates: int = PREDICATES) -> Case:
    rng = random.Random(seed)
    year = flights.load().table
    table = year.take(pa.array(range(0, len(year), len(year) // rows)[:rows]))
    columns = columns_of(table)
    strings = [c for c in columns if pa.types.is_string(c.type)]
    return Case(
        encoded(table),
        {f"all-{i}": d.spark for i, d in enumerate(draw_predicates(rng, predicates, columns))},
        {f"strings-{i}": d.spark for i, d in enumerate(draw_predicates(rng, predicates, strings))},
    )


def encoded(table: pa.Table) -> pa.Table:
    """The flights with their number and every encoding beside them; a variant is made in Spark."""
    messages = [palio.Message(row) for row in table.to_pylist()]
    strings = [f.name for f in table.schema if pa.types.is_string(f.type)]
    lists = [
        [{"name": a.name, "type": a.type.value, "value": _text(a.value)} for a in m.attributes]
        for m in messages
    ]
    maps = [[(k, v) for k, v in m.items() if k in strings] for m in messages]
    return (
        table.append_column("number", pa.array(range(len(messages)), pa.int64()))
        .append_column("json", pa.array([m.to_json() for m in messages]))
        .append_column("attributes", pa.array(lists, ATTRIBUTES))
        .append_column("map", pa.array(maps, pa.map_(pa.string(), pa.string())))
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def with_variant(frame: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return frame.withColumn("variant", F.to_variant_object(F.struct(*flights.SCHEMA.names)))


def selected(frame: Any, predicates: dict[str, str]) -> list[list[str]]:
    """What Spark SQL's WHERE selects: the interfaces of each row, in the order of the numbers."""
    from pyspark.sql import functions as F  # noqa: N812

    columns = [
        F.coalesce(F.expr(f"({text})"), F.lit(False)).alias(name)
        for name, text in predicates.items()
    ]
    found = frame.select("number", *columns).toArrow().sort_by("number")
    names = list(predicates)
    hits = zip(*(found[name].to_pylist() for name in names), strict=True)
    return [[name for name, hit in zip(names, row, strict=True) if hit] for row in hits]


def routed(frame: Any, case: Case) -> Any:
    """The number of each message, and for every encoding a column of what `forward` finds."""
    tables = {
        kind: palio.ForwardingTable.compile(case.for_encoding(kind)) for kind in ("wide", "map")
    }
    for encoding, options in ENCODINGS.items():
        table = tables["map" if encoding == "map" else "wide"]
        frame = palio.spark.forward(frame, table, into=f"to_{encoding}", **options)
    return frame.select("number", *(f"to_{encoding}" for encoding in ENCODINGS))


def answers(found: pa.Table) -> dict[str, list[list[str]]]:
    """What `routed` found, by encoding, in the order of the numbers."""
    ordered = found.sort_by("number")
    return {encoding: ordered[f"to_{encoding}"].to_pylist() for encoding in ENCODINGS}


def lists_of(rows: Sequence[Any], column: str = "interfaces") -> list[list[str]]:
    """The lists of the rows in the order of the numbers."""
    return [list(row[column]) for row in sorted(rows, key=lambda row: row["number"])]
