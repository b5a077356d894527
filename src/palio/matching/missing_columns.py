"""Attributes that predicates ask for and that no column of wide rows can have: said once for a table."""

from __future__ import annotations

import warnings

import pyarrow as pa

from palio.matching.expressions import TableExpressions
from palio.model.near_names import missing_names


def warn_of_missing(asked: TableExpressions, schema: pa.Schema, stacklevel: int = 3) -> None:
    """Warn of attributes that are NULL in every row; what a map may have among its keys is not."""
    there, maps = _attributes(schema)
    missing = [name for name in asked.plain | asked.read if name not in there]
    missing = sorted(name for name in missing if maps.isdisjoint(_outer(name)))
    if missing and there:
        warnings.warn(
            f"predicates ask about {missing_names(missing, there)}, and the rows have no such column: "
            "for every row it is NULL",
            stacklevel=stacklevel,
        )


def _attributes(schema: pa.Schema) -> tuple[set[str], set[str]]:
    """The names of columns, with the fields of structs, and which of them are maps."""
    there: set[str] = set()
    maps: set[str] = set()
    left = [(field.name, field.type) for field in schema]
    while left:
        name, kind = left.pop()
        there.add(name)
        if pa.types.is_map(kind):
            maps.add(name)
        elif pa.types.is_struct(kind):
            fields = (kind.field(i) for i in range(kind.num_fields))
            left += [(f"{name}.{field.name}", field.type) for field in fields]
    return there, maps


def _outer(name: str) -> list[str]:
    """What it may be within: a.b and a of a.b.c."""
    parts = name.split(".")
    return [".".join(parts[:at]) for at in range(1, len(parts))]
