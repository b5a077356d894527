"""Lists of points."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from palio.lab.reproduce.experiment import sizes


@given(st.integers(1, 10**4), st.integers(1, 10**6), st.sampled_from([1.7, 4.0, 10.0, 200.0]))
def test_sizes_ascend_from_first_to_last(first: int, more: int, factor: float) -> None:
    found = sizes(first, first + more, factor)
    assert found[-1] == first + more
    assert found == sorted(found)
    assert len(found) == 1 or found[0] == first
    for before, after in pairwise(found):
        assert after / before <= factor**1.5 * 1.5
