"""Tables compiled on executors are those of ForwardingTable.compile; nothing is dropped silently."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.differential.generate import draw_predicates, draw_rows
from tests.spark import encodings

import palio
import palio.spark
from palio.errors import InvalidPredicate
from palio.lab.data import flights

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

EDGES = [
    ("everything", "TRUE"),
    ("nothing", "FALSE"),
    ("sets", "i IN (1, 2.5, 3) OR s IN ('a', '\"', 'é') OR b IN (TRUE)"),
    ("infinite", "x IN (1.5, CAST('Infinity' AS DOUBLE)) OR x < CAST('-Infinity' AS DOUBLE)"),
    ("times", "at IN (TIMESTAMP '2013-01-31 10:00:00', TIMESTAMP '1970-01-01 00:00:00')"),
    ("large", "i = 9223372036854775807 OR x = 9007199254740993"),
    ("types", "typeof(s) = 'string' AND x IS NOT NULL AND i IS NULL"),
    ("texts", "s LIKE 'a%' AND NOT s LIKE '%b' OR contains(s, '\\n') OR s != ''"),
    ("nothing", "b"),
    ("everything", "c"),
]


def pairs() -> list[tuple[str, str]]:
    """Predicates of many shapes; interfaces come back, so that they are disjunctions."""
    rng = random.Random(7)
    drawn = draw_predicates(rng, 150)
    return [*EDGES, *((f"i{n % 100}", text.spark) for n, text in enumerate(drawn))]


@pytest.fixture(scope="module")
def predicates(spark: Any) -> Any:
    rows = pa.table(dict(zip(("interface", "predicate"), zip(*pairs(), strict=True), strict=True)))
    return spark.createDataFrame(rows).repartitionByRange(3, "predicate").cache()


def collected(predicates: Any) -> list[tuple[str, str]]:
    return [(row["interface"], row["predicate"]) for row in predicates.collect()]


@pytest.mark.parametrize("reduce", [False, True])
def test_the_same_table(predicates: Any, reduce: bool) -> None:
    rows = draw_rows(random.Random(8), 200)
    expected = palio.ForwardingTable.compile(collected(predicates))
    table = palio.spark.compile(predicates, reduce=reduce)
    assert table.interfaces == expected.interfaces
    assert table.forward_batch(rows).to_pylist() == expected.forward_batch(rows).to_pylist()
    if reduce:
        whole = palio.parse("FALSE")
        for name, text in collected(predicates):
            whole = whole | palio.parse(text) if name == "i7" else whole
        assert table.predicate("i7").size <= palio.reduce(whole).size


def test_from_and_to_spark(spark: Any, tmp_path: Path) -> None:
    """Compile into a directory, forward through it."""
    entries = list(flights.subscriptions(100))
    frame = spark.createDataFrame(entries, ["who", "what"])
    tables = palio.spark.TableDirectory(tmp_path / "tables")
    table = palio.spark.compile(frame, interface="who", predicate="what", path=tables)
    assert tables.current()[0] == 1
    palio.spark.compile(frame, interface="who", predicate="what", path=tables.path)
    assert tables.current()[0] == 2
    palio.spark.compile(frame, interface="who", predicate="what", path=tmp_path / "one.palio")
    messages = encodings.encoded(flights.generate(200, 5))
    rows = spark.createDataFrame(messages.select(["number", "json"]))
    expected = table.forward_batch(messages, json="json").to_pylist()
    assert any(expected)
    for where in (tables, str(tables.path), tmp_path / "one.palio"):
        routed = palio.spark.forward(rows, where, json="json")
        assert encodings.lists_of(routed.collect()) == expected


def test_constraint_rows(spark: Any) -> None:
    rows = {
        "interface": ["a", "a", "b", "b"],
        "filter": [1, 1, 2, 3],
        "name": ["x", "y", "x", "z"],
        "op": [">", "=", "in", "absent"],
        "type": ["int", "string", "int", None],
        "value": ["2", "u", "[1, 5]", None],
    }
    table = palio.spark.compile(spark.createDataFrame(pa.table(rows)))
    assert table.interfaces == ("a", "b")
    assert table.forward({"x": 5, "y": "u", "z": 0}) == ["a", "b"]
    assert table.forward({"x": 3}) == ["b"]
    doubled = {name: [*column, *column] for name, column in rows.items()}
    doubled["filter"] = [1, 1, 2, 3, 11, 11, 12, 13]
    smaller = palio.spark.compile(spark.createDataFrame(pa.table(doubled)), reduce=True)
    assert smaller.predicate("a").size == 2
    assert smaller.forward({"x": 3}) == ["b"]
    rows["op"][0] = "~"
    with pytest.raises(palio.InvalidPredicate, match="no op '~'"):
        palio.spark.compile(spark.createDataFrame(pa.table(rows)))


BAD = [
    ("good", "x > 1"),
    ("open", "x > "),
    ("like", "s RLIKE '(a'"),
    ("null", None),
    (None, "x = 1"),
    ("mixed", "x = 2"),
    ("mixed", "x = = 3"),
    *((f"bad-{i}", "(((") for i in range(20)),
]


@pytest.mark.parametrize("reduce", [False, True])
def test_rejects(spark: Any, reduce: bool) -> None:
    frame = spark.createDataFrame(BAD, "interface string, predicate string").coalesce(1)
    compiled = palio.spark.compile_with_rejects(frame, reduce=reduce)
    assert compiled.table.interfaces == ("good", "mixed")
    assert compiled.table.forward({"x": 2}) == ["good", "mixed"]
    rejects = compiled.rejects.to_pylist()
    wrong = [row for row in BAD if row not in (("good", "x > 1"), ("mixed", "x = 2"))]
    assert [(r["interface"], r["predicate"]) for r in rejects] == wrong
    assert all(r["error"] for r in rejects)
    with pytest.raises(palio.InvalidPredicate) as refused:
        palio.spark.compile(frame, reduce=reduce)
    shown = str(refused.value)
    assert shown.startswith("25 rows are no predicates; compile_with_rejects")
    assert "interface 'open': the expression ends too early" in shown
    assert "interface 'null': the predicate is NULL" in shown
    assert "interface None: the interface is NULL" in shown
    assert shown.endswith("... and 20 more")


@pytest.mark.parametrize("reduce", [False, True])
def test_rules_in_another_dialect(spark: Any, reduce: bool) -> None:
    rules = [
        ("ann", '{"dest": ["MXP"], "price": [{"numeric": ["<", 500]}]}'),
        ("bob", "dest = 'MXP'"),
        ("cy", '{"dest": [{"prefix": "L"}]}'),
    ]
    rows = spark.createDataFrame(rules, "interface string, predicate string")
    found = palio.spark.compile_with_rejects(rows, dialect="eventbridge", reduce=reduce)
    assert found.rejects["interface"].to_pylist() == ["bob"]
    assert found.table.forward({"dest": "MXP", "price": 450}) == ["ann"]
    assert found.table.forward({"dest": "LHR"}) == ["cy"]
    with pytest.raises(
        InvalidPredicate, match="no dialect 'xml'; there are sql, cesql, cloudevents, eventbridge"
    ):
        palio.spark.compile(rows, dialect="xml")


def test_zero_predicates_and_wrong_schemas(spark: Any) -> None:
    empty = spark.createDataFrame([], "interface string, predicate string")
    assert palio.spark.compile(empty).interfaces == ()
    assert palio.spark.compile(empty, reduce=True).forward({"x": 1}) == []
    with pytest.raises(
        palio.InvalidPredicate, match="no column 'predicate'; there are interface, b"
    ):
        palio.spark.compile(spark.createDataFrame([(1, 2)], ["interface", "b"]))
    with pytest.raises(palio.InvalidPredicate, match="its type is bigint"):
        palio.spark.compile(spark.createDataFrame([(1, 2)], ["interface", "predicate"]))
    numbered = spark.createDataFrame([(17, "x = 1")], ["interface", "predicate"])
    assert palio.spark.compile(numbered).interfaces == ("17",)
