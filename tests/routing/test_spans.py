"""Spans find what a scan of all spans finds, whatever came and went before."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from palio.routing import spans as spans_module
from palio.routing.spans import Spans

WHOLE = (-math.inf, math.inf)
ENDS = st.sampled_from([-math.inf, 0, 1, 2, 3, 4, 5, math.inf])
SPANS = st.tuples(ENDS, ENDS).map(lambda ends: (min(ends), max(ends)))
KINDS = st.one_of(SPANS, st.integers(0, 5).map(lambda at: (at, at)))


@settings(max_examples=200, deadline=None)
@given(st.lists(KINDS, max_size=40), st.lists(st.integers(0, 99), max_size=20), KINDS)
def test_any_spans(
    drawn: list[tuple[float, float]], removals: list[int], asked: tuple[float, float]
) -> None:
    length, spans_module._LENGTH_MAX = spans_module._LENGTH_MAX, 4  # so that blocks split
    try:
        spans: Spans[int] = Spans(WHOLE)
        kept = dict(enumerate(drawn))
        for number, span in kept.items():
            spans.add(span, number, number, as_point=span[0] == span[1])
        for at in removals:
            if kept:
                number = list(kept)[at % len(kept)]
                gone = kept.pop(number)
                spans.remove(gone, number, as_point=gone[0] == gone[1])
    finally:
        spans_module._LENGTH_MAX = length
    low, high = asked
    around = {n for n, (begin, end) in kept.items() if begin <= low and high <= end}
    inside = {n for n, (begin, end) in kept.items() if low <= begin and end <= high}
    points = {n for n, (begin, end) in kept.items() if begin == end}
    assert sorted(spans.around(asked)) == sorted(around)
    assert sorted(spans.inside(asked)) == sorted(inside)
    assert sorted(spans.points_outside(asked)) == sorted(points - inside)
