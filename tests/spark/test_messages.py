"""Schemas that hold no messages are refused on the driver, by name and with a remedy."""

from __future__ import annotations

from typing import Any

import pytest

import palio
import palio.spark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize(
    ("expression", "type", "remedy"),
    [
        ("array(1)", "array<int>", "explode it"),
        ("map('a', 1)", "map<string,int>", "map="),
        ("parse_json('{}')", "variant", "variant="),
        ("1.5BD", "decimal(2,1)", "cast it to double"),
        ("CAST(1 AS DECIMAL(9))", "decimal(9,0)", "cast it to bigint"),
        ("binary('a')", "binary", "cast it to"),
        ("INTERVAL '1' DAY", "interval day", "cast it to"),
        ("'a' COLLATE UTF8_LCASE", "string collate UTF8_LCASE", "by their bytes"),
        ("TIMESTAMP_NTZ '2013-01-31 10:00:00'", "timestamp_ntz", "no time zone"),
    ],
)
def test_types_that_no_attribute_has(spark: Any, expression: str, type: str, remedy: str) -> None:
    frame = spark.sql(f"SELECT {expression} AS x, struct({expression} AS z) AS y, 1 AS n")
    for asked, column in (("x", "x"), ("y.z", "y.z")):
        table = palio.ForwardingTable.compile({"i": f"{asked} IS NULL"})
        with pytest.raises(palio.InvalidValue) as refused:
            palio.spark.forward(frame, table)
        assert f"column {column!r}" in str(refused.value)
        assert type in str(refused.value)
        assert remedy in str(refused.value)
    other = palio.ForwardingTable.compile({"i": "n = 1"})
    assert palio.spark.forward(frame, other).first()["interfaces"] == ["i"]


def test_a_name_inside_a_map(spark: Any) -> None:
    frame = spark.sql("SELECT map('a', 1) AS x")
    with pytest.raises(palio.InvalidValue, match="map="):
        palio.spark.forward(frame, palio.ForwardingTable.compile({"i": "x.a = 1"}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"json": "n"}, "column 'n' has the type int; json= takes a string"),
        ({"map": "s"}, "column 's' has the type string; map= takes a map<string, X>"),
        ({"map": "m"}, "map<string,array<int>>; map= takes"),
        ({"variant": "s"}, "variant= takes a variant"),
        ({"attributes": "m"}, "attributes= takes an array<struct<name, type, value>>"),
        ({"json": "gone"}, "no column 'gone'; there are n, s, m"),
        ({"columns": ["n", "gone"]}, "no column 'gone'"),
        ({"columns": "n"}, "columns is a list of names"),
        ({"json": "s", "map": "m"}, "choose one of"),
        ({"json": "s", "columns": ["n"]}, "choose one of"),
        ({"output": "rows"}, "no output 'rows'; there are array, ids, pairs, flag"),
        ({"strategy": "magic"}, "no strategy 'magic'"),
        ({"invalid": "skip"}, "no invalid 'skip'"),
        ({"into": "N"}, "has a column 'N' already"),
    ],
)
def test_wrong_options(spark: Any, options: dict[str, Any], message: str) -> None:
    frame = spark.sql("SELECT 1 AS n, 'x' AS s, map('a', array(1)) AS m")
    with pytest.raises(palio.InvalidValue) as refused:
        palio.spark.forward(frame, palio.ForwardingTable.compile({"i": "n = 1"}), **options)
    assert message in str(refused.value)


def test_columns_that_flatten_to_one_name(spark: Any) -> None:
    frame = spark.sql("SELECT struct(1 AS b) AS a, 2 AS `a.b`")
    with pytest.raises(palio.InvalidValue, match=r"'a\.b' is there twice"):
        palio.spark.forward(frame, palio.ForwardingTable.compile({"i": "a.b = 1"}))


def test_warnings(spark: Any) -> None:
    upper = spark.sql("SELECT 'MXP' AS Dest")
    with pytest.warns(UserWarning, match="'dest', and the DataFrame has 'Dest'"):
        palio.spark.forward(upper, palio.ForwardingTable.compile({"i": "dest = 'MXP'"}))
    names = [f"x{i}" for i in range(201)]
    wide = spark.range(1).selectExpr(*(f"id AS {name}" for name in names))
    table = palio.ForwardingTable.compile({name: f"{name} = 0" for name in names})
    with pytest.warns(UserWarning, match="201 columns travel"):
        routed = palio.spark.forward(wide, table)
    assert routed.first()["interfaces"] == names
