"""Palio against Spark SQL, whose dialect it speaks: the same text on the same row.

Two ways through Spark: a Parquet file makes it generate code, a local relation is interpreted.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.differential import cases
from tests.differential.agreement import assert_agree
from tests.differential.generate import draw_predicates, draw_rows

import palio
from palio.lab.data import flights

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

COLUMNS_MAX = 50  # predicates in one query


def answers(frame: Any, texts: Sequence[str]) -> list[list[bool]]:
    """For each predicate, whether it selects each row."""
    from pyspark.sql import functions as F  # noqa: N812

    found: list[list[bool]] = []
    for start in range(0, len(texts), COLUMNS_MAX):
        columns = [
            F.coalesce(F.expr(f"({text})"), F.lit(False)).alias(f"p{n}")
            for n, text in enumerate(texts[start : start + COLUMNS_MAX])
        ]
        found += map(list, zip(*frame.select(*columns).collect(), strict=True))
    return found


def assert_agrees(spark: Any, folder: Path, texts: Sequence[str], table: pa.Table) -> float:
    """As written, and as Palio prints it: that is Spark SQL too."""
    path = folder / "messages.parquet"
    pq.write_table(table, path)
    from_file, from_memory = spark.read.parquet(str(path)), spark.createDataFrame(table)
    share = assert_agree(texts, table, answers(from_file, texts), "Spark")
    printed = [str(palio.parse(text)) for text in texts]
    assert share == assert_agree(printed, table, answers(from_memory, printed), "Spark")
    return share


def test_random_predicates(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(2003)
    table = draw_rows(rng, 40)
    texts = [predicate.spark for predicate in draw_predicates(rng, 100)]
    assert 0.2 < assert_agrees(spark, tmp_path, texts, table) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_random_predicates(spark: Any, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    table = draw_rows(rng, 100)
    texts = [predicate.spark for predicate in draw_predicates(rng, 500)]
    assert_agrees(spark, tmp_path, texts, table)


def test_cases(spark: Any, tmp_path: Path) -> None:
    texts = [*cases.SAME, *(text.spark for text in cases.BOTH)]
    assert_agrees(spark, tmp_path, texts, cases.table())


def test_string_literals(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"s": pa.array(cases.STRINGS_READ)})
    texts = [f"s = {literal}" for literal in cases.SPARK]
    assert_agrees(spark, tmp_path, texts, table)


@pytest.mark.parametrize("text", cases.ODD)
def test_odd_texts_are_refused_or_understood(spark: Any, text: str) -> None:
    try:
        palio.parse(text)
    except palio.ParseError:
        return
    table = cases.table()
    assert_agree([text], table, answers(spark.createDataFrame(table), [text]), "Spark")


def test_subscriptions_to_departures(spark: Any, tmp_path: Path) -> None:
    table = flights.load().table
    table = table.take(list(range(0, table.num_rows, table.num_rows // 300)))
    texts = [text for _, text in flights.subscriptions(100)]
    assert assert_agrees(spark, tmp_path, texts, table) > 0
