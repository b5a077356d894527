"""Many seeds of brokers: run them, in several processes when they are many, and add them up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from palio.errors import PalioError
from palio.sim.brokers.workload import BrokerSettings, draw
from palio.sim.brokers.world import BrokerTotals, BrokerVerdict, run
from palio.sim.runs import SEEDS_MIN


class BrokerSummary:
    """The sums of many verdicts."""

    def __init__(self) -> None:
        self.seeds = 0
        self.failed: list[int] = []
        self.totals = BrokerTotals()

    def add(self, verdict: BrokerVerdict) -> None:
        self.seeds += 1
        if verdict.kind is not None:
            self.failed.append(verdict.seed)
        self.totals.add(verdict.totals)

    def row(self) -> dict[str, object]:
        """One object for JSON."""
        totals = msgspec.structs.asdict(self.totals)
        return {"seeds": self.seeds, "failed": self.failed, **totals}


def row(verdict: BrokerVerdict) -> dict[str, object]:
    """One object for JSON."""
    found = {"seed": verdict.seed, "verdict": verdict.kind or "ok", "text": verdict.text}
    found["fingerprint"] = verdict.fingerprint
    return found | msgspec.structs.asdict(verdict.totals)


def judge(settings: BrokerSettings, seed: int) -> BrokerVerdict:
    return run(draw(settings, seed))


def judge_all(
    settings: BrokerSettings, seeds: range, *, processes: int | None = None
) -> Iterator[BrokerVerdict]:
    """The verdicts of many seeds, in their order."""
    count = processes or (1 if len(seeds) < SEEDS_MIN else os.cpu_count() or 1)
    if count < 1:
        raise PalioError(f"a simulation needs at least 1 process, not {count}")
    task = partial(judge, settings)
    if count == 1:
        yield from map(task, seeds)
        return
    with ProcessPoolExecutor(count) as pool:
        try:
            yield from pool.map(task, seeds, chunksize=4)
        finally:
            pool.shutdown(cancel_futures=True)
