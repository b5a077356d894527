"""The virtual clock: order of ties, and actions that never end."""

from __future__ import annotations

import pytest

from palio.sim.kernel.clock import START_US, VirtualClock
from palio.sim.kernel.verdicts import Violation


def test_ties_happen_in_the_order_they_were_planned() -> None:
    clock, seen = VirtualClock(), list[str]()
    clock.after(5, seen.append, "b")
    clock.after(5, seen.append, "c")
    clock.after(1, seen.append, "a")
    clock.after(9, seen.append, "d")
    clock.run(START_US + 5)
    assert (seen, clock.now_us, len(clock)) == (["a", "b", "c"], START_US + 5, 1)
    clock.run_until_quiet(100)
    assert (seen[-1], clock.now_us, clock.instant) == ("d", START_US + 9, 4)


def test_a_clock_that_never_rests_is_noticed() -> None:
    clock = VirtualClock()

    def repeat() -> None:
        clock.after(10, repeat)

    repeat()
    with pytest.raises(Violation, match="restless: actions remain after"):
        clock.run_until_quiet(1000)
