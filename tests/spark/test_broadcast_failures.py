"""Expressions that cannot be computed: counted in a column, or errors that name the rule and the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import palio
import palio.spark
from palio.carried_errors import recovered
from palio.errors import InvalidValue

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def answers(routed: Any) -> dict[int, set[str]]:
    return {
        row["id"]: set(row["interfaces"]) for row in routed.select("id", "interfaces").collect()
    }


def test_failures_are_counted_in_a_column(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.sql(
        "SELECT * FROM VALUES (1, 0L, 'a'), (2, 5L, '7'), (3, NULL, 'x') AS t(id, i, s)"
    )
    rules = {
        "quotient": "10 / i > 1",
        "cast": "CAST(s AS INT) > 5 AND id < 9",
        "near": "soundex(s) = ''",
    }
    routed = palio.spark.forward(frame, rules, failures="failed")
    found = {r["id"]: (set(r["interfaces"]), r["failed"]) for r in routed.collect()}
    assert found == {1: (set(), 2), 2: ({"quotient", "cast"}, 0), 3: (set(), 1)}
    assert answers(palio.spark.forward(frame, rules)) == {
        row: own for row, (own, _) in found.items()
    }
    seen = Observation("palio")
    routed.observe(seen, F.sum("failed").alias("failures")).collect()
    assert seen.get == {"failures": 3}
    json = spark.sql("""SELECT 1 AS id, '{"i": 0}' AS m UNION ALL SELECT 2, '{broken'""")
    rows = palio.spark.forward(
        json, {"quotient": "10 / i > 1"}, json="m", failures="failed", invalid="null", output="flag"
    )
    assert {r["id"]: (r["matched"], r["failed"]) for r in rows.collect()} == {
        1: (False, 1),
        2: (None, None),
    }
    pairs = palio.spark.forward(frame, rules, failures="failed", output="pairs")
    assert {(r["id"], r["interface"], r["failed"]) for r in pairs.collect()} == {
        (2, "quotient", 0),
        (2, "cast", 0),
    }
    table = palio.ForwardingTable.compile({"a": "x / 0 > 1"})
    for option in ({"failures": "failed"}, {"strict": True}):
        with pytest.raises(InvalidValue, match="does not count failures"):
            palio.spark.forward(frame, table, strategy="partitioned", **option)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"has a column 'id' already; .*failures="):
        palio.spark.forward(frame, rules, failures="id")


def test_strict(spark: Any) -> None:
    """The job ends with the rule and the row; with invalid="null" such rows are NULL."""
    frame = spark.sql(
        "SELECT * FROM VALUES (1, 5L, '7'), (2, 0L, '8'), (3, 2L, 'x') AS t(id, i, s)"
    )
    rules = {"plain": "i >= 0", "quotient": "10 / i > 1", "near": "soundex(s) = ''"}
    for options in ({}, {"failures": "failed"}, {"output": "flag"}):
        with pytest.raises(Exception, match="cannot be computed") as caught:
            palio.spark.forward(frame, rules, strict=True, **options).collect()
        found = recovered(caught.value)
        assert isinstance(found, InvalidValue)
        assert "'quotient'" in str(found)
        assert "'i': 0" in str(found)
    calm = palio.spark.forward(frame.where("i > 0"), rules, strict=True, failures="failed")
    assert answers(calm) == {1: {"plain", "quotient"}, 3: {"plain", "quotient"}}
    assert {row["failed"] for row in calm.collect()} == {0}
    nulls = palio.spark.forward(frame, rules, strict=True, invalid="null")
    assert [row["interfaces"] is None for row in nulls.orderBy("id").collect()] == [
        False,
        True,
        False,
    ]
    json = frame.selectExpr("id", "to_json(struct(i, s)) AS m")
    del rules["near"]
    with pytest.raises(Exception, match=r"cannot be computed.*'quotient'"):
        palio.spark.forward(json, rules, json="m", strict=True).collect()
    nulls = palio.spark.forward(json, rules, json="m", strict=True, invalid="null")
    assert [row["interfaces"] is None for row in nulls.orderBy("id").collect()] == [
        False,
        True,
        False,
    ]


def test_failures_of_a_stream_are_observed(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    spark.range(4).selectExpr("id AS i").write.parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema("i BIGINT").parquet(str(tmp_path / "in"))
    routed = palio.spark.forward(frame, {"a": "10 / (i % 2) > 1"}, failures="failed")
    watched = routed.observe("palio", F.sum("failed").alias("failures"))
    query = (
        watched.writeStream.format("memory")
        .queryName("failures_of_a_stream")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert sum(p["observedMetrics"]["palio"]["failures"] for p in query.recentProgress) == 2
