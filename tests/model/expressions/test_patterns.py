"""LIKE at their edges; tests/differential compares them with Spark."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.patterns import (
    LIKE_MAX,
    like,
    like_all,
    like_any,
    like_as_regex,
    like_pieces,
)
from palio.model.expressions.regex_functions import rlike


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("abc", "a_c", True),
        ("a😀c", "a_c", True),
        ("a\nc", "a_c", True),
        ("", "", True),
        ("", "%", True),
        ("a", "", False),
        ("a%c", r"a\%c", True),
        ("abc", r"a\%c", False),
        ("aXbXc", "a%b%c", True),
        ("aba", "ab%ba", False),
        ("abba", "ab%ba", True),
        ("xaybz", "%a_b%", True),
        ("xayybz", "%a_b%", False),
    ],
)
def test_like(text: str, pattern: str, found: bool) -> None:
    assert like(text, pattern) is found


_TEXTS = st.text("ab.\n", max_size=8)


@given(_TEXTS, st.text("ab.%_", max_size=8))
def test_like_is_its_regular_expression(text: str, pattern: str) -> None:
    wanted = "".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern)
    assert like(text, pattern) is bool(re.fullmatch(wanted, text, re.DOTALL))
    assert rlike(text, like_as_regex(like_pieces(pattern))) is like(text, pattern)


def test_escapes_that_mean_nothing_are_errors() -> None:
    for pattern in ("a\\bc", "abc\\"):
        with pytest.raises(ExpressionError, match="escape character"):
            like("abc", pattern)
    assert like("a#%", "a##%", "#") is True
    with pytest.raises(ExpressionError, match="one character"):
        like("a", "a", "##")


def test_any_and_all_have_three_values() -> None:
    assert like_any("a", "b", None) is None
    assert like_any("a", None, "a") is True
    assert like_all("a", "a", None) is None
    assert like_all("a", "b", None) is False
    assert like_any(None, "a") is None


def test_patterns_are_bounded() -> None:
    with pytest.raises(ExpressionError, match="up to"):
        like("a", "a" * (LIKE_MAX + 1))


def test_time_is_linear_in_the_text() -> None:
    began = time.monotonic()
    assert like("a" * 200_000, "%a%a%a%a%a%a%ab") is False
    assert like("a" * 200_000, "%a_a%a_a%a_a%ab%") is False
    assert time.monotonic() - began < 5
