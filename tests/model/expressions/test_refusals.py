"""What is said of functions that there are not."""

from __future__ import annotations

import pytest

from palio.errors import ParseError
from palio.model.expressions.refusals import CHANGING
from palio.model.expressions.words import FUNCTION_WORDS
from palio.model.language import parse


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("at > now()", "publish the time as an attribute"),
        ("at > current_date", "publish the time as an attribute"),
        ("at > current_timestamp()", "publish the time as an attribute"),
        ("rand() < 0.5", r"pmod\(crc32\(id\), 10\)"),
        ("input_file_name() = 'x'", "make it a column"),
        ("current_user() = 'x'", "make it a column"),
        ("lowr(x) = 'a'", "near it: lower"),
        ("levenshtein(x, 'a') < 3", "both lengths"),
        ("sum(x) > 3", "one message at a time"),
        ("strpos(x, 'a') > 0", r"instr\(name, 'a'\)"),
        ("list_contains(tags, 'a')", "array_contains"),
        ("starts_with(x, 'a')", "startswith"),
    ],
)
def test_a_refusal_helps(text: str, says: str) -> None:
    with pytest.raises(ParseError, match=says):
        parse(text)


def test_what_changes_is_no_function() -> None:
    assert {name.upper() for name in CHANGING}.isdisjoint(FUNCTION_WORDS)
