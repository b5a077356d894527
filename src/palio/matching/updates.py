"""Updates as a layer over an untouched table: a small delta, and tombstones over the base.

    position    0  1  2  3  4 | 5  6          an interface keeps its position until compaction
    base        a  b  c  d  e |               compiled long ago, shared by all versions
    gone           x     x    |               tombstones
    delta             +       | f  g          added since; may add to an interface of the base

A version is immutable: an update makes a new one that shares the base, so readers of the old one
are never disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from palio.matching.columns import Ints, from_predicates
from palio.matching.engines import Engine, PivotEngine
from palio.model.predicate import Predicate
from palio.model.values import Value


class UpdatedEngine:
    """A base engine with tombstones, and an engine for what was added."""

    def __init__(
        self, base: Engine, gone: Ints, added: Mapping[str, Predicate], positions: Sequence[int]
    ) -> None:
        self._base, self._gone = base, gone
        self._added = tuple(added.values())
        self._delta = PivotEngine.compile(from_predicates(added.items())) if added else None
        self._positions = np.array(positions, np.int32)

    def match_one(self, message: Mapping[str, Value]) -> Ints:
        found = self._base.match_one(message)
        found = found[~self._gone[found]]
        if self._delta is None:
            return found
        return np.union1d(found, self._positions[self._delta.match_one(message)])

    def match(self, messages: Sequence[Mapping[str, Value]]) -> tuple[Ints, Ints]:
        return self._merged(lambda engine: engine.match(messages))

    def match_rows(self, rows: Any, layout: str, column: str) -> tuple[Ints, Ints]:
        return self._merged(lambda engine: engine.match_rows(rows, layout, column))

    def _merged(self, ask: Callable[[Any], tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
        """Both answers as one: sorted within each message, nothing twice, nothing gone."""
        offsets, found = ask(self._base)
        count = len(offsets) - 1
        rows = np.repeat(np.arange(count), np.diff(offsets))
        kept = ~self._gone[found]
        rows, found = rows[kept], found[kept]
        if self._delta is not None:
            more, extra = ask(self._delta)
            rows = np.concatenate([rows, np.repeat(np.arange(count), np.diff(more))])
            found = np.concatenate([found, self._positions[extra]])
            pairs = np.unique(rows << 32 | found)
            rows, found = pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.int32)
        return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]), found

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        own = {int(p): self._added[i] for i, p in enumerate(self._positions)}
        for i in interfaces:
            known = Predicate(())
            if i < len(self._gone) and not self._gone[i]:
                known = next(self._base.predicates([i]))
            yield known | own[i] if i in own else known
