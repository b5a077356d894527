"""Random rules select on Spark what a WHERE clause selects, with errors as NULL, and the same elsewhere.

Rules of plain constraints, expressions, patterns, arrays and choices, joined by AND, OR and NOT; some are
of a few shapes with many literals, which become residuals. Where a rule has an error for a row, Spark is not
asked: there the Python evaluator, which other tests compare with Spark, says what is selected. A table alone
selects the same of the same rows as Arrow and as JSON.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from tests.differential.expression_drawing import COLUMNS, ExpressionDrawing, draw_rows
from tests.differential.test_expressions import show

import palio
import palio.spark
from palio.matching.encode.columns import from_predicates
from palio.model.expressions.names import is_computed, value_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:.*columns travel"),
]

DEPTH = 2
RULES, ROWS = 100, 250  # of one query


class RuleDrawing:
    """Draws WHERE clauses over the attributes of ExpressionDrawing."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._expressions = ExpressionDrawing(seed)

    def rule(self) -> str:
        draw = self._random
        parts = [self._condition() for _ in range(draw.choice([1, 1, 2, 2, 3]))]
        text = parts[0]
        for part in parts[1:]:
            text = f"({text} {draw.choice(['AND', 'OR'])} {part})"
        return f"NOT {text}" if draw.random() < 0.2 else text

    def _condition(self) -> str:
        draw, drawn = self._random, self._expressions
        op = draw.choice(["=", "!=", "<", "<=", ">", ">="])
        kind = draw.randrange(12)
        if kind == 0:
            return f"i {op} {draw.randrange(-20, 20)}"
        if kind == 1:
            return f"x {op} {draw.randrange(-80, 80) / 8}"
        if kind == 2:
            return draw.choice(
                ["s LIKE 'a%'", "t = 'abc'", "b", "at_ IS NULL", "s IN ('0', '42', 'é')"]
            )
        if kind == 3:
            return f"({drawn.integer(DEPTH)} {op} {draw.randrange(-20, 20)})"
        if kind == 4:
            return f"({drawn.double(DEPTH)} {op} {draw.randrange(-80, 80) / 8}D)"
        if kind == 5:
            return f"({drawn.text(DEPTH)} {op} '{draw.choice(['', 'a', 'Ab c', 'x,y,,z', '42'])}')"
        if kind == 6:
            year = draw.randrange(1960, 2030)
            return f"({drawn.time(DEPTH)} {op} TIMESTAMP '{year}-03-01 10:00:00')"
        if kind == 7:
            return f"({drawn.any(DEPTH)} IS {draw.choice(['', 'NOT '])}NULL)"
        if kind == 8:
            low = draw.randrange(-20, 10)
            return f"({drawn.integer(DEPTH)} BETWEEN {low} AND {low + 15})"
        if kind == 9:
            return self._of_one_shape()
        return drawn.boolean(DEPTH)

    def _of_one_shape(self) -> str:
        """Many rules have it with other literals: a residual."""
        draw = self._random
        return draw.choice(
            [
                f"abs(x - {draw.randrange(-400, 400) / 8}D) < {draw.randrange(1, 80)}D",
                f"s LIKE '%{draw.choice('abcé1 ')}_{draw.choice('bcd2 ')}%'",
                f"i % {draw.randrange(2, 40)} = {draw.randrange(3)}",
                f"array_contains(tags, '{draw.choice(['a', 'b', 'abc', 'z'])}')",
                f"length(concat(s, '{draw.randrange(1000)}')) > {draw.randrange(9)}",
            ]
        )


def rules_of(seed: int) -> Iterator[tuple[str, palio.Predicate]]:
    drawing = RuleDrawing(seed)
    while True:
        text = drawing.rule()
        try:
            yield text, palio.parse(text)
        except palio.LimitExceeded:
            continue
        except palio.ParseError:  # a part of literals alone that cannot be computed
            continue


