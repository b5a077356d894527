"""What only Spark computes is read where Spark is there, and refused in one sentence elsewhere."""

from __future__ import annotations

import time

import pytest

import palio
from palio.errors import InvalidPredicate, ParseError
from palio.matching.encode.columns import from_predicates
from palio.model.expressions.foreign import foreign_function
from palio.model.expressions.names import expression_of
from palio.model.expressions.parsing import expression_of_text
from palio.model.expressions.text import sql_of
from palio.model.shapes import FOREIGN_SHAPE_MAX, NESTING_MAX


@pytest.mark.parametrize(
    "text",
    [
        "levenshtein(a, lower(b))",
        "date_format(ts, 'yyyy')",
        "CAST(x AS DECIMAL(10, 2))",
        "aggregate(xs, 0, (each, each1) -> each + each1)",
        "zip_with(a, b, (each, each1) -> each * each1)[0]",
        "transform_values(m, (each, each1) -> each1 + x)",
        "own.function(x)",
        "floor(x, 2)",
        "soundex(a) = 'A500'",
    ],
)
def test_a_text_is_canonical(text: str) -> None:
    found = expression_of_text(text)
    assert sql_of(found).lower() == text.lower()
    assert expression_of_text(sql_of(found)) == found
    assert foreign_function(found)


@pytest.mark.parametrize(
    "text", ["levenshtein(a, b) < 3", "CAST(x AS DECIMAL(10, 2)) = 5", "soundex(a) = 'A'"]
)
def test_elsewhere_it_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        palio.parse(text)
    predicate = palio.parse(text, foreign=True)
    assert palio.parse(str(predicate), foreign=True) == predicate
    with pytest.raises(InvalidPredicate, match="computed by Spark only"):
        palio.ForwardingTable.compile({"a": predicate})
    with pytest.raises(InvalidPredicate, match="computed by Spark only"):
        palio.ForwardingTable.compile({"b": "x = 1"}, "naive").forward(
            {"x": 1}
        ) and predicate.matches({"a": "b", "b": "c", "x": 1})
    [name] = {constraint.name for constraint in predicate.filters[0].constraints}
    assert expression_of(name)
    with pytest.raises(InvalidPredicate, match="computed by Spark only"):
        palio.Constraint(name, "=", 5)


def test_the_refusal_says_what_to_do() -> None:
    with pytest.raises(
        ParseError, match=r"levenshtein is computed by Spark only: palio\.spark\.compile"
    ):
        palio.parse("levenshtein(a, b) < 3")
    with pytest.raises(ParseError, match="soundx is not supported"):
        palio.parse("soundx(a) = 'b'")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("now() > due", "changes while messages pass"),
        ("due < current_date", "changes while messages pass"),
        ("rand() < x", "another value each time"),
        ("uuid() = id", "another value each time"),
        ("sum(x) > 3", "one message at a time"),
        ("explode(xs) = 3", "one message at a time"),
        ("raise_error(x) = 1", "ends a job"),
        ("x IN (SELECT 1)", "cannot stand here"),
        ("levenshtein('a', 'b') < 3", "of attributes only"),
    ],
)
def test_what_is_refused_on_spark_too(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        palio.parse(text, foreign=True)


def test_it_is_never_a_residual() -> None:
    entries = (
        (f"i{k}", palio.parse(f"levenshtein(a, 'w{k}') < 3", foreign=True)) for k in range(50)
    )
    table = palio.ForwardingTable.compile(from_predicates(entries), expressions="residuals")
    assert (len(table.expressions.shared), table.expressions.residuals) == (50, 0)


def test_reading_takes_no_time_to_speak_of() -> None:
    """The parser of sqlglot takes exponential time for some functions in each other."""
    started = time.monotonic()
    depth = NESTING_MAX - 1
    for name in (
        "levenshtein",
        "date_format",
        "from_json",
        "map_filter",
        "str_to_map",
        "array_sort",
    ):
        text = f"{name}(" * depth + "x" + ", y)" * depth
        assert palio.parse(f"{text} = 1", foreign=True)
    assert time.monotonic() - started < 20
    with pytest.raises(ParseError, match="nested more than"):
        palio.parse(
            "soundex(" * (NESTING_MAX + 1) + "x" + ")" * (NESTING_MAX + 1) + " = 1", foreign=True
        )
    with pytest.raises(ParseError, match="it has at most"):
        palio.parse(" OR ".join(["soundex(x) = y"] * (FOREIGN_SHAPE_MAX // 14)), foreign=True)
