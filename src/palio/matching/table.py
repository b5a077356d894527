"""The forwarding table: a compiled map from predicates to interfaces.

Each interface has one predicate; several entries for one interface are a disjunction. A table is
immutable, and several threads may forward through it at once. Engines do the matching behind one
small protocol and give identical answers: `pivot` is the default, `counting` the papers' algorithm,
`naive` evaluates every predicate.

    mapping, pairs, Arrow rows ──▶ columns ──▶ engine        messages ──▶ engine ──▶ interfaces
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from palio.errors import InvalidFile, InvalidPredicate, InvalidValue
from palio.matching.columns import Columns, Ints, from_predicates
from palio.matching.constraint_rows import from_constraint_rows
from palio.model.explanation import Explanation, explain
from palio.model.language import parse
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate

if TYPE_CHECKING:
    from palio.matching.engines import Engine

Entries: TypeAlias = (
    Mapping[str, Predicate | str] | Iterable[tuple[str, Predicate | str]] | pa.Table | Columns
)


# Engines are loaded when they are asked for: kernels and numba take seconds.
def _pivot(columns: Columns) -> Engine:
    from palio.matching.engines import PivotEngine

    return PivotEngine.compile(columns)


def _counting(columns: Columns, **options: Any) -> Engine:
    from palio.matching.counting import CountingEngine

    return CountingEngine(columns, **options)


def _naive(columns: Columns) -> Engine:
    from palio.matching.naive import NaiveEngine

    return NaiveEngine(columns)


ENGINES: dict[str, Callable[..., Engine]] = {
    "pivot": _pivot,
    "counting": _counting,
    "naive": _naive,
}


def _string_array(texts: list[str]) -> Any:
    """An Arrow array of strings, without pa.array, which imports pandas where it is installed."""
    parts = [text.encode() for text in texts]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    blob = pa.py_buffer(b"".join(parts))
    if offsets[-1] < 2**31:
        return pa.StringArray.from_buffers(len(parts), pa.py_buffer(offsets.astype(np.int32)), blob)
    return pa.LargeStringArray.from_buffers(len(parts), pa.py_buffer(offsets), blob)


@dataclass(frozen=True, slots=True)
class _History:
    """What a version is made of: the base it shares, and what has changed since."""

    base: Engine
    names: Any
    gone: Ints
    added: dict[str, Predicate]


class ForwardingTable:
    """Predicates compiled for forwarding.

    >>> table = ForwardingTable.compile({"ann": "price < 500", "bob": "dest = 'MXP'"})
    >>> table.forward({"price": 450})
    ['ann']
    """

    def __init__(self, engine: Engine, names: Any, history: _History | None = None) -> None:
        self._engine = engine
        self._names = names  # by position; those of removed interfaces are still there
        self._history = history or _History(engine, names, np.zeros(len(names), bool), {})

    @classmethod
    def compile(cls, entries: Entries, engine: str = "pivot", **options: Any) -> ForwardingTable:
        """A table from a mapping or pairs of interface and predicate (or its SQL text), or from an
        Arrow table of constraints (interface, filter, name, op, type, value), or from columns.

        Engines: `pivot`, the default; `counting`, the papers' (options `variant`, "2003" or
        "2001", and `rounds` of pre-processing); `naive`, the oracle.
        """
        if engine not in ENGINES:
            raise InvalidPredicate(f"no engine {engine!r}; there are {', '.join(ENGINES)}")
        if isinstance(entries, pa.Table | pa.RecordBatch):
            rows = pa.table(entries) if isinstance(entries, pa.RecordBatch) else entries
            columns = from_constraint_rows(rows)
        elif isinstance(entries, Columns):
            columns = entries
        else:
            pairs = entries.items() if isinstance(entries, Mapping) else entries
            columns = from_predicates((name, parse(p)) for name, p in pairs)
        names = _string_array(columns.interfaces)
        made = cls(ENGINES[engine](columns, **options), names)
        made._share(columns.interfaces, {name: i for i, name in enumerate(columns.interfaces)})
        return made

    def _share(self, listed: list[str], positions: dict[str, int]) -> None:
        """Take over what is known of the base's names, which is costly to make."""
        self.__dict__["_listed"] = listed
        self.__dict__["_positions"] = positions

    @cached_property
    def interfaces(self) -> tuple[str, ...]:
        """The interfaces in the order in which they were given."""
        names = self._names.to_pylist()
        return tuple(n for n, live in zip(names, self._live.tolist(), strict=True) if live)

    @cached_property
    def _live(self) -> Ints:
        """Which positions have an interface."""
        added = len(self._names) - len(self._history.gone)
        live = np.concatenate([~self._history.gone, np.ones(added, bool)])
        for name in self._history.added:
            position = self._position(name)
            if position is not None:
                live[position] = True
        return live

    @cached_property
    def _listed(self) -> list[str]:
        """The names of the base by position."""
        return list(self._history.names.to_pylist())

    @cached_property
    def _fresh(self) -> list[str]:
        """The names of interfaces that came after the base."""
        return [name for name in self._history.added if self._position(name) is None]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self._listed)}

    def _position(self, name: str) -> int | None:
        """The position of an interface of the base."""
        return self._positions.get(name)

    def forward(self, message: Message | Mapping[str, object]) -> list[str]:
        """The interfaces that get the message, in the order in which they were given."""
        found = self._engine.match_one(as_message(message)).tolist()
        names, count = self._listed, len(self._listed)
        if not self._history.added:
            return [names[i] for i in found]
        return [names[i] if i < count else self._fresh[i - count] for i in found]

    def forward_batch(
        self,
        rows: pa.Table | pa.RecordBatch,
        *,
        json: str | None = None,
        map: str | None = None,
        attributes: str | None = None,
        ids: bool = False,
    ) -> pa.ListArray:
        """The interfaces of each row, a list a row: names, or positions in `interfaces`.

        Every column is an attribute, and NULL means that it is not there. Or the messages are in
        one column: JSON objects (`json="message"`), a map, or a list of structs with name, type
        and value (`attributes`).
        """
        chosen = {"json": json, "map": map, "attributes": attributes}
        given = [(layout, column) for layout, column in chosen.items() if column is not None]
        if len(given) > 1:
            raise InvalidValue("the messages are in one column: json, map or attributes, not two")
        layout, column = given[0] if given else ("wide", "")
        if column and column not in rows.schema.names:
            raise InvalidValue(
                f"no column {column!r}; there are {', '.join(rows.schema.names) or 'none'}"
            )
        return self._lists(*self._engine.match_rows(rows, layout, column), ids)

    def _lists(self, offsets: Any, found: Any, ids: bool) -> pa.ListArray:
        if ids:
            order = np.cumsum(self._live) - 1 if not self._live.all() else None
            values = pa.array(found if order is None else order[found], pa.int32())
        else:
            values = self._names.take(pa.array(found, pa.int32()))
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        kind = pa.ListArray if offsets[-1] < 2**31 else pa.LargeListArray
        width = np.int32 if kind is pa.ListArray else np.int64
        return kind.from_arrays(pa.array(offsets.astype(width)), values)

    def save(self, path: str | Path) -> None:
        """Write the table to one file, which `load` maps into memory."""
        from palio.matching import storage
        from palio.matching.engines import PivotEngine

        if not isinstance(self._engine, PivotEngine):
            raise InvalidFile("only tables of the engine pivot are saved; compact an updated one")
        storage.save(Path(path), self._engine, self._names)

    @classmethod
    def load(cls, path: str | Path) -> ForwardingTable:
        """A table from its file; a damaged, cut or newer file is refused."""
        from palio.matching import storage

        return cls(*storage.load(Path(path)))

    def predicate(self, interface: str) -> Predicate:
        """The predicate of an interface, as it was compiled."""
        return next(self._engine.predicates([self._require(interface)]))

    def _require(self, interface: str) -> int:
        position = self._position(interface)
        if position is None and interface in self._history.added:
            position = len(self._listed) + self._fresh.index(interface)
        if position is None or not self._live[position]:
            raise InvalidPredicate(f"the table has no interface {interface!r}")
        return position

    def explain(
        self, message: Message | Mapping[str, object], interfaces: Iterable[str] | None = None
    ) -> dict[str, Explanation]:
        """For each interface, or for those named, why it gets the message or not."""
        known = as_message(message)
        names = self.interfaces if interfaces is None else tuple(interfaces)
        return {name: explain(self.predicate(name), known) for name in names}

    def updated(
        self, add: Mapping[str, Predicate | str] | None = None, remove: Iterable[str] = ()
    ) -> ForwardingTable:
        """A new version: interfaces removed, then predicates added; this one stays as it is.

        Adding to an interface that is there makes a disjunction. New interfaces come last. The
        versions share what was compiled; `compacted` makes one table of it again.

        >>> table = ForwardingTable.compile({"ann": "x > 1", "bob": "x > 2"})
        >>> table.updated(add={"cy": "x = 3"}, remove=["ann"]).forward({"x": 3})
        ['bob', 'cy']
        """
        from palio.matching.updates import UpdatedEngine

        gone, added = self._history.gone.copy(), dict(self._history.added)
        for name in remove:
            self._require(name)
            added.pop(name, None)
            position = self._position(name)
            if position is not None:
                gone[position] = True
        for name, predicate in (add or {}).items():
            parsed = parse(predicate)
            added[name] = added[name] | parsed if name in added else parsed
        base, names = self._history.base, self._history.names
        fresh = [name for name in added if self._position(name) is None]
        place = {name: len(names) + i for i, name in enumerate(fresh)}
        positions = [place[n] if n in place else self._positions[n] for n in added]
        made = ForwardingTable(
            UpdatedEngine(base, gone, added, positions),
            pa.chunked_array([names, pa.array(fresh, names.type)]) if fresh else names,
            _History(base, names, gone, added),
        )
        made._share(self._listed, self._positions)
        return made

    def compacted(self) -> ForwardingTable:
        """The same predicates in one new table, without delta and tombstones."""
        live = np.flatnonzero(self._live)
        compiled = self._engine.predicates(int(i) for i in live)
        return ForwardingTable.compile(zip(self.interfaces, compiled, strict=True))
