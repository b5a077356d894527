"""The naive engine: evaluate every predicate. It is the oracle, so it stays tiny."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from palio.matching.encode.columns import ConstraintColumns, Ints, from_predicates
from palio.matching.encode.decoding import column_predicates
from palio.matching.statistics import Reduction, Stats, no_statistics
from palio.model import notation
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate
from palio.model.rows import messages
from palio.model.values import Value


class NaiveEngine:
    """Predicates in order; a match is a position in that order."""

    def __init__(self, columns: ConstraintColumns) -> None:
        self._predicates = tuple(column_predicates(columns))

    def columns(self, interfaces: Any) -> ConstraintColumns:
        return from_predicates(zip(map(str, interfaces), self._predicates, strict=True))

    def stats(self, sample: Any, reduction: Reduction | None) -> Stats:
        raise no_statistics("naive")

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        return (self._predicates[i] for i in interfaces)

    def match_one(self, message: Mapping[str, Value], among: Ints | None = None) -> Ints:
        known = as_message(message)
        asked = range(len(self._predicates)) if among is None else among.tolist()
        return np.array([i for i in asked if self._predicates[i].matches(known)], np.int32)

    def match_text(self, text: Any, among: Ints | None = None) -> Ints:
        return self.match_one(Message.from_json(bytes(text)), among)

    def match_rows(
        self, rows: Any, layout: str, column: str, among: Ints | None = None
    ) -> tuple[Ints, Ints]:
        return self.match(list(row_messages(rows, layout, column)), among)

    def match(
        self, messages: Sequence[Mapping[str, Value]], among: Ints | None = None
    ) -> tuple[Ints, Ints]:
        found = [self.match_one(message, among) for message in messages]
        offsets = np.cumsum([0, *map(len, found)]).astype(np.int64)
        return offsets, np.concatenate(found) if found else np.empty(0, np.int32)


def row_messages(rows: Any, layout: str, column: str) -> Iterator[Message]:
    """Arrow rows as messages, one Python object each."""
    if layout == "wide":
        yield from messages(rows)
        return
    for value in rows.column(column).to_pylist():
        if layout == "json":
            yield Message.from_json(value) if value is not None else Message()
        elif layout == "map":
            yield Message(dict(value or ()))
        else:
            yield notation.parse_message(
                "\n".join(
                    f"{a['type']} {json.dumps(a['name'])} = {json.dumps(a['value'])}"
                    if a["type"] == "string"
                    else f"{a['type']} {json.dumps(a['name'])} = {a['value']}"
                    for a in value or ()
                )
            )
