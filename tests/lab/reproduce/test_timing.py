"""Times of timed experiments."""

from __future__ import annotations

import time

from palio.lab.reproduce import timing


def test_the_shortest_turn_counts() -> None:
    """A call that is disturbed now and then is as fast as when it is not."""
    waits = iter([0.0, 0.0] + [0.02, 0.001] * 50)
    seconds = timing.shortest({"a": lambda: time.sleep(next(waits))}, turns=6, turn_s=0)
    assert 0.001 <= seconds["a"] < 0.02
