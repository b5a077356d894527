"""Seeds of routers: run them, compare what they cost with simpler routing, and add them up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from palio.errors import PalioError
from palio.sim.kernel.seeds import over_seeds
from palio.sim.kernel.verdicts import RunSummary, RunVerdict
from palio.sim.kernel.workload import SimulationWorkload
from palio.sim.routers.drawing import RouterSettings, draw
from palio.sim.routers.plans import RouterPlan, parse_router_plan
from palio.sim.routers.reductions import REDUCTIONS
from palio.sim.routers.simulation import RouterTotals, run

SHRINKING_RUNS_MAX = 1_000

ROUTERS: SimulationWorkload[RouterPlan] = SimulationWorkload(
    parse_router_plan,
    lambda plan, trace: run(plan, trace=trace),
    REDUCTIONS,
    SHRINKING_RUNS_MAX,
)


class RouterOutcome(msgspec.Struct, frozen=True):
    """A seed's verdict, and what the same operations cost, if that was asked: without covering,
    or with patterns matched where they are watched."""

    verdict: RunVerdict[RouterTotals]
    plain: RouterTotals | None = None
    undelegated: RouterTotals | None = None

    def row(self) -> dict[str, object]:
        """One object for JSON."""
        return self.verdict.row() | _saving(self.verdict.totals, self.plain, self.undelegated)


class RouterSummary(RunSummary[RouterTotals]):
    """The sums of many outcomes."""

    def __init__(self) -> None:
        super().__init__(RouterTotals())
        self.plain: RouterTotals | None = None
        self.undelegated: RouterTotals | None = None

    def add_outcome(self, outcome: RouterOutcome) -> None:
        self.add(outcome.verdict)
        if outcome.plain is not None:
            self.plain = self.plain or RouterTotals()
            self.plain.add(outcome.plain)
        if outcome.undelegated is not None:
            self.undelegated = self.undelegated or RouterTotals()
            self.undelegated.add(outcome.undelegated)

    def row(self) -> dict[str, object]:
        return super().row() | _saving(self.totals, self.plain, self.undelegated)


def _saving(
    totals: RouterTotals, plain: RouterTotals | None, undelegated: RouterTotals | None
) -> dict[str, object]:
    savings: dict[str, object] = {}
    if plain is not None:
        savings |= {
            "plain_subscriptions": plain.subscriptions,
            "saved_by_covering": plain.subscriptions - totals.subscriptions,
        }
    if undelegated is not None:
        savings |= {
            "undelegated_messages": undelegated.messages,
            "undelegated_bytes": undelegated.bytes,
            "saved_by_delegation": undelegated.messages - totals.messages,
        }
    return savings


def judge(settings: RouterSettings, seed: int, *, compare: bool = False) -> RouterOutcome:
    """Run the plan of one seed; to compare, once more without covering, or, where clients watch
    patterns, without delegation."""
    plan = draw(settings, seed)
    verdict = run(plan)
    if not compare or plan.routing != "covering" or plan.graph:
        return RouterOutcome(verdict)
    if settings.patterns:
        if not settings.delegation:
            return RouterOutcome(verdict)
        there = msgspec.structs.replace(plan.patterns, delegates=False)
        other = run(msgspec.structs.replace(plan, patterns=there))
        return RouterOutcome(verdict, undelegated=_totals_of(other, "--delegation off"))
    other = run(msgspec.structs.replace(plan, routing="plain"))
    return RouterOutcome(verdict, plain=_totals_of(other, "--routing plain"))


def _totals_of(other: RunVerdict[RouterTotals], option: str) -> RouterTotals:
    """The totals of a run to compare with, which must not fail either."""
    if other.kind is not None:
        raise PalioError(
            f"seed {other.seed} fails with {option}, which it is compared with: {other.text}; "
            f"run it with {option} --seed {other.seed} to see it shrunk, or with --no-compare"
        )
    return other.totals


def judge_all(
    settings: RouterSettings, seeds: range, *, compare: bool = False, processes: int | None = None
) -> Iterator[RouterOutcome]:
    """The outcomes of many seeds, in their order."""
    return over_seeds(partial(judge, settings, compare=compare), seeds, processes=processes)
