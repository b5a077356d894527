"""Expressions of attributes compute what DuckDB computes, where its functions mean the same.

docs/reference/functions.md says where they do not. One text is read by both: of the language that Spark
and DuckDB share.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.differential.constant_drawing import UNITS
from tests.differential.expression_drawing import draw_rows

from palio.model.expressions.evaluation import value
from palio.model.expressions.parsing import expression_of_text

DEPTH = 3
AT_ONCE = 100
TYPES = {
    "b": pa.bool_(), "i": pa.int64(), "j": pa.int64(), "x": pa.float64(), "y": pa.float64(),
    "s": pa.string(), "t": pa.string(), "at_": pa.timestamp("us"), "due": pa.timestamp("us"),
}  # fmt: skip


class SharedDrawing:
    """Draws what both read alike."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def any(self, depth: int) -> str:
        kinds = [self.integer, self.double, self.text, self.boolean, self.boolean, self.time]
        return self._random.choice(kinds)(depth)

    def _drawn(self, depth: int, kind: Callable[[int], str]) -> str:
        return kind(self._random.randint(0, depth - 1))

    def _one(self, *choices: Callable[[], str]) -> str:
        return self._random.choice(choices)()

    def _chosen(self, depth: int, kind: Callable[[int], str]) -> str:
        def one() -> str:
            return self._drawn(depth, kind)

        def condition() -> str:
            return self._drawn(depth, self.boolean)

        return self._one(
            lambda: f"coalesce({one()}, {one()})",
            lambda: f"nullif({one()}, {one()})",
            lambda: f"CASE WHEN {condition()} THEN {one()} WHEN {condition()} THEN {one()} END",
            lambda: f"CASE {one()} WHEN {one()} THEN {one()} ELSE {one()} END",
            lambda: f"greatest({one()}, {one()})",
            lambda: f"least({one()}, {one()})",
        )

    def integer(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0:
            return pick(["i", "j", "i", "j", f"CAST({pick([0, 1, 3, 7, 250])} AS BIGINT)"])
        return self._one(
            lambda: (
                f"({self._drawn(depth, self.integer)} {pick('+-*%')} {self._drawn(depth, self.integer)})"
            ),
            lambda: f"(- {self._drawn(depth, self.integer)})",
            lambda: f"abs({self._drawn(depth, self.integer)})",
            lambda: (
                f"({self._drawn(depth, self.integer)} {pick('&|')} {self._drawn(depth, self.integer)})"
            ),
            lambda: f"(~ {self._drawn(depth, self.integer)})",
            lambda: f"{pick(['length', 'bit_length', 'ascii'])}({self._drawn(depth, self.text)})",
            lambda: f"instr({self._drawn(depth, self.text)}, {self._drawn(depth, self.text)})",
            lambda: f"position({self._drawn(depth, self.text)} IN {self._drawn(depth, self.text)})",
            lambda: f"{pick(_PARTS)}({self._drawn(depth, self.time)})",
            lambda: (
                f"extract({pick(['YEAR', 'MONTH', 'DOY', 'WEEK'])} FROM {self._drawn(depth, self.time)})"
            ),
            lambda: self._chosen(depth, self.integer),
        )

    def double(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0:
            return pick(
                ["x", "y", "x", "y", f"CAST('{pick(['1.5', '0.25', '3', '-2'])}' AS DOUBLE)"]
            )
        return self._one(
            lambda: (
                f"({self._drawn(depth, self.double)} {pick('+-*')} {self._drawn(depth, self.double)})"
            ),
            lambda: f"(- {self._drawn(depth, self.double)})",
            lambda: f"abs({self._drawn(depth, self.double)})",
            lambda: f"CAST({self._drawn(depth, self.integer)} AS DOUBLE)",
            lambda: self._chosen(depth, self.double),
        )

    def text(self, depth: int) -> str:
        pick, number = self._random.choice, self._random.randint
        if depth == 0:
            return pick(["s", "t", "s", "t", f"'{pick(['a', 'Ab c', 'x,y', 'é'])}'"])
        return self._one(
            lambda: (
                f"{pick(['trim', 'ltrim', 'rtrim', 'md5', 'reverse'])}({self._drawn(depth, self.text)})"
            ),
            lambda: f"substring({self._drawn(depth, self.text)}, {number(1, 4)}, {number(0, 4)})",
            lambda: f"{pick(['left', 'right'])}({self._drawn(depth, self.text)}, {number(0, 4)})",
            lambda: f"({self._drawn(depth, self.text)} || {self._drawn(depth, self.text)})",
            lambda: (
                f"replace({self._drawn(depth, self.text)}, {self._drawn(depth, self.text)}, 'z')"
            ),
            lambda: f"repeat({self._drawn(depth, self.text)}, {number(0, 3)})",
            lambda: (
                f"{pick(['lpad', 'rpad'])}({self._drawn(depth, self.text)}, {number(1, 9)}, 'xy')"
            ),
            lambda: f"translate({self._drawn(depth, self.text)}, 'abcA', '12')",
            lambda: f"split_part({self._drawn(depth, self.text)}, ',', {pick([1, 2, 3, -1])})",
            lambda: (
                f"concat_ws('-', {self._drawn(depth, self.text)}, {self._drawn(depth, self.text)})"
            ),
            lambda: f"CAST({self._drawn(depth, self.integer)} AS STRING)",
            lambda: self._chosen(depth, self.text),
        )

    def boolean(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0:
            return pick(["b", "b", "TRUE", "FALSE"])
        kind = pick([self.integer, self.double, self.text, self.time])

        def one() -> str:
            return self._drawn(depth, kind)

        def condition() -> str:
            return self._drawn(depth, self.boolean)

        return self._one(
            lambda: f"({one()} {pick(['=', '!=', '<', '<=', '>', '>='])} {one()})",
            lambda: f"({condition()} {pick(['AND', 'OR'])} {condition()})",
            lambda: f"(NOT {condition()})",
            lambda: f"({one()} {pick(['', 'NOT '])}IN ({one()}, {one()}))",
            lambda: f"({one()} {pick(['', 'NOT '])}BETWEEN {one()} AND {one()})",
            lambda: f"({one()} IS {pick(['', 'NOT '])}NULL)",
            lambda: f"({one()} IS {pick(['', 'NOT '])}DISTINCT FROM {one()})",
            lambda: (
                f"({self._drawn(depth, self.text)} {pick(['', 'NOT '])}LIKE '{pick(_PATTERNS)}')"
            ),
            lambda: f"contains({self._drawn(depth, self.text)}, {self._drawn(depth, self.text)})",
            lambda: (
                f"({self._drawn(depth, self.time)} - {self._drawn(depth, self.time)} < INTERVAL 5 DAYS)"
            ),
            lambda: f"coalesce(isnan({self._drawn(depth, self.double)}), FALSE)",
        )

    def time(self, depth: int) -> str:
        pick = self._random.choice
        if depth == 0:
            return pick(["at_", "due", "TIMESTAMP '2024-02-29 23:59:59.5'"])
        return self._one(
            lambda: f"date_trunc('{pick(UNITS)}', {self._drawn(depth, self.time)})",
            lambda: f"({self._drawn(depth, self.time)} {pick('+-')} {pick(_INTERVALS)})",
            lambda: f"CAST(last_day({self._drawn(depth, self.time)}) AS TIMESTAMP)",
            lambda: self._chosen(depth, self.time),
        )


_PARTS = ["year", "month", "day", "quarter", "hour", "minute", "second", "dayofyear", "weekofyear"]
_PATTERNS = ["a%", "%b%", "_b%", "%_c", "%a%c%", "%", "", "A%", "%a_c", "__"]
_INTERVALS = ["INTERVAL 1 DAY", "INTERVAL 36 HOURS", "INTERVAL 3 MONTHS", "INTERVAL 2 YEARS"]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as found:
        found.execute("SET TimeZone = 'UTC'")
        yield found


def agree(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    if isinstance(theirs, datetime):
        theirs = theirs.replace(tzinfo=UTC)
    return type(ours) is type(theirs) and bool(ours == theirs)


def _small(given: Any) -> Any:
    """DuckDB computes both sides of AND, so nothing may overflow."""
    return given % 100 if type(given) is int else given


def differences(
    connection: duckdb.DuckDBPyConnection, seed: int, count: int, row_count: int
) -> list[tuple[str, object, object, object]]:
    """Where Palio and DuckDB differ. Where Palio has an error, DuckDB is not asked."""
    drawing = SharedDrawing(seed)
    rows = [{name: _small(row[name]) for name in TYPES} for row in draw_rows(seed, row_count)]
    columns: dict[str, Any] = {"id": pa.array(range(row_count))}
    for name, type_ in TYPES.items():
        values = (row[name] for row in rows)
        naive = (one.replace(tzinfo=None) if isinstance(one, datetime) else one for one in values)
        columns[name] = pa.array(naive, type_)
    connection.register("messages", pa.table(columns))
    messages = [{name: one for name, one in row.items() if one is not None} for row in rows]
    found = []
    for begin in range(0, count, AT_ONCE):
        texts = [drawing.any(DEPTH) for _ in range(begin, min(count, begin + AT_ONCE))]
        ours, selected = [], []
        for text in texts:
            expression, failed, own = expression_of_text(text), [-1], []
            for at, message in enumerate(messages):
                errors: list[str] = []
                own.append(value(expression, message, errors.append))
                if errors:
                    failed.append(at)
                    own[-1] = None
            ours.append(own)
            selected.append(
                f"CASE WHEN id IN ({', '.join(map(str, failed))}) THEN NULL ELSE {text} END"
            )
        answers = connection.execute(
            f"SELECT {', '.join(selected)} FROM messages ORDER BY id"
        ).fetchall()
        for at, text in enumerate(texts):
            found += [
                (text, row, own, answer[at])
                for row, own, answer in zip(rows, ours[at], answers, strict=True)
                if not agree(own, answer[at])
            ]
    return found


def test_random_expressions(connection: duckdb.DuckDBPyConnection) -> None:
    assert differences(connection, seed=1, count=300, row_count=100) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_random_expressions(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    assert differences(connection, seed, count=1000, row_count=100) == []
