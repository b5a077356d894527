"""What the random comparisons draw: every function that Spark has, and what the page of functions says of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.differential.expression_drawing import COLUMNS, ExpressionDrawing
from tests.differential.test_duckdb_expressions import SharedDrawing

from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.names import attributes_of
from palio.model.expressions.parsing import expression_of_text
from palio.model.expressions.table.coverage import ELSEWHERE, SPARK_COMPUTES, WITH_DUCKDB
from palio.model.expressions.tree import Call, Expression, Lambda

ROOT = Path(__file__).parents[2]
DRAWN = 5_000


def calls(expression: Expression) -> Iterator[tuple[Call, bool]]:
    """The calls in an expression, and whether a lambda stands around them."""
    stack = [(expression, False)]
    while stack:
        found, is_inside = stack.pop()
        if isinstance(found, Lambda):
            stack.append((found.body, True))
        elif isinstance(found, Call):
            yield found, is_inside
            stack += [(argument, is_inside) for argument in found.arguments]


def drawn(drawing: Any, count: int, depth: int = 3) -> Iterator[tuple[Call, bool]]:
    for _ in range(count):
        yield from calls(expression_of_text(drawing.any(depth)))


def test_each_function_of_spark_is_drawn() -> None:
    seen = {call.function for call, _ in drawn(ExpressionDrawing(1), DRAWN)}
    assert [name for name in FUNCTIONS if name not in seen] == [
        name for name in FUNCTIONS if name in ELSEWHERE
    ]


def test_what_is_compared_with_duckdb() -> None:
    seen = {call.function for call, _ in drawn(SharedDrawing(1), DRAWN)}
    assert seen & FUNCTIONS.keys() == WITH_DUCKDB


@pytest.mark.parametrize("path", sorted(set(ELSEWHERE.values())))
def test_what_is_tested_elsewhere(path: str) -> None:
    text = (ROOT / path).read_text()
    names = [name for name, place in ELSEWHERE.items() if place == path and name != "field"]
    assert [name for name in names if name not in text] == []


def test_what_spark_itself_computes() -> None:
    pytest.importorskip("pyspark")
    from palio.spark.expression_sql import SqlWriter
    from palio.spark.expression_types import ColumnSource, NotOnSpark

    columns = {name: ColumnSource(name, _type(kind)) for name, kind in COLUMNS.items()}
    writer, native = SqlWriter(columns, None), {"field"}
    for call, is_inside in drawn(ExpressionDrawing(2), DRAWN, depth=2):
        if call.function in FUNCTIONS and not is_inside and attributes_of(call):
            try:
                writer.write(call)
            except NotOnSpark:
                continue
            native.add(call.function)
    assert native == SPARK_COMPUTES


def _type(kind: str) -> Any:
    from pyspark.sql import types as T  # noqa: N812

    plain = {
        "BOOLEAN": T.BooleanType(), "BIGINT": T.LongType(), "DOUBLE": T.DoubleType(),
        "STRING": T.StringType(), "TIMESTAMP": T.TimestampType(),
    }  # fmt: skip
    inner = kind.removeprefix("ARRAY<").removesuffix(">")
    return plain[kind] if kind in plain else T.ArrayType(plain[inner])
