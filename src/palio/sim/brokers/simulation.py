"""One run of brokers: a plan happens to brokers and applications, checks watch, a verdict comes out.

    operations with faults ──▶ heal, wait for quiet ──▶ probes ──▶ everybody leaves ──▶ leftovers

The same plan gives the same bytes on the same connections at the same times, whatever the hashes
are; the verdict's fingerprint is a digest of them.
"""

from __future__ import annotations

import hashlib
from functools import partial
from random import Random

from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.settings import Neighbour, Settings
from palio.protocol.durability.queues import Full
from palio.sim.brokers.application import ApplicationProcess
from palio.sim.brokers.core_view import IDENTITY, has_unfinished_frames, last_values, state_lines
from palio.sim.brokers.delivery_check import EndToEndChecker
from palio.sim.brokers.plans import (
    BrokerOperation,
    BrokerPlan,
    BrokerVerb,
    MessageSpec,
    SubscriptionSpec,
)
from palio.sim.brokers.process import BrokerProcess, MakeBroker
from palio.sim.brokers.rest_check import check_leftovers, why_restless
from palio.sim.kernel.process import SimulatedProcess
from palio.sim.kernel.simulation import Simulation
from palio.sim.kernel.streams import StreamNetwork
from palio.sim.kernel.verdicts import RunTotals, RunVerdict, Violation

BEGIN_US = 1_000_000_000
"""When brokers start: nothing is asked for from before all time."""
START_US = 1_000_000
"""How much later operations begin: links and connections are there."""
QUIET_US_MAX = 180_000_000
PATIENCE_US = 3_000_000
IDLE_STEP_US = 1_000
FAST_US = 2_000
ADVERTISED = ("x >= 0", "s >= ''")
WAITING_LARGE = 10_000
"""So many live messages may wait that none is dropped in a run."""
QUEUE_LARGE = 1_000
"""Queues of this length lose nothing in a run."""


class BrokerTotals(RunTotals):
    """What happened in a run."""

    publications: int = 0
    deliveries: int = 0
    due: int = 0
    """Deliveries that the check could insist on."""
    pieces: int = 0
    bytes: int = 0
    crashes: int = 0
    virtual_s: int = 0


SHIPPED: MakeBroker = partial(Broker, defers=True)
"""Brokers as hosts run them."""


