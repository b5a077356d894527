"""One run: executes a plan on processes and a network, checks it, and returns a verdict.

    plan ──▶ Simulation ──▶ RunVerdict (which check failed, totals) and, if asked for, the trace

The simulation owns the clock and all seeded randomness; nothing else in a run has either, so the
same plan gives the same trace, byte for byte. What a network verb does is decided here, for all
workloads; what a client's verb does, and what must hold when all is quiet, is the workload's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

from palio.sim.kernel.clock import VirtualClock
from palio.sim.kernel.network import SimulatedNetwork
from palio.sim.kernel.plans import NetworkVerb, Operation, SimulationPlan, ms
from palio.sim.kernel.process import SimulatedProcess
from palio.sim.kernel.verdicts import RunTotals, RunVerdict, Violation

CONTENT = "no check failed"

Op = TypeVar("Op", bound=Operation)
T = TypeVar("T", bound=RunTotals)


class Simulation(ABC, Generic[Op, T]):
    """`origin_us`: the time that operations and the trace are counted from."""

    network: SimulatedNetwork
    processes: Mapping[str, SimulatedProcess]

    def __init__(
        self, plan: SimulationPlan, totals: T, trace: list[str] | None, origin_us: int
    ) -> None:
        self.totals = totals
        self._seed = plan.seed
        self._trace = trace
        self._origin_us = origin_us
        self._clock = VirtualClock()

    def run(self) -> RunVerdict[T]:
        """Run the whole plan."""
        try:
            self._happen_all()
        except Violation as violation:
            return self._verdict(violation.kind, str(violation))
        except Exception as error:  # whatever the simulated code raises is a finding
            return self._verdict("broken", f"{type(error).__name__}: {error}")
        return self._verdict(None, CONTENT)

    def _verdict(self, kind: str | None, text: str) -> RunVerdict[T]:
        self._finish_totals()
        if kind is not None:
            text = f"at {self._now_ms} ms: {text}"
            self._note(f"violation {text}")
        return RunVerdict(self._seed, kind, text, self.totals, self._fingerprint())

    # ---- for workloads to implement

    @abstractmethod
    def _happen_all(self) -> None:
        """Start, run each operation, and finish."""

    @abstractmethod
    def _act(self, operation: Op) -> None:
        """A client does something."""

    @abstractmethod
    def _settle(self) -> None:
        """Heal all faults, wait until the network is quiet, and run the checks for that."""

    @abstractmethod
    def _show(self, place: str) -> None:
        """The state of a place, into the trace."""

    @abstractmethod
    def _finish_totals(self) -> None:
        """Fill in what is counted elsewhere."""

    def _fingerprint(self) -> str:
        return ""

    # ---- operations

    def _happen(self, operation: Op) -> None:
        self._clock.run(operation.time_us + self._origin_us)
        if self._trace is not None:
            self._note(str(operation).partition(" ")[2])
        if isinstance(operation.verb, NetworkVerb):
            self._happen_to_network(operation.verb, operation)
        else:
            self._act(operation)

    def _happen_to_network(self, verb: NetworkVerb, operation: Op) -> None:
        places = operation.places
        match verb:
            case NetworkVerb.SETTLE:
                self._settle()
            case NetworkVerb.SHOW:
                self._show(places[0])
            case NetworkVerb.CRASH:
                self.processes[places[0]].crash(operation.mode)
            case NetworkVerb.RESTART:
                self.processes[places[0]].restart()
            case NetworkVerb.FREEZE:
                self.processes[places[0]].freeze()
            case NetworkVerb.THAW:
                self.processes[places[0]].thaw()
            case NetworkVerb.PARTITION:
                self.network.partition(*places)
            case NetworkVerb.HEAL:
                self.network.heal(*places)
            case NetworkVerb.CUT | NetworkVerb.SILENCE:
                is_silent = verb is NetworkVerb.SILENCE
                self.network.break_connections(*places, is_silent=is_silent)

    def _heal(self) -> None:
        """End all faults."""
        self.network.heal_all()
        for process in self.processes.values():
            process.restart()
            process.thaw()

    # ---- the trace

    @property
    def _now_ms(self) -> str:
        return ms(self._clock.now_us - self._origin_us)

    def _note(self, text: str) -> None:
        if self._trace is not None:
            self._trace.append(f"{self._now_ms} {text}")
