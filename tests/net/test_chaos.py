"""Nothing is lost and nothing doubled while things fail (tests/net/chaos/)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from tests.net.chaos.plans import FULL, OTHERS, SHORT, Plan
from tests.net.chaos.run import Chaos
from tests.net.chaos.scene import Scene
from tests.net.chaos.scene_clock import ClockScene, why_no_shifted_clock
from tests.net.chaos.scene_config import ConfigScene
from tests.net.chaos.scene_database import FailoverScene, TakeoverScene, why_no_postgres
from tests.net.chaos.scene_disk import DiskScene, why_no_small_disk

SCENES: dict[str, tuple[type[Scene], Callable[[], str | None]]] = {
    "clock": (ClockScene, why_no_shifted_clock),
    "stop": (Scene, lambda: None),
    "config": (ConfigScene, lambda: None),
    "disk": (DiskScene, why_no_small_disk),
    "takeover": (TakeoverScene, why_no_postgres),
    "failover": (FailoverScene, why_no_postgres),
}
"""By the name of the plan; the second says why it cannot run here."""


def inflicted(plan: Plan, folder: Path, limit_s: float, name: str = "storm") -> None:
    scene, why_not = SCENES.get(name, (Scene, lambda: None))
    if reason := why_not():
        print(f"\nchaos {name}: skipped: {reason}")
        pytest.skip(reason)

    async def limited() -> str:
        async with asyncio.timeout(limit_s):
            return await Chaos(plan, folder, scene).run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        summary = runner.run(limited())
    print(f"\nchaos {name}, seed {plan.seed}: {summary}")


def chosen(plan: Plan) -> Plan:
    """CHAOS_SEED=7 chooses other faults, CHAOS_MESSAGES=20000 a smaller number."""
    seed = int(os.environ.get("CHAOS_SEED", plan.seed))
    messages = int(os.environ.get("CHAOS_MESSAGES", plan.messages))
    return replace(plan, seed=seed, messages=messages)


@pytest.mark.xdist_group("brokers")
def test_a_short_storm(tmp_path: Path) -> None:
    inflicted(SHORT, tmp_path, 180)


@pytest.mark.chaos
def test_a_long_storm(tmp_path: Path) -> None:
    inflicted(chosen(FULL), tmp_path, 1800)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_a_short_plan(name: str, tmp_path: Path) -> None:
    inflicted(OTHERS[name][0], tmp_path, 300, name)


@pytest.mark.chaos
@pytest.mark.parametrize("name", OTHERS)
def test_a_long_plan(name: str, tmp_path: Path) -> None:
    inflicted(chosen(OTHERS[name][1]), tmp_path, 3600, name)
