"""The table of functions: every line is called by its words, and fails only as expressions may."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.model.expressions.decimals import Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.evaluation import FORMS, OVER_ELEMENTS
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.parsing import expression_of_text
from palio.model.expressions.table.entry import Function
from palio.model.expressions.text import sql_of

SPECIAL = ("trim", "ltrim", "rtrim", "locate", "like escape", "negative")


def test_no_form_is_a_function() -> None:
    assert set(FUNCTIONS).isdisjoint({*FORMS, *OVER_ELEMENTS})


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_an_example_calls_its_function(function: Function) -> None:
    if not function.example:
        return
    found = expression_of_text(function.example)
    assert expression_of_text(sql_of(found)) == found
    if function.name not in SPECIAL:
        assert f"'{function.name}'" in repr(found)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_every_word_calls_its_function(function: Function) -> None:
    own = re.match(r"(\w+)\((.*)\)$", function.example)
    if not own or own[1].upper() not in function.in_words or function.name in SPECIAL:
        return
    for word in function.in_words:
        if word.lower() in ("date", "datepart") or (function.name, word) == ("locate", "INSTR"):
            continue
        assert expression_of_text(f"{word}({own[2]})") == expression_of_text(function.example)


VALUES: list[Any] = [
    True, False, 0, 1, -1, 7, 2**63 - 1, -(2**63), 0.0, -0.0, 1.5, -2.5, 1e300, math.inf, -math.inf,
    math.nan, "", "a", "Ann b,c", "%_", "(", "[a-z]+", "$.a", "1", "$1", "YEAR", "UTC", '{"a": [1]}', "é" * 50,
    datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2024, 2, 29, 12, 30, tzinfo=UTC), (), (1, None, 2.5), ("a", "b"), (("a",), None), {"a": 1},
    Exact.of_text("0.1"), Exact.of_text("12345678901234567890123456789012345678"), Exact.of_int(0),
]  # fmt: skip


@settings(max_examples=2000)
@given(function=st.sampled_from(list(FUNCTIONS.values())), data=st.data())
def test_a_function_fails_as_expressions_do(function: Function, data: st.DataObject) -> None:
    count = data.draw(st.integers(function.least, min(function.most, function.least + 2)))
    values = VALUES if function.is_strict else [*VALUES, None]
    arguments = [data.draw(st.sampled_from(values)) for _ in range(count)]
    try:
        found = function.compute(*arguments)
    except ExpressionError:
        return
    if isinstance(found, int):
        assert -(2**63) <= found < 2**63
    if isinstance(found, datetime):
        assert found.tzinfo is UTC
