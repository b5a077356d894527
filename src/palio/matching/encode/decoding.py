"""From columns back to predicates: for the naive engine, and for explanations of counting.

The predicates mean what the encoded ones meant. An integral float comes back as an int.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.columns import ConstraintColumns
from palio.model.predicate import Constraint, Filter, Op, Predicate
from palio.model.ranges import value_from_key
from palio.model.values import Value

_OPS = {code: op for op, code in codes.OP.items()}
_TYPES = {code: type for type, code in codes.DOMAIN.items()}


class Decoder:
    """Makes constraints of codes and keys."""

    def __init__(self, names: list[str], strings: Any, sets: tuple[Any, Any, Any]) -> None:
        self._names, self._strings = names, strings
        self._set_at, self._set_split, self._set_keys = sets

    def constraint(self, name: int, op: int, domain: int, key: int) -> Constraint:
        kind, shown = _OPS[op], self._names[name]
        if kind is Op.ABSENT or domain == codes.EVERY:
            return Constraint(shown, kind)
        if kind is Op.ANY:
            return Constraint(shown, kind, type=_TYPES[domain])
        if kind is not Op.IN:
            return Constraint(shown, kind, self.value(domain, key))
        begin, split, end = self._set_at[key], self._set_split[key], self._set_at[key + 1]
        members = [self.value(domain, int(k)) for k in self._set_keys[begin:split]]
        members += [self.value(codes.FLOAT, int(k)) for k in self._set_keys[split:end]]
        return Constraint(shown, kind, members)

    def value(self, domain: int, key: int) -> Value:
        if domain == codes.STRING:
            return bytes(self._strings[key]).decode()
        return key if domain == codes.INT else value_from_key(_TYPES[domain], key)


def column_predicates(columns: ConstraintColumns) -> Iterator[Predicate]:
    """The predicates of all interfaces, out of columns."""
    sets = (columns.sets.start, columns.sets.split, columns.sets.keys)
    decoder = Decoder(columns.names, columns.strings, sets)
    order = np.argsort(columns.owner, kind="stable")
    first = np.searchsorted(columns.owner[order], np.arange(len(columns.interfaces) + 1))
    rows = np.searchsorted(columns.filter, np.arange(columns.filters + 1))
    for i in range(len(columns.interfaces)):
        filters = []
        for f in order[first[i] : first[i + 1]]:
            parts = (
                decoder.constraint(
                    *(int(c[row]) for c in (columns.name, columns.op, columns.domain, columns.key))
                )
                for row in range(rows[f], rows[f + 1])
            )
            filters.append(Filter(tuple(parts)))
        yield Predicate(tuple(filters))
