"""What Spark accepts behind WHERE works as a rule over wide columns, because Spark computes it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import palio.spark
from palio.errors import InvalidPredicate

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TEXTS = """\
b = X'FF'
X'FF' = b
hex(b) = hex(x'ff')
b > X'41'
b IN (X'FF', X'01')
b BETWEEN X'41' AND X'FF'
b IS NOT NULL AND b <> X'00'
concat(b, c) = X'FF41'
coalesce(b, X'00') = X'00'
startswith(b, X'FF')
substring(c, 1, 1) = X'41'
CAST(s AS BINARY) = X'616E6E'
unhex('FF') = b
ts > TIMESTAMP_NTZ '2024-03-01 10:30:00'
tags = array('a')
tags != array('a')
tags > array('a')
tags <=> array('a')
tags IN (array('a'), array('b', 'c'))
nums = array(1, 2)
nums > array(1L, 0L)
nums IS NOT DISTINCT FROM array(1L, 2L)
array(n, i) = array(5, 7)
array_distinct(tags) = array('a')
sort_array(tags) = array('b', 'c')
split(s, 'n') = array('a', '', '')
tags || array('z') = array('a', 'z')
concat(nums, array(9L)) = array(3L, 9L)
transform(tags, (t, i) -> concat(t, i))[0] = 'a0'
exists(transform(nums, (t, i) -> t + i), z -> z = 3)
filter(nums, (x, i) -> i < 1)[0] = 1
array_sort(nums, (l, r) -> CASE WHEN l < r THEN 1 ELSE -1 END)[0] = 2
s COLLATE UTF8_LCASE = 'ann'
s = 'ann' COLLATE UTF8_LCASE
s IN ('bob', 'ann' COLLATE UTF8_LCASE)
s COLLATE UTF8_LCASE LIKE 'AN_'
collate(s, 'UTF8_LCASE') != 'ann'
startswith(s COLLATE UTF8_LCASE, 'AN')
NOT (s COLLATE UTF8_LCASE BETWEEN 'AM' AND 'AO')
overlay(s PLACING 'x' FROM 1) = 'xnn'
overlay(s PLACING 'x' FROM 1 FOR 3) = 'x'
overlay(s, 'xy', 2) = 'axy'
struct(n AS a).a = 5
struct(n AS a, s AS `b c`).`b c` = 'ann'
to_json(struct(n AS a, s)) = '{"a":5,"s":"ann"}'
s::char(2) = 'ann'
CAST(s AS VARCHAR(2)) = 'an'
CAST(n AS DECIMAL(10, 2)) = 5.00
d + 1 > d
1 + d > d
d - 1 < d
d + i > DATE '2024-03-07'
d - 5 = DATE '2024-02-25'
d + 1 IN (DATE '2024-03-02')
(d + 1) BETWEEN DATE '2024-03-02' AND DATE '2024-03-03'
year(d + 1) = 2024
datediff(d, d - 5) = 5
try_add(d, 1) > d
CASE WHEN n = 5 THEN d + 1 END = DATE '2024-03-02'
date_add(d, i) = d + i
(n, s) = (5L, 'ann')
(n, s) != (5L, 'ann')
NOT ((n, s) = (5L, 'ann'))
(s, n) <=> ('ann', 5L)
x = 1.5F
f = 0.1F
f = 0.1D
extract(HOUR FROM ts - TIMESTAMP '2024-03-01 05:00:00') = 5
i & 1 = 1 AND i ^ 2 = 5
""".splitlines()


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.sql(
        """SELECT * FROM VALUES
        (1, 5L, 7, 'ann', X'FF', X'41', array('a'), array(1L, 2L), DATE '2024-03-01',
         TIMESTAMP '2024-03-01 10:00:00', 1.5D, 0.1F),
        (2, 6L, 8, 'ANN', X'00', X'31', array('b', 'c'), array(3L), DATE '2025-03-01',
         TIMESTAMP '2024-03-02 11:00:00', 2.5D, 0.5F),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
        AS t(id, n, i, s, b, c, tags, nums, d, ts, x, f)"""
    )


def test_rules_select_what_where_selects(frame: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    columns = [F.expr(text).alias(f"t{place}") for place, text in enumerate(TEXTS)]
    wanted = {
        row[0]: {text for text, holds in zip(TEXTS, row[1:], strict=True) if holds}
        for row in frame.select("id", *columns).collect()
    }
    routed = palio.spark.forward(frame, {text: text for text in TEXTS})
    found = {row["id"]: set(row["interfaces"]) for row in routed.collect()}
    for row, texts in wanted.items():
        assert found[row] == texts, row
    assert sum(map(len, wanted.values())) > len(TEXTS)


def test_what_spark_does_not_add_to_a_date(frame: Any) -> None:
    with pytest.warns(
        UserWarning, match=r"Spark does not compute d = \(d \+ n\), so rules with it select"
    ):
        palio.spark.forward(frame, {"a": "d + n = d", "b": "n = 5"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        palio.spark.forward(frame, {"a": "d + 1 = d"})


def test_the_nearest_function_is_named(frame: Any) -> None:
    with pytest.raises(InvalidPredicate, match=r"instr\(name, 'a'\)"):
        palio.spark.forward(frame, {"a": "strpos(s, 'a') = 1"})