def has_error(predicate: palio.Predicate, message: dict[str, Any]) -> bool:
    reasons: list[str] = []
    for filter in predicate.filters:
        for constraint in filter.constraints:
            if is_computed(constraint.name):
                value_of(constraint.name, message, reasons.append)
    return bool(reasons)


WITHOUT_ERRORS = {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "false"}
"""Where there is no error this is ANSI mode, which raises some for NULL: pmod(NULL, 0)."""


def selected_by_where(spark: Any, frame: Any, columns: list[str]) -> dict[int, list[bool]]:
    """Whether each rule selects a row, by the row's id."""
    from pyspark.sql import functions as F  # noqa: N812

    before = {key: spark.conf.get(key) for key in WITHOUT_ERRORS}
    try:
        for key, value in WITHOUT_ERRORS.items():
            spark.conf.set(key, value)
        found = frame.select("id", F.expr(f"array({', '.join(columns)})")).collect()
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    return {row[0]: row[1] for row in found}


_ARROW = {
    "BOOLEAN": pa.bool_(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", "UTC"), "ARRAY<STRING>": pa.list_(pa.string()),
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
}  # fmt: skip


def as_arrow(drawn: list[dict[str, Any]]) -> pa.Table:
    """The rows as columns, and as JSON in the column `message`."""
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in COLUMNS.items()])
    texts = [palio.Message(row).to_json() for row in drawn]
    return pa.Table.from_pylist(drawn, schema).append_column("message", pa.array(texts))


def embedded(table: palio.ForwardingTable, rows: pa.Table) -> dict[str, list[set[int]]]:
    """What a table alone selects of each row, by how it is given."""
    plain = table.forward_batch(rows.drop_columns("message"), ids=True)
    texts = table.forward_batch(rows, json="message", ids=True)
    return {
        "Arrow": [set(one) for one in plain.to_pylist()],
        "JSON": [set(one) for one in texts.to_pylist()],
    }


def differences(spark: Any, seed: int, queries: int, expressions: str) -> list[tuple[Any, ...]]:
    """The rules and rows that WHERE, Palio on Spark and a table alone see differently."""
    drawn = draw_rows(seed, ROWS)
    show(spark, drawn)
    frame = spark.table("messages")
    messages = [{name: one for name, one in row.items() if one is not None} for row in drawn]
    rows = as_arrow(drawn)
    found: list[tuple[Any, ...]] = []
    rules = rules_of(seed)
    for _ in range(queries):
        chosen = [next(rules) for _ in range(RULES)]
        columns, by_hand = [], []
        for text, predicate in chosen:
            failed = [at for at, message in enumerate(messages) if has_error(predicate, message)]
            mask = f"id IN ({', '.join(map(str, failed))})" if failed else "FALSE"
            columns.append(f"coalesce(IF({mask}, NULL, ({text})), FALSE)")
            by_hand.append({at: predicate.matches(messages[at]) for at in failed})
        entries = ((str(k), predicate) for k, (_, predicate) in enumerate(chosen))
        table = palio.ForwardingTable.compile(from_predicates(entries), expressions=expressions)
        expected = selected_by_where(spark, frame, columns)
        ids = palio.spark.forward(frame, table, output="ids", into="found").select("id", "found")
        answers = embedded(table, rows)
        answers["Spark"] = [set(row["found"]) for row in ids.orderBy("id").collect()]
        for where, selected in answers.items():
            for at, k in product(range(ROWS), range(RULES)):
                wanted = by_hand[k].get(at, expected[at][k])
                if (k in selected[at]) is not wanted:
                    found.append((where, chosen[k][0], drawn[at], wanted))
    return found


def test_rules_select_what_where_selects(spark: Any) -> None:
    """200 rules on 250 rows: 50,000 cases."""
    assert differences(spark, seed=17, queries=2, expressions="auto") == []


def test_residuals_select_what_where_selects(spark: Any) -> None:
    assert differences(spark, seed=18, queries=1, expressions="residuals") == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_rules(spark: Any, seed: int) -> None:
    """A million cases in all."""
    assert differences(spark, seed, queries=4, expressions="auto") == []
