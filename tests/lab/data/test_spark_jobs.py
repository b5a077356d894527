"""Workloads drawn by Spark: the same whoever draws them, and the oracle agrees with forwarding."""

from __future__ import annotations

from typing import Any

import pytest

from palio.errors import InvalidValue
from palio.lab.data import workloads

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def jobs() -> Any:
    return pytest.importorskip("palio.lab.data.spark_jobs")


def test_messages_are_those_of_the_generator(spark: Any, jobs: Any) -> None:
    """Sizes beyond a part go on with other draws over the same names."""
    rows = jobs.PART_ROWS + 40
    drawn = jobs.messages(spark, "sigcomm03", rows, seed=3).toArrow().sort_by("id")
    assert drawn["id"].to_pylist() == list(range(rows))
    first = workloads.json_messages(workloads.sigcomm03(5, "all", jobs.PART_ROWS, seed=3))
    texts = drawn["message"].to_pylist()
    assert texts[: jobs.PART_ROWS] == first["message"].to_pylist()
    assert set(texts[jobs.PART_ROWS :]).isdisjoint(texts[:40])
    again = jobs.messages(spark, "sigcomm03", rows, seed=3).coalesce(1).toArrow().sort_by("id")
    assert again == drawn


def test_constraints_are_those_of_the_generator(spark: Any, jobs: Any) -> None:
    drawn = jobs.constraints(spark, "tr2001", 700, 30, seed=2).toArrow()
    expected = workloads.tr2001(700, 30, 0, seed=2).constraints
    for name in expected.column_names:
        assert drawn[name].to_pylist() == expected[name].to_pylist(), name


def test_oracle_and_statistics(spark: Any, jobs: Any) -> None:
    import palio.spark

    messages = jobs.messages(spark, "texts", 60)
    constraints = jobs.constraints(spark, "texts", 3_000, 50)
    table = palio.spark.compile(constraints)
    routed = palio.spark.forward(messages, table, json="message")
    oracle = jobs.oracle(messages, constraints.toArrow())
    found = {row["id"]: sorted(row["interfaces"]) for row in routed.collect()}
    wanted = {row["id"]: sorted(row["interfaces"]) for row in oracle.collect()}
    assert found == wanted
    assert any(wanted.values())
    counts = {r["matches"]: r["messages"] for r in jobs.matches_per_message(routed).collect()}
    sizes = [len(names) for names in wanted.values()]
    assert counts == {size: sizes.count(size) for size in set(sizes)}


def test_nothing_to_draw(spark: Any, jobs: Any) -> None:
    assert jobs.messages(spark, "fields", 0).collect() == []
    with pytest.raises(InvalidValue, match="no workload 'flights' that is drawn in parts"):
        jobs.messages(spark, "flights", 1)
