"""What cannot be computed is counted, and with `strict` an error, for the rules that are asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from palio.errors import InvalidValue
from palio.matching.expressions import FAILURES_MAX, OTHERS
from palio.matching.table import ForwardingTable


def test_what_was_added_a_moment_ago_is_strict_too() -> None:
    table = ForwardingTable.compile({"a": "z = 1"}).updated(add={"b": "10 / y > 0"})
    with pytest.raises(InvalidValue, match="'b' asks for it"):
        table.forward({"y": 0}, strict=True)
    with pytest.raises(InvalidValue, match="'b' asks for it"):
        table.forward_json(b'{"y": 0}', strict=True)


def test_what_was_added_a_moment_ago_is_counted() -> None:
    table = ForwardingTable.compile({"a": "z = 1"}).updated(add={"b": "10 / y > 0"})
    for _ in range(20):  # evaluated at first, then compiled
        assert table.forward({"y": 0}) == []
    assert table.expressions.failures == {"10 / y": 20}
    newer = table.updated(add={"c": "z = 2"})
    assert newer.forward_json(b'{"y": 0}') == []
    assert newer.expressions.failures == {"10 / y": 21}


def test_failures_are_still_known_when_levels_are_merged() -> None:
    table = ForwardingTable.compile({"a": "z = 1"})
    for i in range(1_000):
        table = table.updated(add={f"r{i}": f"{i} / y > 0"})
        if i == 0:
            table.forward({"y": 0})
    assert table.expressions.failures == {"0 / y": 1}


@pytest.mark.parametrize("expressions", ["auto", "residuals"])
def test_strict_is_about_the_rules_that_are_asked(expressions: str) -> None:
    rules = {"a": "1 / x > 0", "b": "2 / x > 0", "c": "z = 1"}
    table = ForwardingTable.compile(rules, expressions=expressions)
    rows = pa.table({"x": [0, 0], "z": [1, 2]})
    assert table.forward({"x": 0, "z": 1}, among=["c"], strict=True) == ["c"]
    assert table.forward_batch(rows, among=["c"], strict=True).to_pylist() == [["c"], []]
    newer = table.updated(remove=["a"])
    with pytest.raises(InvalidValue, match="'b' asks for it"):
        newer.forward({"x": 0}, strict=True)
    with pytest.raises(InvalidValue, match="'b' asks for it"):
        newer.forward_batch(rows, strict=True)
    last = newer.updated(remove=["b"])
    assert last.forward({"x": 0, "z": 1}, strict=True) == ["c"]
    assert last.forward_batch(rows, strict=True).to_pylist() == [["c"], []]


def test_each_residual_is_counted_by_its_own_text() -> None:
    rules = {f"r{i}": f"{i} / y > 5" for i in range(1, 4)}
    table = ForwardingTable.compile(rules, expressions="residuals")
    table.forward_batch(pa.table({"y": [0, 0]}))
    assert table.expressions.failures == {"1 / y": 2, "2 / y": 2, "3 / y": 2}


def test_the_choice_is_that_of_all_versions(tmp_path: Path) -> None:
    rules = {f"r{i}": f"{i} / y > 5" for i in range(1, 4)}
    table = ForwardingTable.compile({"plain": "z = 1"}, expressions="residuals")
    table = table.updated(add=rules)
    assert table.expressions.residuals == 3
    assert table.compacted().expressions.residuals == 3
    table.save(tmp_path / "t.palio")
    loaded = ForwardingTable.load(tmp_path / "t.palio")
    newer = loaded.updated(add={"more": "5 / y > 5"}).compacted()
    assert (loaded.expressions.residuals, newer.expressions.residuals) == (3, 4)
    shared = ForwardingTable.compile(
        {f"r{i}": f"abs(y - {i}) > 5" for i in range(20)}, expressions="attributes"
    )
    assert shared.updated(add={"s": "abs(y - 77) > 5"}).compacted().expressions.residuals == 0


def test_failures_are_those_of_all_versions() -> None:
    table = ForwardingTable.compile({"a": "1 / y > 0"})
    table.forward({"y": 0})
    newer = table.updated(add={"b": "1 / z > 0"})
    newer.forward({"y": 0, "z": 0})
    assert newer.compacted().expressions.failures == {"1 / y": 2, "1 / z": 1}


def test_texts_of_failures_are_bounded() -> None:
    rules = {f"r{i}": f"{i} / y > 5" for i in range(FAILURES_MAX + 5)}
    table = ForwardingTable.compile(rules, expressions="residuals")
    table.forward({"y": 0})
    failures = table.expressions.failures
    assert (len(failures), failures[OTHERS]) == (FAILURES_MAX + 1, 5)
