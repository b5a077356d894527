"""Expressions of literals compute what Spark SQL computes."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.differential.constant_drawing import Drawing

from palio.model.expressions.evaluation import value
from palio.model.expressions.parsing import expression_of_text

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

DEPTH = 3
AT_ONCE = 200


def computed(text: str) -> tuple[object, list[str]]:
    """The value of an expression, and the errors on the way."""
    errors: list[str] = []
    return value(expression_of_text(text), {}, errors.append), errors


def plain(found: object) -> object:
    """An answer of Spark as Palio has values."""
    if isinstance(found, Decimal):
        return float(found)
    if isinstance(found, datetime):
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found


def agree(text: str, ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if "power" in text and math.isclose(ours, theirs, rel_tol=1e-14):
            return True  # Java rounds the last digit another way
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    return type(ours) is type(theirs) and ours == theirs


def differences(spark: Any, seed: int, count: int) -> list[tuple[str, object, object]]:
    drawing, texts = Drawing(seed), []
    while len(texts) < count:
        text = drawing.any(DEPTH)
        ours, errors = computed(text)
        if not errors:
            texts.append((text, ours))
    found = []
    for begin in range(0, count, AT_ONCE):
        part = texts[begin : begin + AT_ONCE]
        columns = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(part))
        row = spark.sql(f"SELECT {columns}").collect()[0]
        for (text, ours), theirs in zip(part, row, strict=True):
            if not agree(text, ours, plain(theirs)):
                found.append((text, ours, plain(theirs)))
    return found


def test_random_constants(spark: Any) -> None:
    assert differences(spark, seed=1, count=600) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_random_constants(spark: Any, seed: int) -> None:
    assert differences(spark, seed, count=2000) == []
