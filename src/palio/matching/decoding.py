"""From columns back to predicates: for explanations, the naive engine, and updates.

The predicates mean what the compiled ones meant; an integral float comes back as an int.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from palio.matching import codes
from palio.matching.columns import Columns
from palio.model.predicate import Constraint, Filter, Op, Predicate
from palio.model.ranges import value_from_key
from palio.model.values import Value

_OPS = {code: op for op, code in codes.OP.items()}
_TYPES = {code: type for type, code in codes.DOMAIN.items()}


def predicates(columns: Columns, interfaces: Iterable[int] | None = None) -> Iterator[Predicate]:
    """The predicates of the interfaces at these positions; of all by default."""
    order = np.argsort(columns.owner, kind="stable")
    first = np.searchsorted(columns.owner[order], np.arange(len(columns.interfaces) + 1))
    rows = np.searchsorted(columns.filter, np.arange(columns.filters + 1))
    for i in range(len(columns.interfaces)) if interfaces is None else interfaces:
        filters = order[first[i] : first[i + 1]]
        yield Predicate(tuple(_filter(columns, rows[f], rows[f + 1]) for f in filters))


def _filter(columns: Columns, begin: int, end: int) -> Filter:
    return Filter(tuple(_constraint(columns, row) for row in range(begin, end)))


def _constraint(columns: Columns, row: int) -> Constraint:
    name, op = columns.names[columns.name[row]], _OPS[int(columns.op[row])]
    domain, key = int(columns.domain[row]), int(columns.key[row])
    if op is Op.ABSENT or domain == codes.EVERY:
        return Constraint(name, op)
    if op is Op.ANY:
        return Constraint(name, op, type=_TYPES[domain])
    if op is not Op.IN:
        return Constraint(name, op, _value(columns, domain, key))
    sets = columns.sets
    split = int(sets.split[key])
    members: list[Any] = [
        _value(columns, domain, int(k)) for k in sets.keys[sets.start[key] : split]
    ]
    members += [
        _value(columns, codes.FLOAT, int(k)) for k in sets.keys[split : sets.start[key + 1]]
    ]
    return Constraint(name, op, members)


def _value(columns: Columns, domain: int, key: int) -> Value:
    if domain == codes.STRING:
        return columns.strings[key].decode()
    return value_from_key(_TYPES[domain], key) if domain != codes.INT else key
