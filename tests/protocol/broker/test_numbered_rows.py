"""Rows by ascending numbers, against a sorted dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palio.protocol.broker.numbered_rows import NumberedRows


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=200), st.integers(0, 61))
def test_pages_are_those_of_a_sorted_dictionary(
    changes: list[tuple[bool, int]], after: int
) -> None:
    rows: NumberedRows[str] = NumberedRows()
    model: dict[int, str] = {}
    used: set[int] = set()
    for is_added, number in changes:
        if is_added and number not in used:
            used.add(number)
            rows.add(number, f"row {number}")
            model[number] = f"row {number}"
        elif not is_added:
            rows.remove(number)
            model.pop(number, None)
    assert list(rows.after(after)) == sorted((n, v) for n, v in model.items() if n > after)
