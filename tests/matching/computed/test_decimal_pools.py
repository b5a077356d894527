"""Decimals in columns come back as they were, joined or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palio.matching.computed.columns import column_of, merged
from palio.matching.computed.decimal_pools import DecimalPool, joined_decimals
from palio.model.expressions.decimals import Exact

texts = st.from_regex(r"[0-9]{1,25}(\.[0-9]{1,12})?", fullmatch=True)
exacts = st.lists(texts.map(Exact.of_text), min_size=1, max_size=6)


@given(exacts, exacts)
def test_decimals_come_back(first: list[Exact], second: list[Exact]) -> None:
    pool = joined_decimals([DecimalPool.of(first), DecimalPool.of(second)])
    both = [*first, *second]
    everything = column_of(range(len(both))).raw
    assert pool.at(everything) == both
    assert [str(one.value) for one in pool.at(everything)] == [str(one.value) for one in both]
    assert pool.doubles.tolist() == [float(one) for one in both]


@given(exacts)
def test_floors_and_what_lies_above_them(values: list[Exact]) -> None:
    floors, places = DecimalPool.of(values).floors
    for value, floor, place in zip(values, floors.tolist(), places.tolist(), strict=True):
        if abs(value.value) < 2**63:
            assert floor <= value.value < floor + 1
            assert place == (value.value != floor)
        else:
            assert (floor, place) == (2**63 - 1, 1)


def test_pieces_of_decimals_are_merged() -> None:
    one, other = column_of([Exact.of_text("0.1"), 5]), column_of([Exact.of_text("2.50"), "x"])
    rows = column_of([0, 1, 2, 3]).raw
    found = merged(4, [(rows[:2], one), (rows[2:], other)])
    assert found.values == [Exact.of_text("0.1"), 5, Exact.of_text("2.50"), "x"]
