"""forward against Spark SQL's own WHERE, in every encoding and output, batch and streaming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark import encodings

import palio
import palio.spark
from palio.lab.data import flights

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def table(case: encodings.Case) -> palio.ForwardingTable:
    return palio.ForwardingTable.compile(case.predicates)


def test_equals_where(
    frame: Any, case: encodings.Case, expected_by_encoding: dict[str, list[list[str]]]
) -> None:
    """Predicates on real flights, in every encoding."""
    routed = palio.spark.forward(frame, palio.ForwardingTable.compile({}))
    assert routed.columns == [*frame.columns, "interfaces"]
    assert routed.schema["interfaces"].dataType.simpleString() == "array<string>"
    found = encodings.answers(encodings.routed(frame, case).toArrow())
    for encoding in encodings.ENCODINGS:
        assert found[encoding] == expected_by_encoding[encoding], encoding


@pytest.mark.slow
def test_more_equals_where(spark: Any, tmp_path: Path) -> None:
    """500 predicates on 2,000 flights."""
    case = encodings.draw(2001, rows=2_000, predicates=500)
    pq.write_table(case.messages, tmp_path / "messages.parquet")
    frame = encodings.with_variant(spark.read.parquet(str(tmp_path / "messages.parquet")))
    found = encodings.answers(encodings.routed(frame, case).toArrow())
    selected = {
        kind: encodings.selected(frame, case.for_encoding(kind)) for kind in ("wide", "map")
    }
    for encoding in encodings.ENCODINGS:
        assert found[encoding] == selected["map" if encoding == "map" else "wide"], encoding


def test_streams_equal_where(
    spark: Any,
    folder: Path,
    tmp_path: Path,
    case: encodings.Case,
    expected_by_encoding: dict[str, list[list[str]]],
) -> None:
    schema = spark.read.parquet(str(folder)).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    query = (
        encodings.routed(encodings.with_variant(source), case)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert query.awaitTermination(120)
    found = encodings.answers(spark.read.parquet(str(tmp_path / "out")).toArrow())
    for encoding in encodings.ENCODINGS:
        assert found[encoding] == expected_by_encoding[encoding], encoding


def test_outputs(
    frame: Any, table: palio.ForwardingTable, case: encodings.Case, expected: list[list[str]]
) -> None:
    options = encodings.ENCODINGS["json"]
    few = frame.select("number", "json").where(f"number < {encodings.FEW}")
    expected = expected[: encodings.FEW]
    pairs = palio.spark.forward(few, table, output="pairs", **options)
    assert pairs.columns == ["number", "json", "interface"]
    wanted = [(number, name) for number, names in enumerate(expected) for name in names]
    assert sorted((r["number"], r["interface"]) for r in pairs.collect()) == sorted(wanted)
    flags = palio.spark.forward(few, table, output="flag", **options).collect()
    assert {r["number"]: r["matched"] for r in flags} == {
        i: bool(e) for i, e in enumerate(expected)
    }
    ids = palio.spark.forward(few, table, output="ids", into="to", **options).collect()
    order = list(case.predicates)
    assert encodings.lists_of(ids, "to") == [[order.index(n) for n in e] for e in expected]


def test_transform_and_sql(
    spark: Any, frame: Any, table: palio.ForwardingTable, expected: list[list[str]]
) -> None:
    frame, expected = frame.where(f"number < {encodings.FEW}"), expected[: encodings.FEW]
    few = frame.select("number", *flights.SCHEMA.names)
    found = few.transform(palio.spark.forwarder(table, columns=flights.SCHEMA.names)).collect()
    assert encodings.lists_of(found) == expected
    palio.spark.register(spark, "palio_match", table)
    frame.createOrReplaceTempView("messages")
    few.createOrReplaceTempView("departures")
    for query in (
        "SELECT number, palio_match(json) AS interfaces FROM messages",
        "SELECT number, palio_match(attributes) AS interfaces FROM messages",
        "SELECT number, palio_match(struct(*)) AS interfaces FROM departures",
    ):
        assert encodings.lists_of(spark.sql(query).collect()) == expected, query
    with pytest.raises(Exception, match="write to_json"):
        spark.sql("SELECT palio_match(parse_json(json)) FROM messages").collect()


def test_zero_predicates_zero_rows_and_null_messages(spark: Any) -> None:
    empty = palio.ForwardingTable.compile({})
    everything = palio.ForwardingTable.compile({"all": "TRUE", "none": "FALSE", "x": "x IS NULL"})
    rows = pa.table({"m": ['{"x": 1}', None, "{}"], "x": [1, None, 2]})
    frame = spark.createDataFrame(rows)

    def answers(table: palio.ForwardingTable, df: Any = frame, **options: Any) -> list[Any]:
        return [row["interfaces"] for row in palio.spark.forward(df, table, **options).collect()]

    assert answers(empty) == answers(empty, json="m") == [[], [], []]
    assert palio.spark.forward(frame, empty, output="pairs").collect() == []
    assert answers(everything, json="m") == [["all"], ["all", "x"], ["all", "x"]]
    assert answers(everything) == [["all"], ["all", "x"], ["all"]]
    assert answers(everything, columns=["m"]) == [["all", "x"]] * 3
    assert answers(everything, columns=[]) == [["all", "x"]] * 3
    assert answers(everything, frame.where("x > 5"), json="m") == []
    flags = palio.spark.forward(frame, empty, output="flag").collect()
    assert [row["matched"] for row in flags] == [False] * 3


def test_rows_that_are_no_messages(spark: Any) -> None:
    table = palio.ForwardingTable.compile({"x": "x > 1"})
    texts = [json.dumps({"x": i}) for i in range(100)]
    expected: list[Any] = [["x"] if i > 1 else [] for i in range(100)]
    for bad in (17, 42, 43, 99):
        texts[bad], expected[bad] = '{"x": [1}' if bad == 42 else "{broken", None
    frame = spark.createDataFrame(pa.table({"m": texts})).coalesce(1)
    found = palio.spark.forward(frame, table, json="m", invalid="null").collect()
    assert [row["interfaces"] for row in found] == expected
    with pytest.raises(Exception, match=r"a row is no message: .*broken.*invalid='null'"):
        palio.spark.forward(frame, table, json="m").collect()


def test_nested_columns_and_odd_names(spark: Any) -> None:
    predicates = {"in": "a.b.c = 1", "odd": "`d.e f` = 'x' AND `it``s` > 2"}
    rows = pa.table(
        {
            "a": pa.array([{"b": {"c": 1}}, {"b": None}, None]),
            "d.e f": ["x", "x", None],
            "it`s": [3, 2, 3],
            "unused": pa.array([[1], None, []]),  # no predicate asks, so its type is no matter
        }
    )
    frame = spark.createDataFrame(rows)
    table = palio.ForwardingTable.compile(predicates)
    found = palio.spark.forward(frame, table).collect()
    assert [row["interfaces"] for row in found] == [["in", "odd"], [], []]
