"""Expressions of attributes compute what Spark SQL computes, row by row."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.differential.expression_drawing import COLUMNS, ExpressionDrawing, draw_rows

from palio.model.expressions.decimals import Exact
from palio.model.expressions.evaluation import value
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.parsing import expression_of_text

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

DEPTH = 3
AT_ONCE = 100


def literal(given: object, kind: str) -> str:
    """A value as Spark writes it."""
    if given is None:
        return f"CAST(NULL AS {kind})"
    if isinstance(given, tuple):
        inner = kind.removeprefix("ARRAY<").removesuffix(">")
        return f"CAST(array({', '.join(literal(one, inner) for one in given)}) AS {kind})"
    if isinstance(given, datetime):
        return f"TIMESTAMP '{given:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(given, str):
        body = given.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"'{body}'"
    return f"CAST('{given}' AS {kind})"


def show(spark: Any, rows: list[dict[str, Any]]) -> None:
    """The rows as a view of literals, so that Spark computes without compiling anything."""
    lines = (
        f"({at}, {', '.join(literal(row[name], kind) for name, kind in COLUMNS.items())})"
        for at, row in enumerate(rows)
    )
    names = ", ".join(["id", *COLUMNS])
    spark.sql(f"SELECT * FROM VALUES {', '.join(lines)} AS rows({names})").createOrReplaceTempView(
        "messages"
    )


def plain(found: object) -> object:
    """An answer of Spark as Palio has values."""
    if isinstance(found, Decimal):  # as it is compared
        exact = Exact.of_decimal(found)
        return float(found) if exact is None else exact.compared
    if isinstance(found, datetime):
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    if isinstance(found, date):
        return datetime(found.year, found.month, found.day, tzinfo=UTC)
    return tuple(map(plain, found)) if isinstance(found, list) else found


def agree(text: str, ours: Any, theirs: Any) -> bool:
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(agree(text, a, b) for a, b in pairs)
    if isinstance(ours, float) and isinstance(theirs, float):
        if ours == theirs or (math.isnan(ours) and math.isnan(theirs)):
            return True
        return is_real(text) and math.isclose(ours, theirs, rel_tol=1e-13, abs_tol=1e-15)
    return type(ours) is type(theirs) and bool(ours == theirs)


def is_real(text: str) -> bool:
    """Mathematics whose last digit Java and C round each in their own way."""
    return text.partition("(")[0] in REALS


REALS = frozenset(
    "exp ln log log10 log2 log1p expm1 sin cos tan asin acos atan atan2 sinh cosh tanh cbrt hypot degrees "
    "radians sqrt power".split()
)


def differences(
    spark: Any, seed: int, count: int, row_count: int
) -> list[tuple[str, object, object, object]]:
    """Where Palio and Spark differ. Where Palio has an error, Spark is not asked."""
    drawing, rows = ExpressionDrawing(seed), draw_rows(seed, row_count)
    show(spark, rows)
    messages = [{name: one for name, one in row.items() if one is not None} for row in rows]
    found = []
    for begin in range(0, count, AT_ONCE):
        texts = [drawing.any(DEPTH) for _ in range(begin, min(count, begin + AT_ONCE))]
        ours, columns = [], []
        for text in texts:
            expression, failed, own = expression_of_text(text), [], []
            for at, message in enumerate(messages):
                errors: list[str] = []
                own.append(value(expression, message, errors.append))
                failed += [str(at)] * bool(errors)
            if len(failed) == len(messages):
                columns.append("NULL")
                own = [None] * len(messages)
            else:
                mask = f"id IN ({', '.join(failed)})" if failed else "FALSE"
                columns.append(f"IF({mask}, NULL, {text})")
                own = [None if str(at) in failed else one for at, one in enumerate(own)]
            ours.append(own)
        named = ", ".join(f"{column} AS c{at}" for at, column in enumerate(columns))
        answers = spark.sql(f"SELECT {named} FROM messages").collect()
        for at, text in enumerate(texts):
            found += [
                (text, row, own, plain(answer[at]))
                for row, own, answer in zip(rows, ours[at], answers, strict=True)
                if not agree(text, own, plain(answer[at]))
            ]
    return found


def test_random_expressions(spark: Any) -> None:
    assert differences(spark, seed=1, count=250, row_count=200) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_many_random_expressions(spark: Any, seed: int) -> None:
    assert differences(spark, seed, count=250, row_count=200) == []


def test_errors_are_errors(spark: Any) -> None:
    """Where Palio counts an error Spark raises one, or gives the same without computing that part."""
    from pyspark.errors import PySparkException

    drawing, rows = ExpressionDrawing(77), draw_rows(77, 40)
    show(spark, rows)
    raised = asked = 0
    while asked < 25:
        text = drawing.any(2)
        expression = expression_of_text(text)
        for at, row in enumerate(rows):
            errors: list[str] = []
            ours = value(
                expression,
                {name: one for name, one in row.items() if one is not None},
                errors.append,
            )
            if errors:
                asked += 1
                try:
                    answer = spark.sql(f"SELECT {text} FROM messages WHERE id = {at}").collect()[0][
                        0
                    ]
                except PySparkException:
                    raised += 1
                else:
                    assert agree(text, ours, plain(answer)), text
                break
    assert raised > 20


def test_the_examples_of_the_table(spark: Any) -> None:
    lines = FUNCTIONS.values()
    texts = [line.example for line in lines if line.example and line.is_of_spark]
    columns = ", ".join(f"{text} AS c{at}" for at, text in enumerate(texts))
    row = spark.sql(f"SELECT {columns}").collect()[0]
    for text, answer in zip(texts, row, strict=True):
        ours = value(expression_of_text(text), {}, lambda _: None)
        assert agree(text, ours, plain(answer)), text
