"""Vectors against the Python evaluator: the same value, of the same type, and the same failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.matching.computed import calls, vector_texts, vectors
from palio.matching.computed.columns import ValueColumn, column_of
from palio.matching.computed.vectors import compute
from palio.matching.computed.warming import warm_expressions
from palio.matching.encode.columns import Ints
from palio.model.expressions.evaluation import settled, value
from palio.model.expressions.functions import Function
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression, Lambda, Slot
from tests.matching.computed.drawing import ATTRIBUTES, BOOL, MIXED, STRING, Drawing

Row = Mapping[str, Any]


def filled(expression: Expression, slots: Sequence[Any]) -> Expression:
    if isinstance(expression, Slot):
        return Constant(slots[expression.number])
    if isinstance(expression, Call):
        parts = tuple(filled(part, slots) for part in expression.arguments)
        return Call(expression.function, parts)
    if isinstance(expression, Lambda):
        return Lambda(expression.level, filled(expression.body, slots))
    return expression


def shown(values: Sequence[Any]) -> list[str]:
    """Such that 1, 1.0 and True differ, and so do 0.0 and -0.0, and NaN equals itself."""
    return [f"{type(one).__name__} {one!r}" for one in values]


def columns_of(rows: Sequence[Row]) -> dict[str, ValueColumn]:
    return {name: column_of([row.get(name) for row in rows]) for name in (*ATTRIBUTES, MIXED)}


def computed(
    expression: Expression, rows: Sequence[Row], slots: Sequence[Sequence[Any]] = ()
) -> tuple[list[str], Counter[int]]:
    """What vectors give, and how many calls failed in each row."""
    failed: Counter[int] = Counter()

    def count(own: Ints, reason: str) -> None:
        assert reason
        failed.update(own.tolist())

    found = compute(expression, columns_of(rows), len(rows), [*map(column_of, slots)], count)
    assert len(found) == len(rows)
    return shown([settled(value) for value in found.values]), failed


def expected(
    expression: Expression, rows: Sequence[Row], slots: Sequence[Sequence[Any]] = ()
) -> tuple[list[str], Counter[int]]:
    """What the Python evaluator gives."""
    failed: Counter[int] = Counter()
    found = []
    for number, row in enumerate(rows):
        own = filled(expression, [column[number] for column in slots])
        reasons: list[str] = []
        found.append(value(own, row, reasons.append))
        failed[number] = len(reasons)
    return shown(found), +failed


@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from((0, 1, 2, 7, 40)))
@settings(max_examples=1000)
def test_vectors_are_what_python_computes(seed: int, depth: int, count: int) -> None:
    drawing = Drawing(seed, slots=3)
    rows, slots = drawing.rows(count), drawing.slots(count)
    expression = drawing.tree(depth)
    assert computed(expression, rows, slots) == expected(expression, rows, slots)


@given(st.integers(0, 2**32), st.sampled_from((7, 40)))
@settings(max_examples=300)
def test_strings_by_bytes_are_what_python_computes(seed: int, count: int) -> None:
    """As where there are so many that calls of Python would be slow."""
    drawing = Drawing(seed, slots=3)
    rows, slots = drawing.rows(count), drawing.slots(count)
    expression = drawing.of_kind(STRING if seed % 2 else BOOL, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_texts, "_FEW", 0)
        assert computed(expression, rows, slots) == expected(expression, rows, slots)


@given(st.integers(0, 2**32))
@settings(max_examples=150)
def test_what_no_vector_knows_is_computed_row_by_row(seed: int) -> None:
    drawing = Drawing(seed, slots=3)
    rows, slots = drawing.rows(20), drawing.slots(20)
    expression = drawing.tree(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "FORMS", {})
        patch.setattr(calls, "VECTORS", {})
        assert computed(expression, rows, slots) == expected(expression, rows, slots)


X, Y = AttributeOf("i"), AttributeOf("j")


def test_failures_name_the_rows_and_the_reason_of_the_first() -> None:
    told: list[tuple[list[int], str]] = []
    columns = {"i": column_of([1, 2, None, 2**63 - 1]), "j": column_of([0, 2, 0, 0])}
    found = compute(
        Call("div", (X, Y)), columns, 4, failed=lambda rows, why: told.append((rows.tolist(), why))
    )
    assert found.values == [None, 1, None, None]
    assert told == [([0, 3], "div: division by zero")]
    told.clear()
    compute(
        Call("add", (X, X)), columns, 4, failed=lambda rows, why: told.append((rows.tolist(), why))
    )
    assert told == [([3], "add: the integer 18446744073709551614 does not fit in 64 bits")]


def test_a_constant_that_fails_does_so_in_every_row() -> None:
    told: list[list[int]] = []
    expression = Call("div", (Constant(1), Constant(0)))
    found = compute(expression, {}, 3, failed=lambda rows, _: told.append(rows.tolist()))
    assert (found.values, told) == ([None] * 3, [[0, 1, 2]])


def test_what_is_not_chosen_does_not_fail() -> None:
    guarded = Call("case", (Call("not_equal", (Y, Constant(0))), Call("div", (X, Y)), Constant(-1)))
    rows = [{"i": 6, "j": 3}, {"i": 6, "j": 0}, {"i": 6}]
    assert computed(guarded, rows) == (["int 2", "int -1", "int -1"], Counter())


def test_a_distinct_string_is_computed_once() -> None:
    asked: list[Any] = []

    def reversed_text(text: Any) -> Any:
        asked.append(text)
        return text[::-1]

    column = column_of(["ab", "cd"]).take(np.array([0, 1] * 50))
    found, _ = calls.called(Function("reversed", reversed_text, "text", "", ""), [column])
    assert found.values == ["ba", "dc"] * 50
    assert sorted(asked) == ["ab", "cd"]


def test_pieces_of_patterns_may_stand_at_every_character() -> None:
    rows = [{"s": text} for text in ("aXb", "a\U0001f600b", "ab", "aéébXéb", "")]
    patterns = ("a_b", "%é_", "a%é_%b", "_%", "%", "", "a%b%b")
    for pattern in patterns:
        like = Call("like", (AttributeOf("s"), Constant(pattern)))
        assert computed(like, rows) == expected(like, rows)
    rows = [{"s": "a" * 5000 + "b"}, {"s": "a" * 5000}]
    like = Call("like", (AttributeOf("s"), Constant("%" + "a" * 50 + "b")))
    assert computed(like, rows)[0] == ["bool True", "bool False"]


def test_a_text_that_concat_would_repeat_too_often_is_not_made() -> None:
    rows = [{"s": "x" * 700_000, "i": number} for number in range(3)]
    twice = Call("concat", (AttributeOf("s"), AttributeOf("s")))
    assert computed(twice, rows) == (["NoneType None"] * 3, Counter([0, 1, 2]))


def test_kernels_are_warmed() -> None:
    warm_expressions()
