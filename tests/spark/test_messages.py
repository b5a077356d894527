"""Schemas that hold no messages are refused on the driver, by name and with a remedy."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import palio
import palio.spark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize(
    ("expression", "type", "remedy"),
    [
        ("parse_json('{}')", "variant", "variant="),
        ("array(TIMESTAMP_NTZ '2013-01-31 10:00:00')", "array<timestamp_ntz>", "no time zone"),
        ("array(struct(INTERVAL '1' DAY AS d))", "array<struct<d:interval day>>", "cast it to"),
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


def test_arrays_decimals_bytes_and_maps(spark: Any) -> None:
    """What an attribute of a DataFrame may be beside plain values, wide and as a map."""
    frame = spark.sql(
        "SELECT array('a', 'b', NULL) AS tags, array(struct(1.50BD AS p, DATE'2013-01-31' AS d)) AS items, "
        "12.50BD AS price, CAST(3 AS DECIMAL(20, 0)) AS n, binary('x') AS blob, "
        "map('k', 1, 'l', NULL) AS m, map('k', struct(1 AS f, array(2) AS g)) AS o, "
        "map(1, 2) AS numbered, INTERVAL '1' DAY AS unasked "
        "UNION ALL SELECT NULL, array(), NULL, NULL, NULL, map(), NULL, NULL, NULL"
    )
    rules = {
        "there": "tags IS NOT NULL AND blob IS NOT NULL AND items IS NOT NULL",
        "equal": "tags = 'a' OR blob = 'x' OR tags != 'z'",
        "price": "price = 12.5 AND n = 3 AND typeof(n) = 'int'",
        "keys": "m.k = 1 AND m.l IS NULL AND o.k.f = 1 AND o.k.g IS NOT NULL",
        "missing": "m.k IS NULL AND o.k.f IS NULL AND tags IS NULL AND items IS NOT NULL",
    }
    table = palio.ForwardingTable.compile(rules)
    found = [row["interfaces"] for row in palio.spark.forward(frame, table).collect()]
    assert found == [["there", "price", "keys"], ["missing"]]
    maps = frame.selectExpr("map('tags', tags, 'other', array('c')) AS m")
    table = palio.ForwardingTable.compile({"there": "tags IS NOT NULL", "absent": "tags IS NULL"})
    found = [row["interfaces"] for row in palio.spark.forward(maps, table, map="m").collect()]
    assert found == [["there"], ["absent"]]
    rows = [table.forward(row) for row in frame.select("tags", "o", "price").collect()]
    assert rows == [["there"], ["absent"]]


def test_structs_and_maps_are_there_or_not(spark: Any) -> None:
    """As in a WHERE clause, on which nothing else of them is asked."""
    frame = spark.sql(
        "SELECT 0 AS n, named_struct('a', 1, 'in', named_struct('b', 2)) AS s, map('k', 5) AS m UNION ALL "
        "SELECT 1, named_struct('a', NULL, 'in', NULL), map() UNION ALL SELECT 2, NULL, NULL"
    )
    rules = [
        "s IS NULL", "s IS NOT NULL", "m IS NULL", "m IS NOT NULL", "s.in IS NULL", "s.in IS NOT NULL",
        "s IS NOT NULL AND s.a IS NULL", "m IS NOT NULL AND m['k'] IS NULL", "m['k'] = 5", "size(m) = 0",
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        routed = palio.spark.forward(frame, {rule: rule for rule in rules})
    found = {row["n"]: row["interfaces"] for row in routed.collect()}
    for rule in rules:
        selected = {row["n"] for row in frame.filter(rule).collect()}
        assert {n for n in found if rule in found[n]} == selected, rule


def test_keys_of_maps_that_are_no_attributes(spark: Any) -> None:
    frame = spark.sql("SELECT map('a', INTERVAL '1' DAY) AS x, map(1, 2) AS y")
    with pytest.raises(palio.InvalidValue, match=r"column 'x\.a' has the type interval day"):
        palio.spark.forward(frame, palio.ForwardingTable.compile({"i": "x.a = 1"}))
    with pytest.raises(palio.InvalidValue, match="the keys of a map are strings"):
        palio.spark.forward(frame, palio.ForwardingTable.compile({"i": "y.a = 1"}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"json": "n"}, "column 'n' has the type int; json= takes a string"),
        ({"map": "s"}, "column 's' has the type string; map= takes a map<string, X>"),
        ({"map": "m"}, "map<int,array<int>>; map= takes"),
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
    frame = spark.sql("SELECT 1 AS n, 'x' AS s, map(1, array(1)) AS m")
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
