"""Make a failing plan short: delta debugging over its operations, then over its network.

Each attempt is a whole run, and is kept if it fails the same check. Chunks of operations are left
out, from halves down to single ones, until none can go; then each reduction of the workload (a
network without faults, without idle clients, without a router) is tried as long as one still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from palio.errors import PalioError
from palio.sim.kernel.plans import SimulationPlan
from palio.sim.kernel.verdicts import RunVerdict
from palio.sim.kernel.workload import Reduction, SimulationWorkload

P = TypeVar("P", bound=SimulationPlan)


class _Budget(Generic[P]):
    """Counts runs; when the budget is used up, every attempt counts as passing."""

    def __init__(self, fails: Callable[[P], bool], runs_max: int) -> None:
        self._fails = fails
        self._left = runs_max

    def fails(self, plan: P) -> bool:
        self._left -= 1
        return self._left >= 0 and self._fails(plan)


def shrink(
    plan: P, fails: Callable[[P], bool], reductions: Sequence[Reduction[P]], runs_max: int
) -> P:
    """A smaller plan that fails too; `plan` itself does."""
    budget = _Budget(fails, runs_max)
    while True:
        before = plan
        plan = _fewer_operations(plan, budget)
        for reduction in reductions:
            plan = _reduced(plan, reduction, budget)
        if plan == before:
            return plan


def shrunk(
    workload: SimulationWorkload[P], plan: P, run: Callable[[P], RunVerdict[Any]] | None = None
) -> P:
    """A short plan that fails the same check as this one; `run` in place of the workload's."""

    def failed_check(tried: P) -> str | None:
        return (run(tried) if run is not None else workload.run(tried, None)).kind

    failed = failed_check(plan)
    if failed is None:
        raise PalioError(f"seed {plan.seed} does not fail, so there is nothing to shrink")

    def fails(smaller: P) -> bool:
        return failed_check(smaller) == failed

    return shrink(plan, fails, workload.reductions, workload.runs_max)


def _fewer_operations(plan: P, budget: _Budget[P]) -> P:
    size = max(1, len(plan.operations) // 2)
    while True:
        at = 0
        while at < len(plan.operations):
            kept = plan.operations[:at] + plan.operations[at + size :]
            shorter = replace(plan, operations=kept)
            if budget.fails(shorter):
                plan = shorter
            else:
                at += size
        if size == 1:
            return plan
        size //= 2


def _reduced(plan: P, reduction: Reduction[P], budget: _Budget[P]) -> P:
    """Apply a reduction as long as the result still fails."""
    while True:
        smaller = next((tried for tried in reduction(plan) if budget.fails(tried)), None)
        if smaller is None:
            return plan
        plan = smaller
