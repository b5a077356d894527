"""Calls with too many or too few arguments: the error says how many the function takes, and where."""

from __future__ import annotations

import pytest

from palio.errors import ParseError
from palio.model.expressions.argument_counts import wrong_count
from palio.model.expressions.functions import FUNCTIONS
from palio.model.language import parse
from palio.model.literals import lift

WRONG = [
    ("lower(a, b) = 'x'", "lower takes 1 argument, not 2", 0),
    ("lower() = 'x'", "lower takes 1 argument, not 0", 0),
    ("x = 1 AND round(x, 1, 2) > 3", "round takes 1 or 2 arguments, not 3", 10),
    ("coalesce() = 3", "coalesce takes 1 or more arguments (at most 1,000), not 0", 0),
    ("abs(nullif(x)) = 3", "nullif takes 2 arguments, not 1", 4),
    ("if(a) = 3", "if takes 2 or 3 arguments, not 1", 0),
    ("if(a, b, c, d) = 1", "if takes 2 or 3 arguments, not 4", 0),
    ("array_contains(tags, 'x', 'y')", "array_contains takes 2 arguments, not 3", 0),
    ("array_contains(tags)", "array_contains takes 2 arguments, not 1", 0),
    ("length(a, b) = 1", "length takes 1 argument, not 2", 0),
    ("replace(`a(,`) = 'x'", "replace takes 2 or 3 arguments, not 1", 0),
    ("substring(a) = 'x'", "substring takes 2 or 3 arguments, not 1", 0),
    ("CAST(x AS FOO) = 1", "no such type; there are BOOLEAN, ", 10),
    ("x::foo = 1", "no such type; there are BOOLEAN, ", 3),
]


@pytest.mark.parametrize(("text", "said", "at"), WRONG)
def test_the_error_says_how_many(text: str, said: str, at: int) -> None:
    with pytest.raises(ParseError) as raised:
        parse(text)
    assert raised.value.reason.startswith(said)
    assert raised.value.position == at


def test_examples_of_the_table_have_the_right_number() -> None:
    for function in FUNCTIONS.values():
        shape, _ = lift(function.example.partition(" → ")[0])
        assert wrong_count(shape) is None, function.name


def test_a_long_text_takes_no_time() -> None:
    assert wrong_count("(" * 5000 + "abs(x)" * 100_000 + ")" * 5000) is None
