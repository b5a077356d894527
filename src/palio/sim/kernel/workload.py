"""A workload, as the kernel sees it: how its plans are read, run and made smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from palio.sim.kernel.plans import SimulationPlan
from palio.sim.kernel.verdicts import RunVerdict

P = TypeVar("P", bound=SimulationPlan)

Reduction: TypeAlias = Callable[[P], Iterator[P]]
"""Plans that are a little smaller than a plan, the most promising first."""


@dataclass(frozen=True)
class SimulationWorkload(Generic[P]):
    """`run` takes a plan, and a list for the trace if one is wanted."""

    parse: Callable[[str], P]
    run: Callable[[P, list[str] | None], RunVerdict[Any]]
    reductions: tuple[Reduction[P], ...]
    runs_max: int
    """The most runs that shrinking a plan may take."""

    def traced(self, plan: P) -> tuple[RunVerdict[Any], list[str]]:
        """Run a plan and keep every line of what happened."""
        lines: list[str] = []
        return self.run(plan, lines), lines
