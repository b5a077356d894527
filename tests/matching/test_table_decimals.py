"""Decimals compare exactly with literals, on every embedded path; the oracle is Python's Decimal."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import palio
from tests.differential.decimal_drawing import Condition, DecimalDrawing, Row, table_of
from tests.seeds import seeds

CONDITIONS, ROWS = 100, 40


def answers(table: palio.ForwardingTable, rows: list[Row]) -> Iterator[tuple[str, list[Any]]]:
    columns = table_of(rows)
    yield "dict", [table.forward(row) for row in rows]
    yield "message", [table.forward(palio.Message(row)) for row in rows]
    yield "nested", [table.forward({**row, "o": {"k": [1]}}) for row in rows]
    yield "columns", table.forward_batch(columns).to_pylist()
    wide = [pa.field(f.name, _wider(f.type)) for f in columns.schema]
    yield "wider", table.forward_batch(columns.cast(pa.schema(wide))).to_pylist()


def _wider(kind: pa.DataType) -> pa.DataType:
    return pa.decimal256(kind.precision, kind.scale) if pa.types.is_decimal(kind) else kind


def tables(rules: dict[str, str], folder: Path) -> Iterator[tuple[str, palio.ForwardingTable]]:
    yield "naive", palio.ForwardingTable.compile(rules, engine="naive")
    for mode in ("auto", "attributes", "residuals"):
        yield mode, palio.ForwardingTable.compile(rules, expressions=mode)
    names = [*rules]
    half = {name: rules[name] for name in names[::2]}
    updated = palio.ForwardingTable.compile(half).updated(
        add={name: rules[name] for name in names[1::2]}
    )
    yield "updated", updated
    updated.save(folder / "rules.palio")
    yield "loaded", palio.ForwardingTable.load(folder / "rules.palio")


@seeds(1, 40)
def test_decimals_compare_exactly(seed: int, tmp_path: Path) -> None:
    drawing = DecimalDrawing(seed)
    conditions = {f"r{i}": drawing.condition() for i in range(CONDITIONS)}
    rows = drawing.rows(ROWS)
    expected = [_selecting(conditions, row) for row in rows]
    rules = {name: condition.text for name, condition in conditions.items()}
    read_back = {name: str(palio.parse(text)) for name, text in rules.items()}
    for kind, table in (*tables(rules, tmp_path), *list(tables(read_back, tmp_path))[:1]):
        for path, found in answers(table, rows):
            for row, wanted, given in zip(rows, expected, found, strict=True):
                wrong = sorted(set(wanted) ^ set(given))
                assert not wrong, (kind, path, conditions[wrong[0]].text, row)


def _selecting(conditions: dict[str, Condition], row: Row) -> list[str]:
    return [name for name, condition in conditions.items() if condition.holds(row) is True]


@seeds(1, 20)
def test_the_counting_engine_agrees(seed: int) -> None:
    drawing = DecimalDrawing(seed)
    drawn = [drawing.condition() for _ in range(CONDITIONS)]
    conditions = {
        f"r{i}": one
        for i, one in enumerate(drawn)
        if not any(c.name.startswith("=") for f in palio.parse(one.text) for c in f)
    }
    rows = drawing.rows(ROWS)
    table = palio.ForwardingTable.compile(
        {name: one.text for name, one in conditions.items()}, engine="counting"
    )
    assert len(conditions) > CONDITIONS / 4
    for path, found in answers(table, rows):
        for row, given in zip(rows, found, strict=True):
            wrong = sorted(set(_selecting(conditions, row)) ^ set(given))
            assert not wrong, (path, conditions[wrong[0]].text, row)


@seeds(1, 10)
def test_covering_and_reduction_are_sound(seed: int) -> None:
    drawing = DecimalDrawing(seed)
    drawn = [palio.parse(drawing.condition().text) for _ in range(60)]
    rows = [palio.Message(row) for row in drawing.rows(100)]
    selected = [{i for i, row in enumerate(rows) if one.matches(row)} for one in drawn]
    for i, a in enumerate(drawn):
        for j, b in enumerate(drawn):
            assert not palio.covers(a, b) or selected[j] <= selected[i], (str(a), str(b))
    for i in range(0, len(drawn), 3):
        joined = drawn[i] | drawn[i + 1] | drawn[i + 2]
        reduced = palio.reduce(joined)
        found = {n for n, row in enumerate(rows) if reduced.matches(row)}
        assert found == selected[i] | selected[i + 1] | selected[i + 2], str(joined)


LONG = Decimal("0.10000000000000000001")


@pytest.mark.parametrize(
    ("rule", "value", "selects"),
    [
        ("x > 0.1", LONG, True),
        ("x = 0.1", LONG, False),
        ("x <= 0.1", LONG, False),
        ("x < 0.10000000000000002", LONG, True),
        ("x IN (0.1, 0.2)", LONG, False),
        ("x = 0.1", Decimal("0.1"), True),
        ("x = 0.1", 0.1, True),
        ("x = 0.10000000000000000001", 0.1, True),  # as a double it is 0.1
        ("x = 0.10000000000000000001", LONG, True),
        ("x > 0.10000000000000000001", Decimal("0.100000000000000000011"), True),
        ("x != 0.10000000000000000001", LONG, False),
        ("x = 12345678901234567.88", Decimal("12345678901234567.89"), False),
        ("x > 12345678901234567.88", Decimal("12345678901234567.89"), True),
        ("x > 12345678901234567", Decimal("12345678901234567.01"), True),
        ("x < 12345678901234568", Decimal("12345678901234567.99"), True),
        ("x > 12345678901234567.88", 12345678901234568, True),
        ("x > 9223372036854775807", Decimal("9223372036854775807.5"), True),
        ("x < -9223372036854775808", Decimal("-9223372036854775808.5"), True),
        ("x >= 9223372036854775807", Decimal("9223372036854775900"), True),
        ("x < 9223372036854777000.0", Decimal("9223372036854775900"), True),
        ("x > 0", Decimal("1e-38"), True),
        ("x = 0", Decimal("1e-38"), False),
        ("x < 0", Decimal("-1e-38"), True),
        ("x > 5e-324", Decimal("1e-38"), True),
        ("typeof(x) = 'float'", Decimal("12345678901234567.89"), True),
        ("typeof(x) = 'int'", Decimal("12345678901234567.89"), False),
        ("x + 0 > 0.1", LONG, True),
        ("x + 0 = 0.1", LONG, False),
        ("x = 'a' OR x != 0.10000000000000000001", "b", False),
    ],
)
def test_cases(rule: str, value: Any, selects: bool) -> None:
    assert palio.parse(rule).matches({"x": value}) is selects
    columns = pa.table({"x": [value]})
    nested = pa.table({"o": pa.array([{"x": value}])})
    inner = rule.replace("x", "o.x", 1) if " OR " not in rule and "typeof" not in rule else None
    for engine in ("naive", "pivot"):
        table = palio.ForwardingTable.compile({"a": rule}, engine=engine)
        assert table.forward({"x": value}) == ["a"] * selects
        assert table.forward_batch(columns).to_pylist() == [["a"] * selects]
        assert (table.explain({"x": value})["a"].matches) is selects
        if inner is not None:
            table = palio.ForwardingTable.compile({"a": inner}, engine=engine)
            assert table.forward({"o": {"x": value}}) == ["a"] * selects
            assert table.forward_batch(nested).to_pylist() == [["a"] * selects]


def test_constraints_of_decimals() -> None:
    made = palio.Constraint("x", ">", LONG)
    assert str(made) == "x > 0.10000000000000000001"
    assert palio.Predicate.of(made) == palio.parse(str(made))
    assert palio.Constraint("x", "=", Decimal("0.1")) == palio.Constraint("x", "=", 0.1)


def test_a_decimal_that_no_rule_asks_for() -> None:
    table = palio.ForwardingTable.compile({"a": "y + 1 = 3"})
    assert table.forward({"x": LONG, "y": 2}) == ["a"]
    assert table.forward(palio.Message({"x": LONG, "y": 2})) == ["a"]


def test_what_is_not_covered() -> None:
    """0.1 as a double satisfies the one and not the other."""
    a, b = palio.parse("x > 0.1"), palio.parse("x >= 0.10000000000000000001")
    assert not palio.covers(a, b)
    assert palio.covers(b, palio.parse("x >= 0.10000000000000000001 AND y > 1"))
