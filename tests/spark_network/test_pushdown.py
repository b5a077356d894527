"""Filters of a query as predicates: without a session, and without a broker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark.sql import datasource as ds

from palio import parse
from palio.spark_network.pushdown import narrowed

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


class TestPushdown:
    def test_the_broker_is_asked_for_less(self) -> None:
        filters = [
            ds.LessThan(("price",), 500),
            ds.Not(ds.EqualTo(("dest",), "MXP")),
            ds.In(("kind",), (1, 2)),
            ds.IsNotNull(("price",)),
            ds.StringStartsWith(("dest",), "M"),
            ds.EqualTo(("at",), NOON),
        ]
        names = frozenset({"price", "dest", "kind", "at"})
        found = parse(narrowed("kind = 1 OR kind = 2", filters, names))
        inside = {"price": 499, "dest": "MIL", "kind": 1, "at": NOON}
        assert found.matches(inside)
        for change in ({"price": 500}, {"dest": "MXP"}, {"dest": "LIN"}, {"kind": 3}):
            assert not found.matches(inside | change)

    @pytest.mark.parametrize(
        "filter",
        [
            ds.IsNull(("price",)),
            ds.Not(ds.IsNotNull(("price",))),
            ds.EqualTo(("time",), NOON),
            ds.EqualTo(("price", "x"), 1),
            ds.EqualTo(("price",), float("nan")),
            ds.EqualTo(("price",), None),
            ds.Not(ds.EqualNullSafe(("price",), 1)),
            ds.Not(ds.In(("price",), (1, 2))),
            ds.EqualTo(("price",), [1]),
        ],
    )
    def test_what_spark_must_do(self, filter: Any) -> None:
        assert narrowed("x = 1", [filter], frozenset({"price"})) == "x = 1"
