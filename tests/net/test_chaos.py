"""Nothing is lost and nothing doubled while brokers are killed and links fail (chaos.py)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import uvloop

from tests.net.chaos import Chaos, Plan

SHORT = Plan(seed=1, messages=3_000, faults=8, pause_s=0.8, lasts_s=2.5, keepalive="500 ms",
             patience_s=15)  # fmt: skip
FULL = Plan(seed=1, messages=100_000, faults=64, pause_s=2.5, lasts_s=6.0, keepalive="1 s",
            patience_s=60)  # fmt: skip


def inflicted(plan: Plan, folder: Path, limit_s: float) -> None:
    async def limited() -> None:
        async with asyncio.timeout(limit_s):
            await Chaos(plan, folder).run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(limited())


@pytest.mark.xdist_group("brokers")
def test_a_short_storm(tmp_path: Path) -> None:
    inflicted(SHORT, tmp_path, 180)


@pytest.mark.chaos
def test_a_long_storm(tmp_path: Path) -> None:
    """CHAOS_SEED=7 chooses another plan, CHAOS_MESSAGES=20000 a smaller number."""
    seed = int(os.environ.get("CHAOS_SEED", FULL.seed))
    messages = int(os.environ.get("CHAOS_MESSAGES", FULL.messages))
    plan = Plan(**{**FULL.__dict__, "seed": seed, "messages": messages})
    inflicted(plan, tmp_path, 1800)
