"""The forwarding table: a compiled map from predicates to interfaces.

Each interface has one predicate; several entries for one interface are a disjunction. A table is
immutable, and several threads may forward through it at once. Engines do the matching behind one
small protocol and give identical answers: `pivot` is the default, `counting` the papers' algorithm,
`naive` evaluates every predicate.

    mapping, pairs, Arrow rows ──▶ columns ──▶ engine        messages ──▶ engine ──▶ interfaces
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from palio.errors import InvalidFile, InvalidPredicate, InvalidValue
from palio.matching import storage
from palio.matching.columns import from_predicates
from palio.matching.constraint_rows import from_constraint_rows
from palio.matching.counting import CountingEngine
from palio.matching.engines import Engine, PivotEngine
from palio.matching.naive import NaiveEngine
from palio.model.explanation import Explanation, explain
from palio.model.language import parse
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate

Entries: TypeAlias = (
    Mapping[str, Predicate | str] | Iterable[tuple[str, Predicate | str]] | pa.Table
)

ENGINES: dict[str, Callable[..., Engine]] = {
    "pivot": PivotEngine.compile,
    "counting": CountingEngine,
    "naive": NaiveEngine,
}


class ForwardingTable:
    """Predicates compiled for forwarding.

    >>> table = ForwardingTable.compile({"ann": "price < 500", "bob": "dest = 'MXP'"})
    >>> table.forward({"price": 450})
    ['ann']
    """

    def __init__(self, engine: Engine, interfaces: pa.StringArray) -> None:
        self._engine = engine
        self._interfaces = interfaces

    @classmethod
    def compile(cls, entries: Entries, engine: str = "pivot", **options: Any) -> ForwardingTable:
        """A table from a mapping or pairs of interface and predicate (or its SQL text), or from an
        Arrow table of constraints (interface, filter, name, op, type, value).

        Engines: `pivot`, the default; `counting`, the papers' (options `variant`, "2003" or
        "2001", and `rounds` of pre-processing); `naive`, the oracle.
        """
        if engine not in ENGINES:
            raise InvalidPredicate(f"no engine {engine!r}; there are {', '.join(ENGINES)}")
        if isinstance(entries, pa.Table | pa.RecordBatch):
            rows = pa.table(entries) if isinstance(entries, pa.RecordBatch) else entries
            columns = from_constraint_rows(rows)
        else:
            pairs = entries.items() if isinstance(entries, Mapping) else entries
            columns = from_predicates((name, parse(p)) for name, p in pairs)
        return cls(ENGINES[engine](columns, **options), pa.array(columns.interfaces, pa.string()))

    @cached_property
    def interfaces(self) -> tuple[str, ...]:
        """The interfaces in the order in which they were given."""
        return tuple(self._interfaces.to_pylist())

    def forward(self, message: Message | Mapping[str, object]) -> list[str]:
        """The interfaces that get the message, in the order in which they were given."""
        names = self.interfaces
        return [names[i] for i in self._engine.match_one(as_message(message)).tolist()]

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
        values = pa.array(found, pa.int32())
        if not ids:
            values = self._interfaces.take(values)
        kind = pa.ListArray if offsets[-1] < 2**31 else pa.LargeListArray
        width = np.int32 if kind is pa.ListArray else np.int64
        return kind.from_arrays(pa.array(offsets.astype(width)), values)

    def save(self, path: str | Path) -> None:
        """Write the table to one file, which `load` maps into memory."""
        if not isinstance(self._engine, PivotEngine):
            raise InvalidFile("only tables of the engine pivot are saved")
        storage.save(Path(path), self._engine, self._interfaces)

    @classmethod
    def load(cls, path: str | Path) -> ForwardingTable:
        """A table from its file; a damaged, cut or newer file is refused."""
        return cls(*storage.load(Path(path)))

    def predicate(self, interface: str) -> Predicate:
        """The predicate of an interface, as it was compiled."""
        try:
            position = self.interfaces.index(interface)
        except ValueError:
            raise InvalidPredicate(f"the table has no interface {interface!r}") from None
        return next(self._engine.predicates([position]))

    def explain(
        self, message: Message | Mapping[str, object], interfaces: Iterable[str] | None = None
    ) -> dict[str, Explanation]:
        """For each interface, or for those named, why it gets the message or not."""
        known = as_message(message)
        names = self.interfaces if interfaces is None else tuple(interfaces)
        return {name: explain(self.predicate(name), known) for name in names}
