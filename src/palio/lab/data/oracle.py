"""An oracle for large tables: brute force over the constraint columns, nothing indexed by value.

    constraints, sorted by name     name a a a b b ...     filter 4 9 9 0 4 ...
    one message                     a = 17, b = 'x'
      for each name                 evaluate every distinct (op, type, value) once
      count by filter               a filter matches when all of its constraints hold

Evaluation is `Constraint.matches`, so what is checked is everything that an engine adds to it. It
takes tens of milliseconds for a message and millions of constraints.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from palio.lab.data.workloads.workload import read_constraint
from palio.model.arrays import Content
from palio.model.predicate import Op

Codes = npt.NDArray[np.int64]


class Oracle:
    """Answers for constraint rows: interface, filter, name, op, type, value."""

    def __init__(self, constraints: pa.Table) -> None:
        columns = {n: _coded(constraints[n]) for n in ("interface", "name", "op", "type", "value")}
        names, places = columns["name"]
        self._reads_missing = str(Op.ABSENT) in columns["op"][1]
        _, filter = np.unique(constraints["filter"].to_numpy(), return_inverse=True)
        sizes = np.bincount(filter)
        order = np.argsort(names, kind="stable")
        self._starts = np.searchsorted(names[order], np.arange(len(places) + 1))
        self._names = {name: code for code, name in enumerate(places)}
        self._filter = filter[order]
        self._sizes = sizes
        owner = np.zeros(len(sizes), np.int64)
        owner[filter] = columns["interface"][0]
        self._owner, self._interfaces = owner, columns["interface"][1]
        self._asked, texts = _distinct(columns, order)
        self._distinct = [read_constraint("x", *text) for text in texts]
        self._known: dict[tuple[type, Content | None], npt.NDArray[np.bool_]] = {}

    def interfaces(self, message: Mapping[str, Content]) -> list[str]:
        """The interfaces that the message goes to, in the order of the rows."""
        counts = np.zeros(len(self._sizes), np.int64)
        for name, code in self._names.items():
            value = message.get(name)
            if value is None and not self._reads_missing:
                continue
            part = slice(self._starts[code], self._starts[code + 1])
            holds = self._truth(value)[self._asked[part]]
            counts += np.bincount(self._filter[part][holds], minlength=len(counts))
        matching = np.unique(self._owner[counts == self._sizes])
        return [self._interfaces[place] for place in matching.tolist()]

    def _truth(self, value: Content | None) -> npt.NDArray[np.bool_]:
        """Which of the distinct (op, type, value) hold for this value (None: it is not there),
        whatever the name."""
        key = (type(value), value)
        if key not in self._known:
            self._known[key] = np.array([c.matches(value) for c in self._distinct], np.bool_)
        return self._known[key]


def _coded(column: pa.ChunkedArray) -> tuple[Codes, list[str]]:
    """Codes by first appearance, and the texts; of NULL, a text of None."""
    array = column.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode(null_encoding="encode")
    indices = array.indices.fill_null(len(array.dictionary))
    codes = np.asarray(indices).astype(np.int64)
    _, first = np.unique(codes, return_index=True)
    known = [*array.dictionary.to_pylist(), None]
    shown = codes[np.sort(first)]
    ranks = np.zeros(len(known), np.int64)
    ranks[shown] = np.arange(len(shown))
    return ranks[codes], [known[code] for code in shown.tolist()]


def _distinct(
    columns: Mapping[str, tuple[Codes, list[str]]], order: Codes
) -> tuple[Codes, list[tuple[str, str, str]]]:
    """Each constraint's number among the distinct (op, type, value), and what those are."""
    (ops, op_texts), (types, type_texts), (values, value_texts) = (
        columns[name] for name in ("op", "type", "value")
    )
    keys = (ops * len(type_texts) + types) * len(value_texts) + values
    distinct, numbers = np.unique(keys[order], return_inverse=True)
    texts = []
    for key in distinct.tolist():
        rest, value = divmod(key, len(value_texts))
        op, type = divmod(rest, len(type_texts))
        texts.append((op_texts[op], type_texts[type], value_texts[value]))
    return numbers, texts
