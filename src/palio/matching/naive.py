"""The naive engine: evaluate every predicate. It is the oracle, so it stays tiny."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from palio.matching.encode.columns import ConstraintColumns, Ints, from_predicates
from palio.matching.encode.decoding import column_predicates
from palio.matching.expressions import FailureCounts, OnFailure, TableExpressions
from palio.matching.statistics import Reduction, Stats, no_statistics
from palio.model import notation
from palio.model.arrays import Content
from palio.model.expressions.names import is_computed, names_read, value_of
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate
from palio.model.rows import messages


class NaiveEngine:
    """Predicates in order; a match is a position in that order."""

    def __init__(self, columns: ConstraintColumns) -> None:
        self._predicates = tuple(column_predicates(columns))
        self._failures = FailureCounts()

    def columns(self, interfaces: Any) -> ConstraintColumns:
        return from_predicates(zip(map(str, interfaces), self._predicates, strict=True))

    def stats(self, sample: Any, reduction: Reduction | None) -> Stats:
        raise no_statistics("naive")

    def expressions(self) -> TableExpressions:
        """None: predicates compute what they need, and what fails is counted."""
        return TableExpressions(failures=dict(self._failures))

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        return (self._predicates[i] for i in interfaces)

    def match_one(
        self,
        message: Mapping[str, Content],
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> Ints:
        known = as_message(message)
        asked = range(len(self._predicates)) if among is None else among.tolist()
        if on_failure is not None:
            self._tell_failures(known, asked, 0, on_failure)
        found = [i for i in asked if any(f.matches(known, self._fail) for f in self._predicates[i])]
        return np.array(found, np.int32)

    def _fail(self, name: str, _reason: str) -> None:
        self._failures.add(name, 1)

    def _tell_failures(
        self, message: Message, asked: Iterable[int], row: int, on_failure: OnFailure
    ) -> None:
        names = {c.name for i in asked for f in self._predicates[i] for c in f}
        for name in sorted(filter(is_computed, names)):
            reasons: list[str] = []
            value_of(name, message.read, reasons.append)
            for reason in reasons:
                on_failure(name, [row], reason)

    def match_text(
        self, text: Any, among: Ints | None = None, on_failure: OnFailure | None = None
    ) -> Ints:
        return self.match_one(Message.from_json(bytes(text)), among, on_failure)

    def match_rows(
        self,
        rows: Any,
        layout: str,
        column: str,
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> tuple[Ints, Ints]:
        constraints = (c for p in self._predicates for f in p for c in f)
        read = names_read({c.name for c in constraints})
        found = list(row_messages(rows, layout, column, read))
        if on_failure is not None:
            asked = range(len(self._predicates)) if among is None else among.tolist()
            for row, message in enumerate(found):
                self._tell_failures(message, asked, row, on_failure)
        return self.match(found, among)

    def match(
        self, messages: Sequence[Mapping[str, Content]], among: Ints | None = None
    ) -> tuple[Ints, Ints]:
        found = [self.match_one(message, among) for message in messages]
        offsets = np.cumsum([0, *map(len, found)]).astype(np.int64)
        return offsets, np.concatenate(found) if found else np.empty(0, np.int32)


def row_messages(
    rows: Any, layout: str, column: str, asked: Collection[str] | None = None
) -> Iterator[Message]:
    """Arrow rows as messages, one Python object each; `asked` as for `rows.messages`."""
    if layout in ("wide", "computed"):
        yield from messages(rows, asked)
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
