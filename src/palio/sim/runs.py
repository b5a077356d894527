"""Many seeds: run them, in several processes when they are many, and add them up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from palio.errors import PalioError
from palio.sim.operations import Plan
from palio.sim.routers import MakeRouter
from palio.sim.shrinking import shrink
from palio.sim.workload import Settings, draw
from palio.sim.world import Totals, Verdict, run

SEEDS_MIN = 20
"""Fewer are not worth a second process."""


class Outcome(msgspec.Struct, frozen=True):
    """A seed's verdict, and what the same operations cost, if that was asked: without covering,
    or with patterns matched where they are watched."""

    verdict: Verdict
    plain: Totals | None = None
    undelegated: Totals | None = None

    def row(self) -> dict[str, object]:
        """One object for JSON."""
        verdict = self.verdict
        row = {"seed": verdict.seed, "verdict": verdict.kind or "ok", "text": verdict.text}
        row |= msgspec.structs.asdict(verdict.totals)
        return row | _saving(verdict.totals, self.plain, self.undelegated)


class Summary:
    """The sums of many outcomes."""

    def __init__(self) -> None:
        self.seeds = 0
        self.failed: list[int] = []
        self.totals = Totals()
        self.plain: Totals | None = None
        self.undelegated: Totals | None = None

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        if outcome.verdict.kind is not None:
            self.failed.append(outcome.verdict.seed)
        self.totals.add(outcome.verdict.totals)
        if outcome.plain is not None:
            self.plain = self.plain or Totals()
            self.plain.add(outcome.plain)
        if outcome.undelegated is not None:
            self.undelegated = self.undelegated or Totals()
            self.undelegated.add(outcome.undelegated)

    def row(self) -> dict[str, object]:
        """One object for JSON."""
        row: dict[str, object] = {"seeds": self.seeds, "failed": self.failed}
        row |= msgspec.structs.asdict(self.totals)
        return row | _saving(self.totals, self.plain, self.undelegated)


def _saving(totals: Totals, plain: Totals | None, undelegated: Totals | None) -> dict[str, object]:
    found: dict[str, object] = {}
    if plain is not None:
        found |= {
            "plain_subscriptions": plain.subscriptions,
            "saved_by_covering": plain.subscriptions - totals.subscriptions,
        }
    if undelegated is not None:
        found |= {
            "undelegated_messages": undelegated.messages,
            "undelegated_bytes": undelegated.bytes,
            "saved_by_delegation": undelegated.messages - totals.messages,
        }
    return found


def judge(settings: Settings, seed: int, *, compare: bool = False) -> Outcome:
    """Run the plan of one seed; to compare, once more without covering, or, where clients watch
    patterns, without delegation."""
    plan = draw(settings, seed)
    verdict = run(plan)
    if not compare or plan.routing != "covering":
        return Outcome(verdict)
    if settings.patterns:
        if not settings.delegation:
            return Outcome(verdict)
        there = msgspec.structs.replace(plan.patterns, delegates=False)
        other = run(msgspec.structs.replace(plan, patterns=there))
        return Outcome(verdict, undelegated=_silent(other, "--delegation off"))
    other = run(msgspec.structs.replace(plan, routing="plain"))
    return Outcome(verdict, plain=_silent(other, "--routing plain"))


def _silent(other: Verdict, option: str) -> Totals:
    """The totals of a run to compare with, which must satisfy the checkers, too."""
    if other.kind is not None:
        raise PalioError(
            f"seed {other.seed} fails with {option}, which it is compared with: {other.text}; "
            f"run it with {option} --seed {other.seed} to see it shrunk, or with --no-compare"
        )
    return other.totals


def judge_all(
    settings: Settings, seeds: range, *, compare: bool = False, processes: int | None = None
) -> Iterator[Outcome]:
    """The outcomes of many seeds, in their order."""
    count = processes or (1 if len(seeds) < SEEDS_MIN else os.cpu_count() or 1)
    if count < 1:
        raise PalioError(f"a simulation needs at least 1 process, not {count}")
    task = partial(judge, settings, compare=compare)
    if count == 1:
        yield from map(task, seeds)
        return
    with ProcessPoolExecutor(count) as pool:
        try:
            yield from pool.map(task, seeds, chunksize=max(1, min(16, len(seeds) // count)))
        finally:
            pool.shutdown(cancel_futures=True)


def shrunk(plan: Plan, make_router: MakeRouter | None = None) -> Plan:
    """A short plan that fails by the same checker as this one."""
    kind = run(plan, make_router).kind
    if kind is None:
        raise PalioError(f"seed {plan.seed} does not fail, so there is nothing to shrink")
    return shrink(plan, lambda smaller: run(smaller, make_router).kind == kind)
