"""Seeds of brokers: run them, in several processes when they are many."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from palio.sim.brokers.drawing import BrokerSettings, draw
from palio.sim.brokers.plans import BrokerPlan, parse_broker_plan
from palio.sim.brokers.reductions import REDUCTIONS
from palio.sim.brokers.simulation import BrokerTotals, run
from palio.sim.kernel.seeds import over_seeds
from palio.sim.kernel.verdicts import RunVerdict
from palio.sim.kernel.workload import SimulationWorkload

SHRINKING_RUNS_MAX = 500

BROKERS: SimulationWorkload[BrokerPlan] = SimulationWorkload(
    parse_broker_plan,
    lambda plan, trace: run(plan, trace=trace),
    REDUCTIONS,
    SHRINKING_RUNS_MAX,
)


def judge(settings: BrokerSettings, seed: int) -> RunVerdict[BrokerTotals]:
    """Run the plan of one seed."""
    return run(draw(settings, seed))


def judge_all(
    settings: BrokerSettings, seeds: range, *, processes: int | None = None
) -> Iterator[RunVerdict[BrokerTotals]]:
    """The verdicts of many seeds, in their order."""
    return over_seeds(partial(judge, settings), seeds, processes=processes)
