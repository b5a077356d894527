"""Regular expressions at their edges; tests/differential compares them with Spark."""

from __future__ import annotations

import time

import pytest

from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.regex_functions import (
    REGEX_MAX,
    regexp_extract,
    regexp_replace,
    regexp_substr,
    rlike,
    split,
)


def test_what_re2_does_not_read_is_an_error() -> None:
    for regex in ("(", r"(a)\1", "(?=a)", "a++"):
        with pytest.raises(ExpressionError, match="RE2 does not read"):
            rlike("a", regex)


@pytest.mark.parametrize("regex", ["[a-z&&[b]]", "[[:alpha:]]", r"\v", "(?U)a*"])
def test_what_spark_reads_otherwise_is_an_error(regex: str) -> None:
    with pytest.raises(ExpressionError, match="means one thing to RE2"):
        rlike("a", regex)


def test_regular_expressions_are_bounded() -> None:
    with pytest.raises(ExpressionError, match="up to"):
        rlike("a", "a" * (REGEX_MAX + 1))
    with pytest.raises(ExpressionError, match="repeats too much"):
        rlike("a", "(a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s|t|u){0,1000}" + "a" * 60)
    began = time.monotonic()
    assert rlike("a" * 200_000, "(a*)*b") is False
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("text", "regex", "group", "found"),
    [
        ("100-200", r"(\d+)-(\d+)", 2, "200"),
        ("100-200", r"(\d+)-(\d+)", 0, "100-200"),
        ("foo", r"(\d+)", 1, ""),
        ("b", "(a)?b", 1, ""),
        ("a(1)", r"[(]([0-9])\)", 1, "1"),
        ("ab", "(?<first>a)(?:x)?(b)", 2, "b"),
        ("AB", "(?i)(a)b", 1, "A"),
    ],
)
def test_groups(text: str, regex: str, group: int, found: str) -> None:
    assert regexp_extract(text, regex, group) == found


def test_a_group_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="no group 1"):
        regexp_extract("foo", "o", 1)
    with pytest.raises(ExpressionError, match="names no group"):
        regexp_replace("abc", "(b)", "$2")
    assert regexp_substr("abc", "x") is None


@pytest.mark.parametrize(
    ("regex", "replacement", "found"),
    [
        (r"(\d+)-(\d+)", "$2-$1", "200-100"),
        (r"\d", "$0$0", "110000-220000"),
        ("-", r"\$", "100$200"),
        ("-", r"\\", "100\\200"),
        ("x", "y", "100-200"),
    ],
)
def test_replacements(regex: str, replacement: str, found: str) -> None:
    assert regexp_replace("100-200", regex, replacement) == found


def test_replacements_are_bounded() -> None:
    with pytest.raises(ExpressionError, match="the limit is"):
        regexp_replace("a" * 2000, "a", "b" * 1000)
    with pytest.raises(ExpressionError, match="the limit is"):
        regexp_replace("a" * 300_000, "a+", "$0$0$0$0")
    with pytest.raises(ExpressionError, match="may not be empty"):
        regexp_replace("abc", "b*", "X")


def test_parts() -> None:
    assert split("a,b,,c,", ",") == ("a", "b", "", "c", "")
    assert split("a,b,,c,", ",", 2) == ("a", "b,,c,")
    assert split("a.b|c", r"\.") == ("a", "b|c")
    assert split("a1b22c", "[0-9]+") == ("a", "b", "c")
    assert split("abc", "") == ("a", "b", "c")
    assert split("", ",") == ("",)
    for delimiter in ("b*", "(a)", "a|b", "."):
        with pytest.raises(ExpressionError, match="split takes"):
            split("abc", delimiter)
