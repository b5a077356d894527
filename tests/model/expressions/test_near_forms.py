"""Syntax of other databases is refused with what to write, on Spark too, which does not have it either."""

from __future__ import annotations

import pytest

from palio.errors import ParseError
from palio.model.language import parse


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("'x' IN tags", r"array_contains\(tags, 'x'\)"),
        ("y = 1 AND 'x' NOT IN tags", r"array_contains\(tags, 'x'\)"),
        ("'x' = ANY(tags)", r"array_contains\(tags, 'x'\)"),
        ("x > ALL (1, 2)", "stand behind LIKE only"),
        ("x = SOME(tags)", "stand behind LIKE only"),
        ("(a, b) < (1, 2)", "a < 1 OR"),
        ("(a, b) = 5", "behind IN"),
        ("x BETWEEN SYMMETRIC 5 AND 1", "least"),
        ("NOT x + 1 BETWEEN SYMMETRIC 5 AND y", "least"),
        ("s SIMILAR TO '(a|b)%'", "RLIKE"),
        ("s GLOB 'a*'", "LIKE"),
        ("s ~* 'a'", r"\(\?i\)"),
        ("at AT TIME ZONE 'UTC' > due", "from_utc_timestamp"),
        ("name.startswith('a')", r"startswith\(name, \.\.\.\)"),
        ("name.lower() = 'a'", r"lower\(name\)"),
        ("name = N'abc'", "without a letter|has no meaning"),
        ("(x -> y) = 3", "get_json_object"),
        ("at > TIME '10:00:00'", "no CAST to TIME"),
    ],
)
def test_what_to_write_is_said(text: str, says: str, foreign: bool) -> None:
    with pytest.raises(ParseError, match=says):
        parse(text, foreign=foreign)


def test_bytes() -> None:
    with pytest.raises(ParseError, match=r"hex\(b\) = 'FF'"):
        parse("b = X'FF'")
    assert parse("b = X'FF'", foreign=True)