class BrokerSimulation(Simulation[BrokerOperation, BrokerTotals]):
    """A plan of brokers, happening."""

    def __init__(
        self, plan: BrokerPlan, make_broker: MakeBroker = SHIPPED, trace: list[str] | None = None
    ) -> None:
        super().__init__(plan, BrokerTotals(), trace, BEGIN_US + START_US)
        self._plan = plan
        self._digest = hashlib.sha256()
        self._checker = EndToEndChecker(
            _losing_policies(plan), plan.limits.waiting_max < WAITING_LARGE
        )
        self.network: StreamNetwork = StreamNetwork(
            self._clock, Random(f"wires {plan.seed}"), self._saw
        )
        self.brokers = {name: self._broker(name, make_broker) for name in plan.brokers}
        self.applications = {
            client.name: ApplicationProcess(
                client,
                self.network,
                Random(f"application {plan.seed} {client.name}"),
                self.brokers[client.home],
                self._checker,
                self._note,
            )
            for client in plan.clients
        }
        self.processes: dict[str, SimulatedProcess] = {**self.brokers, **self.applications}

    def _broker(self, name: str, make_broker: MakeBroker) -> BrokerProcess:
        plan, neighbours, dials = self._plan, dict[str, Neighbour](), list[str]()
        for link in plan.links:
            if name in (link.first, link.second):
                other = link.second if name == link.first else link.first
                role = plan.role(name, other)
                neighbours[other] = Neighbour(_secret(name, other), link.weight, role)
                if name == link.first or link.both_dial:
                    dials.append(other)
        settings = Settings(
            name,
            Access(anonymous=Identity(IDENTITY, EVERYTHING, EVERYTHING, admin=True)),
            neighbours,
            plan.routing,
            plan.advertisements,
            link_credit=plan.limits.link_credit,
            waiting_max=plan.limits.waiting_max,
            full=Full(plan.limits.full),
            bounds=plan.bounds,
        )
        random, find = Random(f"host {plan.seed} {name}"), lambda other: self.brokers[other]
        note = None if self._trace is None else self._note
        return BrokerProcess(settings, self.network, random, tuple(dials), find, make_broker, note)

    def _finish_totals(self) -> None:
        totals = self.totals
        totals.publications = len(self._checker.publications)
        totals.deliveries, totals.due = self._checker.deliveries, self._checker.due
        totals.crashes = sum(process.crashes for process in self.brokers.values())
        totals.virtual_s = (self._clock.now_us - BEGIN_US) // 1_000_000

    # ---- operations

    def _happen_all(self) -> None:
        self._clock.run(BEGIN_US)
        for process in self.brokers.values():
            process.start()
        for application in self.applications.values():
            application.connect()
            if self._plan.advertisements:
                application.advertise(ADVERTISED)
        for operation in self._plan.operations:
            self._happen(operation)
        self._note("all operations are done")
        self._come_to_rest()
        self._probe()
        self._leave()

    def _act(self, operation: BrokerOperation) -> None:
        application, argument = self.applications[operation.client], operation.argument
        match argument:
            case MessageSpec():
                application.publish(argument)
            case SubscriptionSpec():
                application.subscribe(argument)
            case str():
                application.leave(argument, forget=operation.verb is BrokerVerb.FORGET)
            case None if operation.verb is BrokerVerb.CONNECT:
                application.connect()
            case None:
                application.disconnect()

    def _show(self, place: str) -> None:
        core = self.brokers[place].core
        if core is None:
            self._note(f"  {place} is down")
            return
        for line in state_lines(core):
            self._note(f"  {line}")

    # ---- coming to rest

    def _settle(self) -> None:
        self._come_to_rest()
        for client in self._plan.clients:
            self.applications[client.name].pace_us = client.pace_us

    def _come_to_rest(self) -> None:
        """Heal everything, have everybody connected and quick, wait until nothing is left to do."""
        self._heal()
        for application in self.applications.values():
            application.connect()
            application.pace_us = FAST_US
        self._wait_for_rest()
        self._check_lost()

    def _check_lost(self) -> None:
        self._checker.check_lost()
        cores = {name: process.core for name, process in self.brokers.items()}
        held = {name: last_values(core) for name, core in cores.items() if core is not None}
        self._checker.last_values.check(held, self._checker.expected.values())

    def _wait_for_rest(self) -> None:
        limit_us = self._clock.now_us + QUIET_US_MAX
        while (why := self._why_restless()) is not None:
            if self._clock.now_us > limit_us:
                raise Violation("restless", f"{QUIET_US_MAX / 1e6:g} s after all healed, {why}")
            for expected in self._checker.expected.values():
                if not expected.members:  # it was left, and its queue is to be emptied
                    self.applications[expected.owner].subscribe(expected.spec)
            self._clock.run(self._clock.now_us + PATIENCE_US // 6)
        self._clock.run(self._clock.now_us + PATIENCE_US)
        self._note("quiet")

    def _why_restless(self) -> str | None:
        for application in self.applications.values():
            if not application.is_idle:
                return f"{application.place} is not connected, or waits for something"
        for expected in self._checker.expected.values():
            if expected.subscribed_us is None or not expected.members:
                return f"{expected} does not exist"
        return why_restless(self.brokers.values(), self._plan.links)

    def _probe(self) -> None:
        """Publish messages that must reach every subscription that they match."""
        self._note("probes")
        self._checker.begin_probing()
        random = Random(f"probes {self._plan.seed}")
        for application in self.applications.values():
            for durable in (False, True, False):
                text = f'{{"x": {random.randrange(9)}, "s": "{random.choice("ab")}"}}'
                application.publish(MessageSpec(text, b"probe", durable))
                self._clock.run(self._clock.now_us + 40_000)
        self._clock.run(self._clock.now_us + PATIENCE_US)
        self._wait_for_rest()
        self._check_lost()

    def _leave(self) -> None:
        """Everybody leaves, and what was kept for latecomers is thrown away."""
        self._note("everybody leaves")
        for application in self.applications.values():
            application.disconnect()
        self._clock.run(self._clock.now_us + self._plan.bounds.retention_us + 15_000_000)
        self._wait_for_whole_frames()
        check_leftovers(self.brokers, self._plan.links, self._checker.expected.values())

    def _wait_for_whole_frames(self) -> None:
        """Brokers exchange Ping and Pong for ever. Of one that is in transit, a broker may have read
        the beginning: that is no leftover, unless it stays."""
        limit_us = self._clock.now_us + PATIENCE_US
        cores = [process.core for process in self.brokers.values()]
        while any(core is not None and has_unfinished_frames(core) for core in cores):
            if self._clock.now_us > limit_us:
                return  # the check of leftovers says where
            self._clock.run(self._clock.now_us + IDLE_STEP_US)

    # ---- the fingerprint

    def _saw(self, stream: int, side: int, piece: bytes) -> None:
        self.totals.pieces += 1
        self.totals.bytes += len(piece)
        self._digest.update(f"{self._clock.now_us} {stream} {side} {len(piece)} ".encode())
        self._digest.update(piece)

    def _fingerprint(self) -> str:
        return self._digest.hexdigest()


def _secret(a: str, b: str) -> bytes:
    return f"the secret of {' and '.join(sorted((a, b)))}".encode()


def _losing_policies(plan: BrokerPlan) -> tuple[str, ...]:
    """The policies that lose messages when a queue is as short as here."""
    if plan.bounds.queue >= QUEUE_LARGE:
        return ()
    return ("drop", "end") if plan.limits.full == "block" else ("drop", "end", "")


def run(
    plan: BrokerPlan, make_broker: MakeBroker = SHIPPED, trace: list[str] | None = None
) -> RunVerdict[BrokerTotals]:
    """Run a plan; the trace is appended to a list that is given."""
    return BrokerSimulation(plan, make_broker, trace).run()
