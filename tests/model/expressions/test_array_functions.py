"""Functions of arrays at their edges; tests/differential compares them with Spark."""

from __future__ import annotations

import math

import pytest

from palio.model.expressions.array_functions import (
    array_contains,
    array_position,
    arrays_overlap,
    element,
    element_at,
    field,
    get,
    size,
    try_element_at,
)
from palio.model.expressions.errors import ExpressionError


def test_elements() -> None:
    tags = ("a", None, "c")
    assert [element(tags, 0), get(tags, 2), element_at(tags, -1), try_element_at(tags, 1)] == [
        "a",
        "c",
        "c",
        "a",
    ]
    assert get(tags, 3) is get(tags, -1) is try_element_at(tags, 4) is element(tags, 1) is None
    for function, index in ((element, 3), (element, -1), (element_at, 0), (try_element_at, 0)):
        with pytest.raises(ExpressionError):
            function(tags, index)


def test_what_is_no_array_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="an array is needed"):
        size("abc")
    with pytest.raises(ExpressionError, match="an object"):
        field("abc", "a")
    assert field({"a": 1}, "a") == 1
    assert field({"a": 1}, "b") is None


def test_an_unknown_element_makes_an_unknown_answer() -> None:
    assert array_contains((1, None), 1) is True
    assert array_contains((1, None), 2) is None
    assert array_contains((1,), 2) is False
    assert arrays_overlap((1, None), (2,)) is None
    assert arrays_overlap((None,), ()) is False
    assert array_position(("a", None), "b") == 0


def test_elements_equal_as_values_do() -> None:
    assert array_contains((1, math.nan), math.nan) is True
    assert array_contains((1,), 1.0) is True
    assert array_contains((1,), True) is False
    assert array_contains(((1, None),), (1, None)) is True
    assert arrays_overlap((0.0,), (-0.0,)) is True
    assert arrays_overlap((math.nan,), (math.nan,)) is True
    assert arrays_overlap((1,), (True, "1")) is False
    assert arrays_overlap(((1, 2),), ((1, 2),)) is True


def test_overlaps_are_found_in_linear_time() -> None:
    assert arrays_overlap(tuple(range(200_000)), tuple(range(-1, -200_000, -1))) is False
    nested = tuple((number, (None,)) for number in range(50_000))
    assert (
        arrays_overlap(nested, tuple((-1 - number, (None,)) for number in range(50_000))) is False
    )
    assert arrays_overlap(nested, ((7.0, (None,)),)) is True
