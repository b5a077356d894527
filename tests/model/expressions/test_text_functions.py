"""Functions of strings at their edges; tests/differential compares them with Spark."""

from __future__ import annotations

import random
import time

import pytest

from palio.errors import ParseError
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.text_functions import (
    LENGTH_MAX,
    concat,
    ltrim,
    replace,
    rtrim,
    split_part,
    substring,
    trim,
)
from palio.model.language import parse


@pytest.mark.parametrize(
    ("position", "count", "found"),
    [(1, 2, "ab"), (0, 2, "ab"), (-2, 5, "cd"), (-6, 3, "a"), (3, -1, ""), (9, 1, "")],
)
def test_positions_of_substrings(position: int, count: int, found: str) -> None:
    assert substring("abcd", position, count) == found


def test_parts_between_delimiters() -> None:
    assert [split_part("a,b,,c", ",", i) for i in (1, 3, 4, 5, -1, -9)] == [
        "a",
        "",
        "c",
        "",
        "c",
        "",
    ]
    with pytest.raises(ExpressionError, match="from 1"):
        split_part("a", ",", 0)


def test_strings_do_not_grow_without_bound() -> None:
    with pytest.raises(ExpressionError, match="the limit is"):
        concat("a" * LENGTH_MAX, "b")
    with pytest.raises(ExpressionError, match="the limit is"):
        replace("a" * 2000, "a", "b" * 1000)
    text = "'aa'"
    for _ in range(60):
        text = f"replace({text}, 'a', 'aa')"
    with pytest.raises(ParseError, match="the limit is"):
        parse(f"x = {text}")


def test_trimming_many_characters() -> None:
    draw = random.Random(17)
    for _ in range(300):
        unwanted = "".join(draw.choices("abcdé", k=draw.choice((0, 2, 100))))
        text = "".join(draw.choices("abcdéxy", k=draw.randrange(12)))
        assert trim(text, unwanted) == text.strip(unwanted)
        assert ltrim(text, unwanted) == text.lstrip(unwanted)
        assert rtrim(text, unwanted) == text.rstrip(unwanted)


def test_trimming_takes_time_that_is_linear_in_both() -> None:
    begin = time.process_time()
    assert trim("a" * 300_000, "b" * 300_000 + "a") == ""
    assert time.process_time() - begin < 1  # one after the other: 9 seconds
