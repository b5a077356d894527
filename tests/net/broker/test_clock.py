"""The broker's clock, with clocks that the test moves."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from palio.net.broker.clock import BrokerClock

SECOND = 10**9


@given(st.lists(st.tuples(st.integers(-(10**13), 10**13), st.integers(0, 10**11))))
def test_it_never_goes_back(steps: list[tuple[int, int]]) -> None:
    """Whatever the wall clock does while the steady one goes on."""
    wall, steady = [10**18], [5 * SECOND]
    clock = BrokerClock(lambda: wall[0], lambda: steady[0])
    last = clock.now_us()
    assert last == wall[0] // 1000
    for jump, passed in steps:
        wall[0] += jump + passed
        steady[0] += passed
        clock.catch_up()
        now = clock.now_us()
        assert now >= last + passed // 1000
        assert now >= wall[0] // 1000 - 1_000_000, "at most a second behind the real time"
        last = now
