"""The timer that wakes the core: it asks rarely, and rings at the deadline."""

from __future__ import annotations

import asyncio

from palio.net.broker.loop_watch import LoopWatch
from palio.net.broker.wake_timer import WakeTimer
from tests.net.peers import run


def test_it_asks_rarely_and_again_after_the_wait_that_it_is_told() -> None:
    waits, asked_at = [0.03, None], []

    def look() -> float | None:
        asked_at.append(asyncio.get_running_loop().time())
        return waits.pop(0)

    async def scene() -> None:
        timer = WakeTimer(look, LoopWatch(1.0))
        for _ in range(1000):
            timer.deadline_may_have_moved()
        assert asked_at == [], "not in every turn"
        while len(asked_at) < 2:
            await asyncio.sleep(0.001)
        assert asked_at[1] - asked_at[0] > 0.025
        timer.deadline_may_have_moved()
        timer.cancel()
        await asyncio.sleep(0.02)
        assert len(asked_at) == 2, "a timer that is cancelled does not ring"

    run(scene())
