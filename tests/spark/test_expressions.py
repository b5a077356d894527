"""Expressions on Spark: computed by Spark for wide columns, with the answers of WHERE everywhere."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import palio
import palio.spark
from palio.errors import InvalidPredicate, RejectedPredicates

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

RULES = {
    "lower": "lower(s) = 'ann'",
    "less": "x < y",
    "twice": "x * 2 > 4",
    "december": "year(ts) = 2024 AND month(ts) = 12",
    "zero": "x / 0 IS NULL",
    "first": "tags[0] = 'a'",
    "tagged": "array_contains(tags, 'x')",
    "one": "size(tags) = 1",
    "key": "m['k'] = 5",
    "more": "m.k + 1 = 6 OR p + 1 > 3",
    "cast": "CAST(s AS INT) IS NULL AND s IS NOT NULL",
    "day": "d = DATE '2024-03-01'",
    "plain": "x = 3",
    "inner": "upper(o.name) = 'BOB' AND o.items[0].price > 3",
}
FOREIGN = {
    "near": "levenshtein(s, 'Anna') <= 1",
    "hour": "date_format(ts, 'HH') = '23'",
    "failing": "elt(x, 'a', 'b') = 'a'",
    "sum": "aggregate(tags, '', (acc, t) -> acc || t) = 'ax'",
    "exact": "CAST(s AS DECIMAL(10, 2)) IS NULL",
    "zone": "convert_timezone('UTC', 'Europe/Rome', ts) = TIMESTAMP '2024-03-01 11:00:00'",
    "part": "extract(HOUR FROM ts - TIMESTAMP '2024-03-01 05:00:00') = 5",
    "format": "to_date(concat(s, '1/3/2024'), 'd/M/yyyy') IS NULL AND s = 'Ann'",
}
EXPECTED = {
    1: {"lower", "less", "zero", "first", "tagged", "key", "more", "cast", "day"},
    2: {"twice", "december", "zero", "one", "more", "cast", "plain", "inner"},
    3: {"zero"},
}
EXPECTED_FOREIGN = {
    1: {"near", "failing", "sum", "exact", "zone", "part", "format"},
    2: {"hour", "exact"},
    3: {"exact"},
}
NO_SUCH = pytest.mark.filterwarnings("ignore:predicates ask about")


@pytest.fixture(scope="module")
def messages(spark: Any) -> Any:
    return spark.sql(
        """SELECT * FROM VALUES
        (1, 1L, 2.5D, 'Ann', TIMESTAMP '2024-03-01 10:00:00', array('a', 'x'), map('k', 5), 1.50,
         DATE '2024-03-01', named_struct('name', 'ann', 'items', array(named_struct('price', 2))), 'mine'),
        (2, 3L, 2.0D, 'bob', TIMESTAMP '2024-12-31 23:00:00', array('b'), map('j', 5), 2.50,
         DATE '2025-01-01', named_struct('name', 'bob', 'items', array(named_struct('price', 4))), 'mine'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann')
        AS t(id, x, y, s, ts, tags, m, p, d, o, `=lower(s)`)"""
    )


def answers(routed: Any) -> dict[int, set[str]]:
    return {
        row["id"]: set(row["interfaces"]) for row in routed.select("id", "interfaces").collect()
    }


def test_wide_columns(spark: Any, messages: Any) -> None:
    assert answers(palio.spark.forward(messages, RULES)) == EXPECTED
    assert answers(palio.spark.forward(messages, FOREIGN)) == EXPECTED_FOREIGN


def test_the_worker_computes_the_same(messages: Any) -> None:
    """JSON, and the struct of SQL's function: nothing is computed by Spark there."""
    from pyspark.sql import functions as F  # noqa: N812

    rules = {name: rule for name, rule in RULES.items() if name not in ("december", "day")}
    json = messages.select("id", F.to_json(F.struct("*")).alias("message"))
    expected = {row: found - {"december", "day"} for row, found in EXPECTED.items()}
    assert answers(palio.spark.forward(json, rules, json="message")) == expected
    table = palio.ForwardingTable.compile(RULES)
    palio.spark.register(messages.sparkSession, "palio_match", table)
    plain = messages.drop("m", "=lower(s)")
    found = answers(plain.selectExpr("id", "palio_match(struct(*)) AS interfaces"))
    assert found == {
        row: names - {"key"} - ({"more"} if row == 1 else set()) for row, names in EXPECTED.items()
    }


def test_tables_of_rows(spark: Any, messages: Any, tmp_path: Path) -> None:
    rows = spark.createDataFrame(
        [*RULES.items(), *FOREIGN.items()], "interface string, predicate string"
    )
    both = {row: EXPECTED[row] | EXPECTED_FOREIGN[row] for row in EXPECTED}
    table = palio.spark.compile(rows, path=tmp_path / "t.palio")
    assert answers(palio.spark.forward(messages, tmp_path / "t.palio")) == both
    assert answers(palio.spark.forward(messages, table, strategy="partitioned")) == both
    parts = palio.spark.partition(rows, tmp_path / "parts", shards=3)
    assert answers(palio.spark.forward(messages, parts)) == both


def test_partitioned_residuals(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(40).selectExpr("id", "id / 4 AS x", "concat('w', id) AS s")
    rules = {f"near{k}": f"abs(x - {k}.5D) < 0.3D" for k in range(20)}
    rules |= {f"like{k}": f"s LIKE 'w{k}_' AND x < 8" for k in range(20)}
    rules |= {f"low{k}": f"upper(s) = 'W{k}'" for k in range(20)}
    expected = answers(palio.spark.forward(frame, rules))
    assert sum(map(len, expected.values())) > 60
    rows = spark.createDataFrame(list(rules.items()), "interface string, predicate string")
    parts = palio.spark.partition(rows, tmp_path / "parts", shards=3)
    assert answers(palio.spark.forward(frame, parts)) == expected
    table = palio.spark.compile(rows)
    assert answers(palio.spark.forward(frame, table, strategy="partitioned")) == expected
    json = frame.selectExpr("id", "to_json(struct(x, s)) AS message")
    assert answers(palio.spark.forward(json, parts, json="message")) == expected


DECIMALS = [
    "d + 0.2 = 0.3", "d * 3 = 0.3", "abs(d - 0.3) <= 0.2", "d / 3 = 0.033333", "d % 0.03 = 0.01", "-d < 0",
    "d < e", "d = e", "d <> w", "d >= i", "d + e > w", "d * e = 0.01", "w - e > 5", "n + 1 > n", "d = n", "n % 7 = 1",
    "round(d, 1) = 0.1", "floor(d) = 0", "ceil(e) = 1", "d IN (e, 0.1)", "d BETWEEN e AND w", "coalesce(d, 0) = 0.1",
    "coalesce(n, 0) = 12345678901234567", "least(d, 0.05) = 0.05", "greatest(d, e) = e", "nullif(d, 0.1) IS NULL",
    "CAST(d AS STRING) = '0.10'", "CAST(d AS DOUBLE) + 0.2 = 0.3", "CAST(w AS BIGINT) = 12345678", "d + x = 0.3",
    "CASE WHEN d > 0.05 THEN 1 ELSE 2 END = 1", "d + 1 = i + 1", "o.d + 0.2 = 0.3", "e * 1.5 > 1", "w / e > 2",
    "d <=> e", "sign(d) = 1", "i + 0.1 = d", "x + 0.2 = 0.3", "d * 0.1 = 0.01", "n * 2 = 24691357802469134",
]  # fmt: skip


def test_decimals_are_exact_wherever_they_are_computed(spark: Any) -> None:
    """Shared expressions are computed by Spark, residuals by the worker: both as in WHERE."""
    from pyspark.sql import functions as F  # noqa: N812

    frame = spark.sql(
        "SELECT *, named_struct('d', d) AS o FROM VALUES "
        "(1, 0.10BD, 0.100000BD, 0.1BD, 1BD, 0L, 0.1D), (2, 12.34BD, 0.5BD, 12345678.25BD, 2BD, 12L, 12.34D), "
        "(3, -0.05BD, NULL, -7.123BD, 12345678901234567BD, -1L, -0.05D), (4, NULL, 1.5BD, NULL, 8BD, NULL, NULL) "
        "AS t(id, d, e, w, n, i, x)"
    ).selectExpr(
        "id", "CAST(d AS DECIMAL(10, 2)) d", "CAST(e AS DECIMAL(18, 6)) e", "CAST(w AS DECIMAL(38, 10)) w",
        "CAST(n AS DECIMAL(20, 0)) n", "i", "x", "named_struct('d', CAST(o.d AS DECIMAL(10, 2))) o",
    )  # fmt: skip
    rules = {str(number): text for number, text in enumerate(DECIMALS)}
    columns = [F.expr(text).alias(name) for name, text in rules.items()]
    selected = frame.select(F.col("id").alias("row"), *columns).collect()
    wanted = {row["row"]: {name for name in rules if row[name]} for row in selected}
    for mode in ("attributes", "residuals"):
        table = palio.ForwardingTable.compile(rules, expressions=mode)
        assert answers(palio.spark.forward(frame, table)) == wanted, mode
        rows = frame.drop("id").toArrow()
        found = dict(enumerate(map(set, table.forward_batch(rows).to_pylist()), 1))
        assert found == wanted, mode
    table = palio.ForwardingTable.compile({"a": "m.d + 0.2 = 0.3"}, expressions="residuals")
    maps = frame.selectExpr("id", "map('d', d) AS m")
    assert answers(palio.spark.forward(maps, table))[1] == {"a"}


ZONED = {
    "literal": "ts = TIMESTAMP '2024-03-01 10:00:00'",
    "hour": "hour(ts) >= 5",
    "trunc": "date_trunc('DAY', ts) = TIMESTAMP '2024-03-01 00:00:00'",
    "hours": "date_trunc('HOUR', ts) < TIMESTAMP '2024-03-01 10:30:00'",
    "date": "to_date(ts) = DATE '2024-03-01'",
    "days": "d = DATE '2024-03-01'",
    "from": "ts >= DATE '2024-03-01'",
    "both": "d < ts AND datediff(ts, d) >= 0",
    "text": "CAST(ts AS STRING) > '2024-03-01 06'",
    "month": "timestampadd(MONTH, 1, ts) > TIMESTAMP '2024-04-01 00:00:00'",
    "summer": "ts + INTERVAL 10 DAYS > TIMESTAMP '2024-03-11 03:00:00'",
    "format": "date_format(ts, 'HH') > '05'",
}


@pytest.fixture
def zone(spark: Any, request: Any) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


@NO_SUCH
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"], indirect=True)
def test_the_zone_of_the_session(spark: Any, zone: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    hours = "timestamp_micros(1709287200000000 + 1800000000 * (id - 400))"
    frame = spark.range(800).selectExpr("id", f"{hours} AS ts", f"to_date({hours}) AS d")
    rows = spark.createDataFrame(list(ZONED.items()), "interface string, predicate string")
    table = palio.spark.compile(rows)
    columns = [F.expr(rule).alias(name) for name, rule in ZONED.items()]
    wanted = {
        row["id"]: {name for name in ZONED if row[name]}
        for row in frame.select("id", *columns).collect()
    }
    assert answers(palio.spark.forward(frame, table)) == wanted
    assert all(any(name in found for found in wanted.values()) for name in ZONED)
    spark.conf.set("spark.sql.session.timeZone", "UTC")  # the table keeps its zone
    plain = [name for name in ZONED if name not in ("format", "days", "both")]
    elsewhere = answers(
        palio.spark.forward(
            frame.select("id", "ts"),
            palio.spark.compile(rows.where("interface != 'format'"))
            if zone == "UTC"
            else _without(table, "format"),
        )
    )
    assert {row: found & set(plain) for row, found in elsewhere.items()} == {
        row: found & set(plain) for row, found in wanted.items()
    }


def _without(table: palio.ForwardingTable, name: str) -> palio.ForwardingTable:
    return table.updated(remove=[name])


def test_what_no_column_has(messages: Any) -> None:
    with pytest.warns(UserWarning, match=r"'tsg' \(near it: 'ts'.*no such column"):
        routed = palio.spark.forward(
            messages, {"a": "tsg = 5 OR nosuch + 1 = 2", "b": "nosuch + 1 IS NULL"}
        )
    assert answers(routed) == {1: {"b"}, 2: {"b"}, 3: {"b"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        palio.spark.forward(messages, {"a": "m.k = 5 AND lower(s) = 'a'"})


def test_what_spark_refuses(messages: Any) -> None:
    with pytest.raises(
        InvalidPredicate, match=r"Spark does not compute levenstein\(s, 'a'\): .*levenstein"
    ):
        palio.spark.forward(messages, {"a": "levenstein(s, 'a') = 1", "b": "x = 1"})
    with pytest.raises(InvalidPredicate, match="computed by Spark only, of wide columns"):
        palio.spark.forward(messages, {"a": "soundex(s) = 'A500'"}, json="s")
    with pytest.raises(RejectedPredicates, match="interface 'a'"):
        palio.spark.forward(messages, {"a": "now() > ts"})
    ours = {"a": "lower(x) = '1'", "b": "x = 1"}  # Spark would cast it; nothing is cast here
    assert answers(palio.spark.forward(messages, ours)) == {1: {"b"}, 2: set(), 3: set()}


def test_errors_never_end_a_job(spark: Any) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (1, 9223372036854775807L, 1e300D, 'x'), (2, -9223372036854775807L - 1L, 0D, '5'), "
        "(3, 0L, double('NaN'), '2024-01-01') AS t(id, i, x, s)"
    )
    texts = [
        "i + 1 > 0", "i * 2 = 0", "-i > 0", "abs(i) >= 0", "i DIV -1 > 0", "i DIV 0 = 1", "i % 0 = 1",
        "10 / i > 0", "round(i, -2) > 0", "floor(x) > 0", "ceil(x * 1e300D) > 0", "CAST(x AS INT) > 0",
        "ceil(i * 1D) < 4", "floor(i * 1D) < 4",
        "CAST(s AS BIGINT) = 5", "CAST(s AS TIMESTAMP) IS NOT NULL", "CAST(s AS BOOLEAN)",
        "split_part(s, '-', i) = 'x'", "element_at(split(s, '-'), i) = 'x'", "substring(s, i, i) = ''",
        "timestampadd(DAY, 3, CAST(s AS TIMESTAMP)) IS NOT NULL", "get_json_object(s, '$.a') = '1'",
        "make_date(i, 1, 1) IS NOT NULL", "sqrt(-x) >= 0", "1 / (1 / (i - i)) IS NULL", "to_number(s, '999') = 5",
        "conv(s, 10, 16) = 'A'", "unhex(s) IS NOT NULL", "sequence(i, i + 3)[0] = 1", "parse_json(s) IS NULL",
        "array_insert(array(1), CAST(i AS INT), 5) IS NULL", "CAST(x AS DECIMAL(5, 2)) > 1", "bin(i) LIKE '1%'",
    ]  # fmt: skip
    routed = palio.spark.forward(frame, {text: text for text in texts})
    found = answers(routed)
    assert "CAST(s AS BIGINT) = 5" in found[2]
    assert "1 / (1 / (i - i)) IS NULL" in found[1]
    plain = {text for text in texts if _is_ours(text)}
    table = palio.ForwardingTable.compile({text: text for text in plain})
    for row in frame.collect():
        message = {name: row[name] for name in ("i", "x", "s")}
        assert found[row["id"]] & plain == set(table.forward(message))


def _is_ours(text: str) -> bool:
    try:
        palio.parse(text)
    except palio.ParseError:
        return False
    return True


def test_the_guard_against_errors(spark: Any) -> None:
    """What keeps an error of Spark's own functions from ending a job: nothing documents it."""
    row = spark.sql(
        "SELECT decode(try_to_binary(CAST(elt(CAST(id + 5 AS INT), 'a') AS STRING), 'utf-8'), 'utf-8') AS a "
        "FROM range(1)"
    ).collect()[0]
    assert row["a"] is None


def test_streams(spark: Any, tmp_path: Path) -> None:
    tables = palio.spark.TableDirectory(tmp_path / "tables")
    spark.range(5).selectExpr("id", "concat('W', id) AS s").write.parquet(str(tmp_path / "in"))
    rows = spark.createDataFrame(
        [("a", "lower(s) = 'w3'"), ("b", "levenshtein(s, 'w2') = 1")],
        "interface string, predicate string",
    )
    tables.publish(palio.spark.compile(rows))
    source = spark.readStream.schema("id bigint, s string").parquet(str(tmp_path / "in"))
    query = palio.spark.route_stream(
        source, tables, tmp_path / "out", output="array", trigger={"availableNow": True}
    )
    query.awaitTermination()
    assert query.exception() is None
    routed = spark.read.parquet(str(tmp_path / "out"))
    assert {row["id"]: row["interfaces"] for row in routed.collect()} == {
        0: [],
        1: [],
        2: ["b"],
        3: ["a"],
        4: [],
    }


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("ts > '2024-03-01'", "'ts' with strings, and it is a time.*write DATE '2024-03-01'"),
        ("to_date(ts) = '2024-03-01'", "with strings, and it is a time"),
        ("x = '5'", "'x' with strings, and it is a number.*without quotes"),
        ("s = 5 AND y > 0", "'s' with numbers, and it is a string.*CAST"),
        ("tags = 'x'", "'tags' with strings, and it is an array.*array_contains"),
        ("tags.name = 'x'", "'tags' is an array.*exists"),
    ],
)
def test_types_that_never_match_are_said(messages: Any, rule: str, says: str) -> None:
    with pytest.warns(UserWarning, match=says):
        assert not any(answers(palio.spark.forward(messages, {"a": rule})).values())


def test_one_rule_of_the_right_type_is_enough(messages: Any) -> None:
    """Rules of other dialects ask for several types."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = palio.spark.forward(messages, {"a": "x = '1' OR x = 1", "b": "s IS NOT NULL"})
    assert answers(found) == {1: {"a", "b"}, 2: {"b"}, 3: set()}
