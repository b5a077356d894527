"""Flights as messages in every encoding, predicates on them, and what Spark SQL selects.

Some encodings cannot say everything: a map has one type of value, and a variant that was parsed from
JSON has no instants. So predicates come in three kinds, and each encoding gets those that it can
answer:

    all        over every column           wide, json, attributes
    timeless   without `scheduled`         and variant
    strings    over string columns only    and map
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.differential.generate import columns_of, draw_predicates

import palio
from palio.lab import flights

ROWS = 250
COLUMNS_MAX = 50  # predicates in one query
ATTRIBUTES = pa.list_(pa.struct([(n, pa.string()) for n in ("name", "type", "value")]))
ENCODINGS: dict[str, dict[str, Any]] = {
    "wide": {"columns": flights.SCHEMA.names},
    "json": {"json": "json"},
    "attributes": {"attributes": "attributes"},
    "variant": {"variant": "variant"},
    "map": {"map": "map"},
}
KINDS = {"wide": "all", "json": "all", "attributes": "all", "variant": "timeless", "map": "strings"}


@dataclass(frozen=True)
class Case:
    """Predicates by interface; the name of an interface begins with the kind of its predicate."""

    messages: pa.Table
    predicates: dict[str, str]

    def for_encoding(self, encoding: str) -> dict[str, str]:
        kinds = ("all", "timeless", "strings")
        allowed = kinds[kinds.index(KINDS[encoding]) :]
        return {k: v for k, v in self.predicates.items() if k.partition("-")[0] in allowed}


def draw(seed: int) -> Case:
    rng = random.Random(seed)
    table = flights.generate(ROWS, seed)
    columns = columns_of(table)
    timeless = [c for c in columns if c.name != "scheduled"]
    strings = [c for c in columns if pa.types.is_string(c.type)]
    texts: dict[str, str] = {}
    for kind, chosen, count in (
        ("all", columns, 200),
        ("timeless", timeless, 150),
        ("strings", strings, 150),
    ):
        for i, drawn in enumerate(draw_predicates(rng, count, chosen)):
            texts[f"{kind}-{i}"] = drawn.spark
    return Case(encoded(table), texts)


def encoded(table: pa.Table) -> pa.Table:
    """The flights with their number and every encoding beside them; a variant is made in Spark."""
    messages = [palio.Message(row) for row in table.to_pylist()]
    strings = [f.name for f in table.schema if pa.types.is_string(f.type)]
    lists = [
        [{"name": a.name, "type": a.type.value, "value": _text(a.value)} for a in m.attributes]
        for m in messages
    ]
    timeless = [palio.Message({k: v for k, v in m.items() if k != "scheduled"}) for m in messages]
    maps = [[(k, v) for k, v in m.items() if k in strings] for m in messages]
    return (
        table.append_column("number", pa.array(range(len(messages)), pa.int64()))
        .append_column("json", pa.array([m.to_json() for m in messages]))
        .append_column("timeless", pa.array([m.to_json() for m in timeless]))
        .append_column("attributes", pa.array(lists, ATTRIBUTES))
        .append_column("map", pa.array(maps, pa.map_(pa.string(), pa.string())))
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def selected(frame: Any, predicates: dict[str, str]) -> list[list[str]]:
    """What Spark SQL's WHERE selects: the interfaces of each row, in the order of the numbers."""
    from pyspark.sql import functions as F  # noqa: N812

    found: dict[int, list[str]] = {}
    names = list(predicates)
    for start in range(0, len(names), COLUMNS_MAX):
        chunk = names[start : start + COLUMNS_MAX]
        columns = [
            F.coalesce(F.expr(f"({predicates[name]})"), F.lit(False)).alias(name) for name in chunk
        ]
        for row in frame.select("number", *columns).collect():
            kept = [name for name, hit in zip(chunk, row[1:], strict=True) if hit]
            found.setdefault(row[0], []).extend(kept)
    return [found[number] for number in sorted(found)]


def restricted(lists: Sequence[Sequence[str]], predicates: dict[str, str]) -> list[list[str]]:
    """What was selected by these predicates only."""
    return [[name for name in names if name in predicates] for names in lists]


def with_variant(frame: Any) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return frame.withColumn("variant", F.parse_json("timeless"))


def lists_of(rows: Sequence[Any], column: str = "interfaces") -> list[list[str]]:
    """The lists of the rows in the order of the numbers."""
    return [list(row[column]) for row in sorted(rows, key=lambda row: row["number"])]
