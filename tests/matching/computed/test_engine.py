"""Tables with expressions give what the naive engine gives, on every path."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from palio.errors import InvalidPredicate, InvalidValue
from palio.matching.table import ForwardingTable
from palio.model.message import Message

_FORMS = (
    "lower(name) = '{word}'",
    "lower(name) LIKE '%{char}'",
    "name LIKE '{char}%{char}%'",
    "NOT (name LIKE '%{char}_')",
    "price * qty > {number}",
    "price - {number} IN (1, 2, 3, 10)",
    "x < y",
    "NOT (x < y)",
    "abs(lat - {center}) < {radius}",
    "coalesce(x, 0) + {number} > y",
    "1 / x IS NULL",
    "CASE WHEN x > {small} THEN y ELSE qty END = {small}",
    "x = {small}",
    "dest = '{capital}'",
)


def _rule(random: random.Random) -> str:
    def condition() -> str:
        return random.choice(_FORMS).format(
            word=random.choice(["ann", "bob", "cy"]),
            char=random.choice("abny"),
            number=random.randint(0, 99),
            center=f"{random.uniform(40, 50):.3f}",
            radius=f"{random.uniform(0, 5):.3f}",
            small=random.randint(0, 3),
            capital=random.choice("ABC"),
        )

    filters = [
        " AND ".join(condition() for _ in range(random.randint(1, 3)))
        for _ in range(random.choice([1, 1, 1, 2]))
    ]
    return " OR ".join(filters)


def _message(random: random.Random) -> dict[str, Any]:
    drawn = {
        "dest": random.choice(["A", "B", "C", None]),
        "name": random.choice(["Ann", "BOB", "cy", "abnn", "", None]),
        "price": random.choice([random.randint(0, 100), random.uniform(0, 100), None]),
        "qty": random.choice([0, 1, 2, 9, None]),
        "x": random.choice([0, 1, 2, 3.5, "text", None]),
        "y": random.choice([0, 1, 2, 50, None]),
        "lat": random.choice([random.uniform(40, 50), 45, 45.3, None]),
        "=x < y": random.choice([True, None]),
    }
    return {name: value for name, value in drawn.items() if value is not None}


@pytest.fixture(scope="module")
def drawn() -> tuple[dict[str, str], list[dict[str, Any]], list[list[str]]]:
    """Rules, messages, and what the naive engine says of them."""
    chance = random.Random(17)
    rules = {f"r{i}": _rule(chance) for i in range(250)}
    messages = [_message(chance) for _ in range(120)]
    naive = ForwardingTable.compile(rules, engine="naive")
    return rules, messages, [naive.forward(message) for message in messages]


def _json(messages: list[dict[str, Any]]) -> pa.Table:
    return pa.table({"message": [json.dumps(message) for message in messages]})


@pytest.mark.parametrize("expressions", ["auto", "attributes", "residuals"])
def test_a_batch_is_forwarded_as_by_the_naive_engine(drawn: Any, expressions: str) -> None:
    rules, messages, expected = drawn
    table = ForwardingTable.compile(rules, expressions=expressions)
    assert table.forward_batch(_json(messages), json="message").to_pylist() == expected


def test_single_messages_too(drawn: Any) -> None:
    rules, messages, expected = drawn
    table = ForwardingTable.compile(rules)
    assert [table.forward(message) for message in messages] == expected
    assert [table.forward_json(json.dumps(message)) for message in messages[:20]] == expected[:20]


def test_answers_can_be_limited_to_some_interfaces(drawn: Any) -> None:
    rules, messages, expected = drawn
    table = ForwardingTable.compile(rules)
    some = ["r3", "r77", "r200", "r201"]
    found = table.forward_batch(_json(messages), json="message", among=some).to_pylist()
    assert found == [[name for name in row if name in some] for row in expected]
    assert table.forward(messages[0], among=some) == found[0]


def test_a_saved_table_is_the_same(drawn: Any, tmp_path: Path) -> None:
    rules, messages, expected = drawn
    table = ForwardingTable.compile(rules)
    table.save(tmp_path / "rules.palio")
    loaded = ForwardingTable.load(tmp_path / "rules.palio")
    assert loaded.forward_batch(_json(messages), json="message").to_pylist() == expected
    assert loaded.expressions.shared == table.expressions.shared
    assert loaded.expressions.residuals > 20


def test_an_updated_and_compacted_table_is_the_same(drawn: Any) -> None:
    rules, messages, _ = drawn
    names = list(rules)
    table = ForwardingTable.compile({name: rules[name] for name in names[:150]})
    table = table.updated(add={name: rules[name] for name in names[150:]}, remove=names[:10])
    kept = {name: rules[name] for name in names[10:]}
    naive = ForwardingTable.compile(kept, engine="naive")
    expected = naive.forward_batch(_json(messages), json="message").to_pylist()
    for version in (table, table.compacted()):
        assert version.forward_batch(_json(messages), json="message").to_pylist() == expected
        assert version.forward(messages[5]) == expected[5]


def test_predicates_come_back(drawn: Any) -> None:
    rules, messages, expected = drawn
    table = ForwardingTable.compile(rules)
    for name in list(rules)[:40]:
        predicate = table.predicate(name)
        assert [predicate.matches(m) for m in messages] == [name in row for row in expected]
    shown = table.explain(messages[0], ["r0"])["r0"]
    assert shown.matches is ("r0" in expected[0])


def test_rows_may_bring_what_expressions_compute() -> None:
    table = ForwardingTable.compile({"a": "lower(name) = 'ann'", "b": "name = 'Ann'"})
    rows = pa.table({"name": ["Ann", "Ann"], "=lower(name)": ["ann", "other"]})
    assert table.forward_batch(rows).to_pylist() == [["a", "b"], ["a", "b"]]
    assert table.forward_batch(rows, computed=True).to_pylist() == [["a", "b"], ["b"]]
    assert table.expressions.shared == ("=lower(name)",)


def test_a_filter_with_nothing_to_index_works() -> None:
    table = ForwardingTable.compile({f"r{i}": f"abs(x - y) < {i}.5" for i in range(30)})
    assert table.forward({"x": 10, "y": 37}) == ["r27", "r28", "r29"]
    assert table.forward({"x": 10}) == []


@pytest.mark.parametrize("expressions", ["auto", "residuals"])
def test_an_object_that_an_expression_finds_is_there(expressions: str) -> None:
    rules = {
        "gone": "a[0] IS NULL",
        "there": "a[0] IS NOT NULL",
        "either": "coalesce(b, c) IS NULL",
    }
    table = ForwardingTable.compile(rules, expressions=expressions)
    for message in ({"a": [{"k": 1}], "c": 1}, {"a": [{}], "c": 1}, {"a": [[{"k": 1}]], "c": 1}):
        text = json.dumps(message)
        rows = pa.table({"message": [text]})
        assert table.forward(message) == ["there"], message
        assert table.forward_json(text) == ["there"], message
        assert table.forward_batch(rows, json="message").to_pylist() == [["there"]], message
    assert table.forward({"a": [None], "b": b"bytes"}) == ["gone"]


def test_counting_says_that_it_has_no_expressions() -> None:
    with pytest.raises(InvalidPredicate, match="computes no expressions, and one is lower"):
        ForwardingTable.compile({"a": "lower(x) = 'a'"}, engine="counting")
    with pytest.raises(InvalidPredicate, match="there are auto, attributes, residuals"):
        ForwardingTable.compile({"a": "x = 1"}, expressions="nosuch")


@pytest.mark.parametrize("engine", ["pivot", "naive"])
def test_what_cannot_be_computed_is_counted_or_an_error(engine: str) -> None:
    table = ForwardingTable.compile({"a": "price / qty > 2", "b": "price > 1"}, engine=engine)
    rows = pa.table({"price": [6, 6], "qty": [2, 0]})
    assert table.forward_batch(rows).to_pylist() == [["a", "b"], ["b"]]
    if engine == "pivot":
        assert table.expressions.failures == {"price / qty": 1}
    assert table.forward({"price": 6, "qty": 2}, strict=True) == ["a", "b"]
    with pytest.raises(InvalidValue, match=r"price / qty cannot be computed.*'a' asks for it"):
        table.forward({"price": 6, "qty": 0}, strict=True)
    with pytest.raises(InvalidValue, match="division by zero"):
        table.forward_batch(rows, strict=True)


@pytest.mark.parametrize(
    ("form", "calls"),
    [
        ("abs(x - y - {i}) < 3", 4),
        ("x + {i} * y > 3", 3),
        ("coalesce(x, {i}) + 1 > 3", 3),
        ("x RLIKE 'a{i}'", 2),
        ("x + {i} > y AND y * {i} < z AND z IS NOT NULL", 6),
    ],
)
def test_filters_found_by_presence_alone_are_counted_with_their_cost(form: str, calls: int) -> None:
    rules = {f"r{i}": form.format(i=i) for i in range(10, 110)}
    with pytest.warns(UserWarning, match=f"^100 filters have nothing.*about {10 * calls} us a"):
        table = ForwardingTable.compile(rules, expressions="residuals")
    assert table.expressions.unindexed == 100
    assert table.expressions.unindexed_us == pytest.approx(10 * calls)
    assert f"100 of these are judged for every message that has their attributes: about {10 * calls} us" in (
        str(table.stats())
    )  # fmt: skip
    grown = table.updated(add={"more": form.format(i=9)})
    assert grown.expressions.unindexed == 101


@pytest.mark.parametrize(
    "form",
    [
        "abs(x - {i}) < 3",
        "x + {i} * y > 3 AND z = {i}",
        "x + {i} * y > 3 AND z > 5 AND x IS NOT NULL",
        "x + y > {i} AND z < 3",
        "x LIKE 'a{i}%b'",
    ],
)
def test_filters_that_something_finds_are_not_counted(form: str) -> None:
    rules = {f"r{i}": form.format(i=i) for i in range(10, 110)}
    table = ForwardingTable.compile(rules, expressions="residuals")
    assert table.expressions.residuals > 0 or "x + y" in form
    assert table.expressions.unindexed == 0


def test_statistics_tell_of_filters_that_nothing_finds() -> None:
    rules = {f"r{i}": f"coalesce(x, {i}) + coalesce(y, 0) > 3" for i in range(20)}
    table = ForwardingTable.compile(rules, expressions="residuals")
    assert table.expressions.unindexed == 20
    assert (
        ForwardingTable.compile(
            {"a": "abs(x - 5) < 1"}, expressions="residuals"
        ).expressions.unindexed
        == 0
    )


@pytest.mark.parametrize("mode", ["attributes", "residuals"])
def test_the_sign_of_zero_is_the_same_on_every_path(mode: str) -> None:
    rules = {
        "text": "CAST(x AS STRING) = '-0.0'",
        "joined": "concat(CAST(x AS STRING), '!') = '-0.0!'",
        "zero": "x = 0",
    }
    table = ForwardingTable.compile(rules, expressions=mode)
    rows = [{"x": -0.0}, {"x": 0.0}, {"x": 0}]
    wanted = [["text", "joined", "zero"], ["zero"], ["zero"]]
    assert [table.forward(row) for row in rows] == wanted
    assert [table.forward_json(Message(row).to_json().encode()) for row in rows] == wanted
    column = pa.chunked_array([pa.array([-0.0]), pa.array([0.0, 0.0])])
    assert table.forward_batch(pa.table({"x": column})).to_pylist() == wanted
    texts = pa.table({"m": [Message(row).to_json() for row in rows]})
    assert table.forward_batch(texts, json="m").to_pylist() == wanted
    attributes = pa.table(
        {"m": [[("x", "float", "-0.0")], [("x", "float", "0.0")], [("x", "int", "0")]]},
        schema=pa.schema(
            {
                "m": pa.list_(
                    pa.struct({"name": pa.string(), "type": pa.string(), "value": pa.string()})
                )
            }
        ),
    )
    assert table.forward_batch(attributes, attributes="m").to_pylist() == wanted
    maps = pa.table(
        {"m": [[("x", -0.0)], [("x", 0.0)], []]},
        schema=pa.schema({"m": pa.map_(pa.string(), pa.float64())}),
    )
    assert table.forward_batch(maps, map="m").to_pylist() == [*wanted[:2], []]


@pytest.mark.parametrize(
    "form",
    [
        "arrays_overlap(tags, array('t{i}', 'u{i}'))",
        "exists(tags, t -> t IN ('t{i}', 'u{i}'))",
        "exists(tags, t -> t = 't{i}' OR t = 'u{i}') AND arrays_overlap(more, array(1, 2, 3))",
    ],
)
def test_conditions_that_ask_for_elements_are_looked_up(form: str) -> None:
    rules = {f"r{i}": form.format(i=i) for i in range(300)}
    table = ForwardingTable.compile(rules)
    assert table.expressions.members == 600
    assert table.expressions.unindexed == 0
    message = {"tags": ["t7", "u9", "q"], "more": [3]}
    assert table.forward(message) == ["r7", "r9"]
    assert table.stats([message]).candidates <= 2


def test_conditions_on_arrays_give_what_the_naive_engine_gives() -> None:
    draw = random.Random(3)
    forms = (
        "arrays_overlap(tags, array('{a}', {n}))",
        "NOT arrays_overlap(tags, array('{a}', '{b}'))",
        "exists(tags, t -> t IN ('{a}', '{b}', {n}))",
        "NOT exists(tags, t -> t = {n})",
        "exists(tags, t -> t = '{a}') AND x = {n}",
        "arrays_overlap(tags, array('{a}', '{b}')) AND arrays_overlap(more, array({n}, 1))",
    )
    rules = {
        f"r{i}": draw.choice(forms).format(
            a=draw.choice("abc"), b=draw.choice("abc"), n=draw.randint(0, 3)
        )
        for i in range(60)
    }
    elements: list[Any] = ["a", "b", "d", 0, 1, 2.0, None]
    messages = [
        {
            "x": draw.randint(0, 3),
            "tags": draw.choices(elements, k=draw.randint(0, 3)),
            "more": draw.choices(range(4), k=draw.randint(0, 2)),
        }
        for _ in range(200)
    ]
    pivot, naive = ForwardingTable.compile(rules), ForwardingTable.compile(rules, "naive")
    texts = pa.table({"message": [json.dumps(message) for message in messages]})
    expected = [naive.forward(message) for message in messages]
    assert [pivot.forward(message) for message in messages] == expected
    assert pivot.forward_batch(texts, json="message").to_pylist() == expected
