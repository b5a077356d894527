"""Filters of a query as part of the subscription's predicate, so that less is sent.

A column is NULL where an attribute does not fit it, so a filter is pushed only when the predicate
selects at least what the filter does. Spark applies every filter to the rows that it gets, so that
nothing depends on the two being the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pyspark.sql import datasource
from pyspark.sql.datasource import Filter, In, IsNotNull, Not

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.operators import OPPOSITE, Op
from palio.model.predicate import Constraint, Predicate

_OPS: dict[type[Filter], Op] = {
    datasource.EqualTo: Op.EQ,
    datasource.EqualNullSafe: Op.EQ,
    datasource.GreaterThan: Op.GT,
    datasource.GreaterThanOrEqual: Op.GE,
    datasource.LessThan: Op.LT,
    datasource.LessThanOrEqual: Op.LE,
    datasource.StringStartsWith: Op.PREFIX,
    datasource.StringEndsWith: Op.SUFFIX,
    datasource.StringContains: Op.CONTAINS,
}


def narrowed(predicate: str, filters: Iterable[Filter], attributes: frozenset[str]) -> str:
    """The predicate, and what of the filters can be asked of the broker."""
    found = [c for f in filters if (c := _constraint(f, attributes)) is not None]
    if not found:
        return predicate
    try:
        return str(parse(f"({predicate}) AND ({Predicate.of(*found)})"))
    except PalioError:  # too large together: Spark filters
        return predicate


def _constraint(filter: Filter, attributes: frozenset[str]) -> Constraint | None:
    """The constraint that a filter puts on one attribute; None: it is left to Spark."""
    is_negated = isinstance(filter, Not)
    inner = filter.child if isinstance(filter, Not) else filter
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    if len(path) != 1 or path[0] not in attributes:
        return None
    if isinstance(inner, IsNotNull):
        return None if is_negated else Constraint(path[0], Op.ANY)
    value: Any = getattr(inner, "value", None)
    values: tuple[Any, ...] = value if isinstance(inner, In) else (value,)
    if not all(isinstance(v, bool | int | float | str | datetime) and v == v for v in values):
        return None
    try:
        if isinstance(inner, In):
            return None if is_negated else Constraint(path[0], Op.IN, list(values))
        op = _OPS.get(type(inner))
        if op is None or (is_negated and isinstance(inner, datasource.EqualNullSafe)):
            return None
        return Constraint(path[0], OPPOSITE[op] if is_negated else op, value)
    except PalioError:
        return None
