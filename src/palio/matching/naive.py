"""The naive engine: evaluate every predicate. It is the oracle, so it stays tiny."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from palio.matching.columns import Columns, Ints
from palio.matching.decoding import column_predicates
from palio.model.message import as_message
from palio.model.predicate import Predicate
from palio.model.values import Value


class NaiveEngine:
    """Predicates in order; a match is a position in that order."""

    def __init__(self, columns: Columns) -> None:
        self._predicates = tuple(column_predicates(columns))

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        return (self._predicates[i] for i in interfaces)

    def match_one(self, message: Mapping[str, Value]) -> Ints:
        known = as_message(message)
        return np.array([i for i, p in enumerate(self._predicates) if p.matches(known)], np.int32)

    def match(self, messages: Sequence[Mapping[str, Value]]) -> tuple[Ints, Ints]:
        found = [self.match_one(message) for message in messages]
        offsets = np.cumsum([0, *map(len, found)]).astype(np.int64)
        return offsets, np.concatenate(found) if found else np.empty(0, np.int32)
