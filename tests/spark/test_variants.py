"""Variants hold types that JSON lacks: the answers are those of Spark SQL on the values themselves."""

from __future__ import annotations

from typing import Any

import pytest

import palio
import palio.spark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# name, its type for Spark's own comparison, values
VALUES = [
    ("at", "timestamp", ["TIMESTAMP'2013-01-31 10:00:00.25'", "TIMESTAMP'1969-12-31 23:59:59Z'"]),
    ("day", "date", ["DATE'2013-01-31'", "DATE'1582-10-04'"]),
    ("money", "decimal(9,2)", ["1.50BD", "-3.00BD"]),
    ("many", "decimal(38,3)", ["12345678901234567890.125BD", "7BD"]),
    ("small", "float", ["CAST(0.1 AS FLOAT)", "CAST(2.5 AS FLOAT)"]),
    ("real", "double", ["double('NaN')", "double('-Infinity')", "1e300D"]),
    ("whole", "bigint", ["9223372036854775807", "-1"]),
    ("word", "string", ["'2013-01-31 10:00:00.25+00:00'", "'NaN'", "'DATE'"]),
    ("flag", "boolean", ["true", "false"]),
]
LITERALS = {
    "at": ["TIMESTAMP '2013-01-31 10:00:00.25'", "TIMESTAMP '1970-01-01'", "DATE '2013-02-01'"],
    "day": ["DATE '2013-01-31'", "TIMESTAMP '2013-01-31 00:00:01'"],
    "money": ["1.5", "2", "-3.0"],
    "many": ["7", "1e19"],
    "small": ["0.1", "2.5", "0.2"],
    "real": ["1e300", "0", "CAST('-Infinity' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"],
    "whole": ["9223372036854775807", "0"],
    "word": ["'2013-01-31 10:00:00.25+00:00'", "'NaN'", "'A'"],
}


def predicates() -> dict[str, str]:
    texts = [
        f"{name} {op} {literal}"
        for name, literals in LITERALS.items()
        for literal in literals
        for op in ("=", "<", ">=", "!=")
    ]
    texts += [f"{name} IS NULL" for name, _, _ in VALUES] + ["flag", "NOT flag"]
    return {f"{i}: {text}": text for i, text in enumerate(texts)}


@pytest.mark.parametrize(("zone", "inside"), [("UTC", ""), ("America/New_York", "a.b.")])
def test_types_that_json_lacks(spark: Any, zone: str, inside: str) -> None:
    """A row for each value, and one with the first of each; alone, and inside objects."""
    texts = predicates()
    rows = [{name: value} for name, _, values in VALUES for value in values]
    rows += [{name: values[0] for name, _, values in VALUES}, {}]
    tuples = []
    for number, row in enumerate(rows):
        values = [f"CAST({row.get(name, 'NULL')} AS {kind})" for name, kind, _ in VALUES]
        tuples.append(f"({number}, {', '.join(values)})")
    names = [name for name, _, _ in VALUES]
    packed = f"struct({', '.join(names)})"
    for key in reversed(inside.split(".")[:-1]):
        packed = f"named_struct('{key}', {packed})"
    frame = spark.sql(
        f"SELECT *, to_variant_object({packed}) AS v "
        f"FROM VALUES {', '.join(tuples)} AS t(number, {', '.join(names)})"
    )
    asked = {
        key: " ".join(f"{inside}{w}" if w in names else w for w in text.split(" "))
        for key, text in texts.items()
    }
    table = palio.ForwardingTable.compile(asked)
    with_oracle = frame.selectExpr(
        "number", "v", *(f"coalesce(({text}), false) AS `{key}`" for key, text in texts.items())
    )
    wanted = {
        row["number"]: [key for key in texts if row[key]] for row in with_oracle.drop("v").collect()
    }
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        routed = palio.spark.forward(frame.select("number", "v"), table, variant="v")
        found = {row["number"]: row["interfaces"] for row in routed.collect()}
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert found == wanted


def test_what_stays_text_and_what_is_no_message(spark: Any) -> None:
    frame = spark.sql(
        "SELECT to_variant_object(named_struct('at', TIMESTAMP'2013-01-31 10:00:00', "
        "'bytes', X'6162', 'local', TIMESTAMP_NTZ'2013-01-31 10:00:00')) AS v "
        'UNION ALL SELECT CAST(NULL AS VARIANT) UNION ALL SELECT parse_json(\'{"at": '
        '{"$time": "2013-01-31T10:00:00Z"}}\')'
    )
    table = palio.ForwardingTable.compile(
        {
            "at": "at = TIMESTAMP '2013-01-31 10:00:00'",
            "bytes": "bytes = 'YWI='",
            "local": "local = '2013-01-31 10:00:00'",
            "none": "at IS NULL",
        }
    )
    found = palio.spark.forward(frame, table, variant="v").collect()
    assert [row["interfaces"] for row in found] == [["at", "bytes", "local"], ["none"], ["at"]]
    for expression, says in (
        (
            "to_variant_object(named_struct('at', array(DATE'+20000-01-31')))",
            "outside the years 1 to 9999",
        ),
        (
            "to_variant_object(named_struct('at', DATE'+20000-01-31'))",
            "outside the years 1 to 9999",
        ),
    ):
        bad = spark.sql(f"SELECT {expression} AS v")
        with pytest.raises(Exception, match=says):
            palio.spark.forward(bad, table, variant="v").collect()
        routed = palio.spark.forward(bad, table, variant="v", invalid="null")
        assert routed.first()["interfaces"] is None
