"""Constants within expressions are computed once, and mean what they meant."""

from __future__ import annotations

import math

import pytest

from palio.model.arrays import Content
from palio.model.expressions import filling, simplifying
from palio.model.expressions.evaluation import value
from palio.model.expressions.names import canonical, computed_name, constants_of, value_of
from palio.model.expressions.parsing import expression_of_text
from palio.model.expressions.tree import Expression
from palio.model.language import parse
from tests.differential.constant_drawing import Drawing
from tests.seeds import sizes


def unfolded(text: str) -> Expression:
    """The expression as it is written."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (simplifying, filling):
            patch.setattr(module, "with_constants", lambda _function, given: given)
        return expression_of_text(text)


def literals_in(expression: Expression) -> list[str]:
    return sorted(map(repr, constants_of(expression)))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("abs(x - (2 + 3))", "abs(x - 5)"),
        ("x - 2 * (1 + 2)", "x - 6"),
        ("coalesce(x, 1 + 1)", "coalesce(x, 2)"),
        ("if(1 = 1, x, y)", "CASE WHEN TRUE THEN x ELSE y END"),
        ("if(1 = 1, 'a', 'b') || x", "concat('a', x)"),
        ("x RLIKE concat('a', 'b')", "x RLIKE 'ab'"),
        ("x LIKE lower('A%B_')", "x LIKE 'a%b_'"),
        ("array_contains(tags, lower('X'))", "array_contains(tags, 'x')"),
        ("tags[1 - 1]", "tags[0]"),
        ("exists(tags, t -> length(t) IN (1 + 1, 3))", "exists(tags, each -> length(each) IN (2, 3))"),
        ("get_json_object(body, concat('$.', 'a'))", "get_json_object(body, '$.a')"),
        ("date_add(day_, 1 + 1)", "date_add(day_, 2)"),
        ("x + CAST('5' AS INT)", "x + 5"),
        ("x * (1 / 4)", "x * 0.25D"),
        ("x + (9.5 + 0.5)", "x + 10.0"),
        ("x + (1.0 + 1.0) * y", "x + ((1.0 + 1.0) * y)"),
    ],
)  # fmt: skip
def test_constants_are_folded(text: str, folded: str) -> None:
    assert canonical(f"={text}") == f"={folded}"
    assert canonical(f"={folded}") == f"={folded}"


@pytest.mark.parametrize(
    "text",
    [
        "x + (1 / 0)",  # an error is NULL for each message, and counted
        "x + nullif(1, 1)",
        "x + CAST('a' AS INT)",
        "x + (1.0 + 1)",  # DECIMAL(3, 1), and 2.0 is DECIMAL(2, 1)
        "x + (45.0 + 0.3)",
        "x + (7 DIV 2)",  # a BIGINT
        "x + CAST('5' AS BIGINT)",
        "x + crc32('a')",
        "x + (3000000000 - 2999999999)",
        "x + (2000000000 + 2000000000)",
        "x / (1 + 2)",  # digits of a decimal depend on it
        "x * (1 + 2)",
        "(1 + 2) - (x * 1.5)",
        "x + floor(2.5)",
        "coalesce(1, 2.5) + x",
        "CASE WHEN TRUE THEN 1 ELSE 2.5 END + x",
        "x + CAST('NaN' AS DOUBLE)",
        "hour(CAST('2024-03-01 10:00:00' AS TIMESTAMP)) + x",  # depends on the zone
        "repeat('ab', 2000) || x",
    ],
)
def test_what_no_literal_says_stays(text: str) -> None:
    expression = expression_of_text(text)
    assert computed_name(expression) == canonical(f"={text}")
    assert literals_in(expression) == literals_in(unfolded(text))


def test_a_computed_key_is_an_attribute() -> None:
    for text in ("m[lower('K')] = 5", "element_at(m, lower('K')) = 5", "m[concat('k', '')] = 5"):
        assert parse(text) == parse("m['k'] = 5")


def test_a_folded_element_is_looked_up() -> None:
    assert parse("exists(tags, t -> t = lower('X'))") == parse("array_contains(tags, 'x')")


def test_what_is_no_pattern_once_it_is_folded_stays_and_is_counted() -> None:
    text = "x RLIKE concat('(?=', 'a)')"
    (only,) = parse(text).filters[0]
    told: list[str] = []
    assert value_of(only.name, {"x": "a"}, told.append) is None
    assert len(told) == 1
    assert parse(str(parse(text))) == parse(text)


def _are_equal(a: Content | None, b: Content | None) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


@sizes(400, 10_000)
def test_the_value_is_the_same(size: int) -> None:
    drawing = Drawing(11)
    for _ in range(size):
        text = f"coalesce(nowhere, {drawing.any(2)})"
        failures: tuple[list[str], list[str]] = [], []
        found = value(expression_of_text(text), {}, failures[0].append)
        assert _are_equal(found, value(unfolded(text), {}, failures[1].append)), text
        assert failures[0] == failures[1]
