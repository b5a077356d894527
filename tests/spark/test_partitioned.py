"""The partitioned strategy on Spark: the answers of broadcast, whatever the table and its keys."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.differential.generate import draw_predicates, draw_rows
from tests.spark import encodings

import palio
import palio.spark
from palio.errors import InvalidFile
from palio.lab.data.workloads.workload import constraint_rows
from palio.spark import sizing

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

ROOT = Path(__file__).parents[2]


def is_partitioned(routed: Any) -> bool:
    return "palio_match_shard" in routed._jdf.queryExecution().toString()


# ---- flights


@pytest.fixture(scope="module")
def parts(
    case: encodings.Case, tmp_path_factory: pytest.TempPathFactory
) -> palio.spark.PartitionedTable:
    table = palio.ForwardingTable.compile(case.predicates)
    return palio.spark.partition(table, tmp_path_factory.mktemp("parts") / "t", shards=5)


@pytest.mark.parametrize(
    "encoding",
    ["wide", "json", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("map", "variant"))],
)
def test_equals_where(
    frame: Any,
    case: encodings.Case,
    parts: palio.spark.PartitionedTable,
    expected_by_encoding: dict[str, list[list[str]]],
    encoding: str,
) -> None:
    table = parts if encoding != "map" else palio.ForwardingTable.compile(case.strings)
    options = encodings.ENCODINGS[encoding]
    frame = frame.where(f"number < {encodings.FEW}")
    routed = palio.spark.forward(frame, table, strategy="partitioned", **options)
    assert is_partitioned(routed)
    assert routed.columns == [*frame.columns, "interfaces"]
    assert [f.dataType for f in routed.schema] == [
        *(f.dataType for f in frame.schema),
        routed.schema["interfaces"].dataType,
    ]
    found = encodings.lists_of(routed.select("number", "interfaces").collect())
    assert found == expected_by_encoding[encoding][: encodings.FEW]


def test_outputs(
    frame: Any,
    parts: palio.spark.PartitionedTable,
    case: encodings.Case,
    expected: list[list[str]],
) -> None:
    few = frame.select("number", "json").where(f"number < {encodings.FEW}")
    expected = expected[: encodings.FEW]
    pairs = palio.spark.forward(few, parts, output="pairs", json="json")
    assert pairs.columns == ["number", "json", "interface"]
    wanted = [(number, name) for number, names in enumerate(expected) for name in names]
    assert sorted((r["number"], r["interface"]) for r in pairs.collect()) == sorted(wanted)
    flags = palio.spark.forward(few, parts, output="flag", json="json").collect()
    assert {r["number"]: r["matched"] for r in flags} == {
        i: bool(e) for i, e in enumerate(expected)
    }
    ids = palio.spark.forward(few, parts, output="ids", into="to", json="json").collect()
    order = list(case.predicates)
    assert encodings.lists_of(ids, "to") == [[order.index(n) for n in e] for e in expected]


@pytest.mark.slow
def test_in_each_batch_of_a_stream(
    spark: Any,
    folder: Path,
    parts: palio.spark.PartitionedTable,
    expected: list[list[str]],
    tmp_path: Path,
) -> None:
    schema = spark.read.parquet(str(folder)).schema
    source = spark.readStream.schema(schema).parquet(str(folder)).select("number", "json")
    source = source.where(f"number < {encodings.FEW}")
    with pytest.raises(palio.InvalidValue, match="forward each micro-batch"):
        palio.spark.forward(source, parts, json="json")
    table = palio.ForwardingTable.compile({"a": "x = 1"})
    with pytest.raises(palio.InvalidValue, match="forward each micro-batch"):
        palio.spark.forward(source, table, strategy="partitioned", json="json")
    assert palio.spark.forward(source, table, worker_memory=1, json="json").isStreaming
    out = str(tmp_path / "out")

    def forward(batch: Any, _: int) -> None:
        palio.spark.forward(batch, parts, json="json").write.mode("append").parquet(out)

    query = source.writeStream.foreachBatch(forward).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert encodings.lists_of(spark.read.parquet(out).collect()) == expected[: encodings.FEW]


# ---- made by executors


EDGES = [
    ("everything", "TRUE"),
    ("nothing", "FALSE"),
    ("sets", "i IN (1, 2.5, 3) OR s IN ('a', '\"', 'é') OR b IN (TRUE)"),
    ("times", "at IN (TIMESTAMP '2013-01-31 10:00:00', TIMESTAMP '1970-01-01 00:00:00')"),
    ("numbers", "n = 1.0 OR x = 1 OR i = 9223372036854775807 OR x = 9007199254740993"),
    ("weak", "n != 5 AND s IS NOT NULL AND i IS NULL"),
    ("texts", "s LIKE 'a%' AND NOT s LIKE '%b' OR contains(s, '\\n') OR s != ''"),
    ("long", f"n IN ({', '.join(map(str, range(-5, 40)))})"),
    ("nothing", "b"),
    ("everything", "c"),
]


@pytest.mark.slow
def test_made_on_executors(spark: Any, tmp_path: Path) -> None:
    """From texts and from constraint rows: the answers of the table, interfaces in their order."""
    rng = random.Random(5)
    drawn = [(f"i{n % 70}", text.spark) for n, text in enumerate(draw_predicates(rng, 120))]
    entries = [*EDGES, *drawn]
    rows = draw_rows(rng, 150)
    rows = rows.append_column("number", pa.array(range(len(rows))))
    names = [name for name in rows.column_names if name != "number"]
    frame = spark.createDataFrame(rows)
    texts = spark.createDataFrame(entries, ["who", "what"])
    made = palio.spark.partition(
        texts, tmp_path / "texts", shards=6, interface="who", predicate="what"
    )
    table = palio.ForwardingTable.compile(entries)
    assert made.interfaces == len(table.interfaces)
    routed = palio.spark.forward(frame, made, columns=names, output="ids")
    found = encodings.lists_of(routed.select("number", "interfaces").collect())
    assert found == table.forward_batch(rows, ids=True).to_pylist()

    bare = palio.parse("TRUE").filters[0]
    parsed = ((name, palio.parse(text)) for name, text in drawn)
    constraints = constraint_rows((name, p) for name, p in parsed if bare not in p.filters)
    table = palio.ForwardingTable.compile(constraints)
    plain = pa.table({f: constraints[f].cast(pa.string()) for f in constraints.column_names})
    filters = spark.createDataFrame(plain).repartitionByRange(3, "value")
    made = palio.spark.partition(filters, tmp_path / "rows", shards=3)
    routed = palio.spark.forward(frame, made, columns=names)
    found = encodings.lists_of(routed.select("number", "interfaces").collect())
    assert [set(names) for names in found] == [
        set(names) for names in table.forward_batch(rows).to_pylist()
    ]


def test_rejects(spark: Any, tmp_path: Path) -> None:
    texts = spark.createDataFrame([("a", "x = 1"), ("b", "x ="), (None, "x")], "interface string, predicate string")  # fmt: skip
    with pytest.raises(palio.InvalidPredicate, match="2 rows are no predicates"):
        palio.spark.partition(texts, tmp_path / "t")
    rows = [("a", 0, "x", "=", "int", "1"), ("b", 0, "x", "~", "int", "1")]
    filters = spark.createDataFrame(rows, "interface string, filter int, name string, op string, type string, value string")  # fmt: skip
    with pytest.raises(palio.InvalidPredicate, match=r"interface 'b': .* no op '~'"):
        palio.spark.partition(filters, tmp_path / "t")


def test_nothing_to_do(spark: Any, tmp_path: Path) -> None:
    """Zero filters, zero rows, rows that are no messages."""
    none = spark.createDataFrame([], "interface string, predicate string")
    made = palio.spark.partition(none, tmp_path / "none")
    frame = spark.createDataFrame([("{",), ('{"x": 1}',), (None,)], "m string")
    good = frame.where("m != '{' OR m IS NULL")
    assert [r["interfaces"] for r in palio.spark.forward(good, made, json="m").collect()] == [
        []
    ] * 2
    table = palio.ForwardingTable.compile({"x": "x = 1", "all": "TRUE"})
    options: dict[str, Any] = {"json": "m", "strategy": "partitioned"}
    assert palio.spark.forward(frame.where("m = ''"), table, **options).collect() == []
    for output, wanted in (("array", [None, ["x", "all"], ["all"]]), ("flag", [None, True, True])):
        routed = palio.spark.forward(
            frame, table, invalid="null", output=output, into="to", **options
        )
        found = {row["m"]: row["to"] for row in routed.collect()}
        assert [found[m] for m in ("{", '{"x": 1}', None)] == wanted
    with pytest.raises(Exception, match="a row is no message"):
        palio.spark.forward(frame, table, **options).collect()


# ---- skew


def test_hot_keys(spark: Any, tmp_path: Path) -> None:
    """Nine of ten filters under one key, nine of ten messages with one value of another."""
    entries = [(f"h{n}", f"x = 1 AND y > {n}") for n in range(900)]
    entries += [(f"i{n}", f"x = {n} OR z = 'hot' AND y = {n}") for n in range(100)]
    table = palio.ForwardingTable.compile(entries)
    made = palio.spark.partition(table, tmp_path / "t", shards=4)
    messages = spark.range(4000, numPartitions=2).selectExpr(
        "id AS number",
        "IF(id % 10 = 0, id % 50, 1) AS x",
        "id % 100 AS y",
        "IF(id % 10 = 5, 'cold', 'hot') AS z",
        "repeat('-', 100) AS ballast",
    )
    expected = palio.spark.forward(messages, table, strategy="broadcast")
    setting = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    spark.conf.set(setting, "64k")
    try:
        routed = palio.spark.forward(messages, made)
        found = encodings.lists_of(routed.collect())
        plan = routed._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.unset(setting)
    assert found == encodings.lists_of(expected.collect())
    assert "skewed" in plan  # the engine split the shards that too many messages visit


# ---- choosing


def test_the_first_format_is_read(spark: Any) -> None:
    """A directory that a version of Palio without expressions has written."""
    keyed = {
        f"k{n}": f"dest = '{dest}' AND price < {100 * n}"
        for n, dest in enumerate(["MXP", "LIN", "JFK", "BOS"])
    }
    rules = {**keyed, "low": "price < 0", "pair": "dest = 'MXP' AND gate = 3 OR gate = 4"}
    path = Path(__file__).parent / "format1_parts"
    assert all(file.read_bytes()[8] == 1 for file in path.glob("*.palio"))
    rows = [
        (dest, price, gate)
        for dest in ("MXP", "LIN", "JFK", "BOS", "x", None)
        for price in (-1, 50, 150, 250, None)
        for gate in (3, 4, None)
    ]
    frame = spark.createDataFrame(rows, "dest STRING, price BIGINT, gate BIGINT")
    found = palio.spark.forward(frame, palio.spark.PartitionedTable(path)).collect()
    table = palio.ForwardingTable.compile(rules)
    assert len(found) == len(rows)
    for row in found:
        message = {"dest": row["dest"], "price": row["price"], "gate": row["gate"]}
        assert row["interfaces"] == table.forward(message), message


def test_auto(spark: Any, tmp_path: Path) -> None:
    table = palio.ForwardingTable.compile({f"i{n}": f"x = {n}" for n in range(500)})
    frame = spark.range(20).selectExpr("id AS x")
    path = tmp_path / "t.palio"
    table.save(path)
    assert not is_partitioned(palio.spark.forward(frame, path))
    size = path.stat().st_size
    assert not is_partitioned(palio.spark.forward(frame, path, worker_memory=size))
    routed = palio.spark.forward(frame, path, worker_memory=size - 1)
    assert is_partitioned(routed)
    assert {row["x"]: row["interfaces"] for row in routed.collect()} == {
        x: [f"i{x}"] for x in range(20)
    }
    assert is_partitioned(palio.spark.forward(frame, table, worker_memory="4k"))
    made = palio.spark.partition(path, tmp_path / "parts", shards=2)
    assert is_partitioned(palio.spark.forward(frame, made.path))
    with pytest.raises(InvalidFile, match="the table is partitioned, so it cannot be broadcast"):
        palio.spark.forward(frame, str(made.path), strategy="broadcast")
    with pytest.raises(palio.InvalidValue, match="worker_memory is a number of bytes"):
        palio.spark.forward(frame, path, worker_memory="much")


def test_what_an_executor_has() -> None:
    class Session:
        def __init__(self, **conf: str) -> None:
            self.conf = {key.replace("_", "."): value for key, value in conf.items()}

    def memory(**conf: str) -> int:
        return sizing.memory(Session(**conf), None)  # type: ignore[arg-type]

    assert memory() == 512 << 20
    assert memory(spark_executor_memory="8g") == 4 << 30
    limited = {"spark_executor_pyspark_memory": "2g", "spark_executor_cores": "4"}
    assert memory(spark_executor_memory="8g", **limited) == 256 << 20
    assert memory(spark_executor_pyspark_memory="512") == 256 << 20


def test_shipped(spark: Any, tmp_path: Path) -> None:
    """Workers find the shards when the directory is gone, and say so when it was not shipped."""
    table = palio.ForwardingTable.compile({"a": "x = 1", "b": "x > 3", "c": "x IN (2, 5)"})
    made = palio.spark.partition(table, tmp_path / "t", shards=2)
    frame = spark.range(6).selectExpr("id AS x")
    shipped = palio.spark.forward(frame, made, shared=False)
    other = palio.spark.partition(table, tmp_path / "other", shards=2)
    lost = palio.spark.forward(frame, other)
    for path in [*made.files, made.path / "rest.palio", *other.files]:
        path.unlink()
    found = {row["x"]: row["interfaces"] for row in shipped.collect()}
    assert found == {0: [], 1: ["a"], 2: ["c"], 3: [], 4: ["b"], 5: ["b", "c"]}
    with pytest.raises(Exception, match="a worker does not see this table"):
        lost.collect()


@pytest.mark.slow
def test_a_table_ten_times_the_memory_of_a_worker(tmp_path: Path) -> None:
    """Workers to whom the kernel gives no more than a tenth of the table build it, and forward."""
    paths = os.pathsep.join([str(ROOT), *sys.path])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("limited_run.py")), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads((tmp_path / "answers.json").read_text())
    print({name: value for name, value in found.items() if name.endswith(("bytes", "max"))})
    assert found["table_bytes"] >= 10 * found["allowed_bytes"]
    for way in ("split", "texts", "constraints"):  # by the driver, by workers
        assert found["answers"][way] == found["expected"], way
    assert "Cannot allocate memory" in found["broadcast"]
