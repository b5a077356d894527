"""Conditions on decimals select what WHERE selects: in DuckDB, in Spark SQL, and with Python's Decimal."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from tests.differential.decimal_drawing import Condition, DecimalDrawing, Row, table_of
from tests.seeds import seeds

import palio
import palio.spark

CONDITIONS, ROWS = 100, 60
Selected = list[set[int]]
"""For each condition the rows."""


def drawn(seed: int) -> tuple[list[Condition], list[Row]]:
    drawing = DecimalDrawing(seed)
    return [drawing.condition() for _ in range(CONDITIONS)], drawing.rows(ROWS)


def by_hand(conditions: list[Condition], rows: list[Row]) -> Selected:
    return [{i for i, row in enumerate(rows) if one.holds(row) is True} for one in conditions]


def differing(conditions: list[Condition], a: Selected, b: Selected) -> list[tuple[str, set[int]]]:
    pairs = zip(conditions, a, b, strict=True)
    return [(one.text, x ^ y) for one, x, y in pairs if x != y]


@seeds(3, 40)
def test_duckdb_agrees(seed: int) -> None:
    """But for doubles, next to which DuckDB rounds a decimal twice."""
    conditions, rows = drawn(seed)
    conditions = [one for one in conditions if one.is_exact]
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("messages", table_of(rows))
        columns = ", ".join(f"({one.text}) IS TRUE" for one in conditions)
        answers = connection.execute(f"SELECT {columns} FROM messages").fetchall()
    found = [{i for i, row in enumerate(answers) if row[k]} for k in range(len(conditions))]
    assert differing(conditions, found, by_hand(conditions, rows)) == []


def where(frame: Any, conditions: list[Condition]) -> Selected:
    from pyspark.sql import functions as F  # noqa: N812

    columns = [
        F.expr(f"coalesce({one.text}, FALSE)").alias(f"c{i}") for i, one in enumerate(conditions)
    ]
    found = frame.select("id", *columns).collect()
    return [{row["id"] for row in found if row[f"c{i}"]} for i in range(len(conditions))]


def forwarded(frame: Any, conditions: list[Condition], mode: str) -> Selected:
    rules = {f"r{i}": one.text for i, one in enumerate(conditions)}
    table = palio.ForwardingTable.compile(rules, expressions=mode)
    rows = palio.spark.forward(frame, table, into="found").select("id", "found").collect()
    return [{row["id"] for row in rows if f"r{i}" in row["found"]} for i in range(len(conditions))]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@seeds(1, 20)
def test_spark_agrees(spark: Any, seed: int) -> None:
    conditions, rows = drawn(seed)
    columns = table_of(rows)
    frame = spark.createDataFrame(columns.append_column("id", [[*range(len(rows))]]))
    expected = where(frame, conditions)
    assert differing(conditions, expected, by_hand(conditions, rows)) == []
    for mode in ("attributes", "residuals"):
        assert differing(conditions, forwarded(frame, conditions, mode), expected) == []
    printed = [
        Condition(str(palio.parse(one.text)), one.holds, one.is_plain, one.is_exact)
        for one in conditions
    ]
    assert differing(conditions, where(frame, printed), expected) == []


_FOREIGN = "try_to_number(CAST(big AS STRING), '99999999999999999D99')"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_what_spark_rounds_or_computes_alone(spark: Any) -> None:
    """DECIMAL(38, 20) + 0 has 19 digits behind the point; try_to_number is Spark's own."""
    rows = spark.sql(
        "SELECT id, CAST(concat('0.1000000000000000000', id) AS DECIMAL(38, 20)) d, "
        "CAST(12345678901234567.88 + id * 0.01 AS DECIMAL(20, 2)) big, "
        "map('k', CAST(12345678901234567.88 + id * 0.01 AS DECIMAL(20, 2))) m FROM range(0, 10)"
    )
    rules = (
        "d + 0 > 0.1", "d > 0.1", "d = 0.1", "big = 12345678901234567.88", "m['k'] > 12345678901234567.88",
        "big + 0 = 12345678901234567.89", "m['k'] = 12345678901234567.89",
        f"{_FOREIGN} < 12345678901234568 AND id > 3", f"{_FOREIGN} = 12345678901234567.89", f"{_FOREIGN} > 12345678901234567.88",
    )  # fmt: skip
    conditions = [Condition(text, lambda _row: None, True, True) for text in rules]
    expected = where(rows, conditions)
    assert all(0 < len(one) < 10 for one in expected)
    rules_by_name = {f"r{i}": text for i, text in enumerate(rules)}
    found = palio.spark.forward(rows, rules_by_name, into="found").select("id", "found").collect()
    selected = [{row["id"] for row in found if name in row["found"]} for name in rules_by_name]
    assert differing(conditions, selected, expected) == []
