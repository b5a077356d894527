"""The columnar oracle agrees with evaluating every predicate."""

from __future__ import annotations

import pytest
from tests.seeds import sizes

import palio
from palio.lab.data import workloads
from palio.lab.data.oracle import Oracle


@pytest.mark.parametrize("name", ["sigcomm03", "tr2001", "fields", "texts"])
@sizes(3, 10)
@pytest.mark.parametrize("interfaces", [7, "all"])
def test_agrees_with_predicates(name: str, interfaces: int | str, size: int) -> None:
    filters, messages = 2_000, 10
    if name == "fields":  # of those, few match
        filters, messages = 20_000, size
    load = workloads.WORKLOADS[name](filters, interfaces, messages, seed=5)
    predicates = list(workloads.predicates(load))
    oracle = Oracle(load.constraints)
    total = 0
    for message in workloads.message_dicts(load):
        expected = [interface for interface, p in predicates if p.matches(message)]
        assert oracle.interfaces(message) == expected
        total += len(expected)
    assert total > 0


def test_every_filter_has_an_equality() -> None:
    for name in ("fields", "texts"):
        load = workloads.WORKLOADS[name](500, "all", 10)
        for _, predicate in workloads.predicates(load):
            assert all(any(c.op == "=" for c in filter) for filter in predicate)


def test_what_is_not_there() -> None:
    rows = workloads.constraint_rows(
        [("a", palio.parse("x IS NULL")), ("b", palio.parse("x IS NULL AND y > 1"))]
    )
    oracle = Oracle(rows)
    assert oracle.interfaces({"y": 2}) == ["a", "b"]
    assert oracle.interfaces({"y": 1}) == ["a"]
    assert oracle.interfaces({"x": 1, "y": 2}) == []
