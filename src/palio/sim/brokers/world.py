"""One run: a plan happens to brokers and clients, the judge watches, a verdict comes out.

    operations with faults ──▶ heal, wait for quiet ──▶ probes ──▶ everybody leaves ──▶ leftovers

The world owns the clock and all randomness; the same plan gives the same bytes on the same wires at
the same times, whatever the hashes are. `fingerprint` is a digest of them.
"""

from __future__ import annotations

import hashlib
from random import Random

import msgspec

from palio.protocol.access import EVERYTHING, Access, Identity
from palio.protocol.durability.queues import Full
from palio.protocol.settings import Neighbour, Settings
from palio.sim.brokers.applications import IDENTITY, Application
from palio.sim.brokers.hosts import Host
from palio.sim.brokers.judging import Judge
from palio.sim.brokers.leftovers import check_leftovers, why_restless
from palio.sim.brokers.plans import Operation, Plan, Sending, Verb, Want
from palio.sim.brokers.wires import Network
from palio.sim.checkers import Violation
from palio.sim.clock import Clock

BEGIN_US = 1_000_000_000
"""When operations begin: nothing is asked for from before all time."""
QUIET_US_MAX = 180_000_000
PATIENCE_US = 3_000_000
FAST_US = 2_000
ADVERTISED = ("x >= 0", "s >= ''")


class BrokerTotals(msgspec.Struct):
    """What happened in a run. Numbers of a seed add up to those of many."""

    publications: int = 0
    deliveries: int = 0
    due: int = 0
    """Deliveries that the judge could insist on."""
    pieces: int = 0
    bytes: int = 0
    crashes: int = 0
    virtual_s: int = 0

    def add(self, other: BrokerTotals) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class BrokerVerdict(msgspec.Struct, frozen=True):
    """How a run ended."""

    seed: int
    kind: str | None
    """The checker that failed; None: all are content."""
    text: str
    fingerprint: str
    totals: BrokerTotals


class BrokerWorld:
    """A plan, happening."""

    def __init__(self, plan: Plan, trace: list[str] | None = None) -> None:
        self._plan = plan
        self._trace = trace
        self._clock = Clock()
        self._digest = hashlib.sha256()
        self.totals = BrokerTotals()
        self._judge = Judge(_losing(plan))
        self._network = Network(self._clock, Random(f"wires {plan.seed}"), self._saw)
        self.hosts = {name: self._host(name) for name in plan.brokers}
        self.applications = {
            client.name: Application(
                client,
                self._network,
                Random(f"application {plan.seed} {client.name}"),
                self.hosts[client.home],
                self._judge,
                self._note,
            )
            for client in plan.clients
        }

    def run(self) -> BrokerVerdict:
        try:
            self._run()
        except Violation as violation:
            return self._verdict(violation.kind, str(violation))
        except Exception as error:  # whatever a broker raises is a finding, not our failure
            return self._verdict("broken", f"{type(error).__name__}: {error}")
        return self._verdict(None, "all checkers are content")

    def _verdict(self, kind: str | None, text: str) -> BrokerVerdict:
        totals = self.totals
        totals.publications = len(self._judge.publications)
        totals.deliveries, totals.due = self._judge.deliveries, self._judge.due
        totals.virtual_s = (self._clock.now_us - BEGIN_US) // 1_000_000
        if kind is not None:
            text = f"at {self._now_ms} ms: {text}"
            self._note(f"violation {text}")
        return BrokerVerdict(self._plan.seed, kind, text, self._digest.hexdigest(), totals)

    # ---- making

    def _host(self, name: str) -> Host:
        plan = self._plan
        neighbours, dials = {}, []
        for edge in plan.edges:
            if name in (edge.first, edge.second):
                other = edge.second if name == edge.first else edge.first
                neighbours[other] = Neighbour(_secret(name, other), edge.weight)
                if name == edge.first or edge.both_dial:
                    dials.append(other)
        settings = Settings(
            name,
            Access(anonymous=Identity(IDENTITY, EVERYTHING, EVERYTHING, admin=True)),
            neighbours,
            plan.routing,
            plan.advertisements,
            link_credit=plan.link_credit,
            waiting_max=plan.waiting_max,
            full=Full(plan.full),
            bounds=plan.bounds,
        )
        random = Random(f"host {plan.seed} {name}")
        return Host(settings, self._network, random, tuple(dials), lambda other: self.hosts[other])

    # ---- happening

    def _run(self) -> None:
        self._clock.run(BEGIN_US)
        for host in self.hosts.values():
            host.start()
        for application in self.applications.values():
            application.connect()
            if self._plan.advertisements:
                application.advertise(ADVERTISED)
        for operation in self._plan.operations:
            self._clock.run(BEGIN_US + 1_000_000 + operation.time_us)
            self._note(str(operation))
            self._happen(operation)
        self._settle()
        self._probe()
        self._part()

    def _happen(self, operation: Operation) -> None:
        verb, who, argument = operation.verb, operation.who, operation.argument
        if who in self.applications and isinstance(argument, Sending | Want | str | None):
            application = self.applications[who]
            if isinstance(argument, Sending):
                application.publish(argument)
            elif isinstance(argument, Want):
                application.subscribe(argument)
            elif verb in (Verb.LEAVE, Verb.FORGET) and argument is not None:
                application.leave(argument, verb is Verb.FORGET)
            elif verb is Verb.CONNECT:
                application.connect()
            elif verb is Verb.DISCONNECT:
                application.disconnect()
        if verb is Verb.CRASH and self.hosts[who].is_up:
            self.totals.crashes += 1
            host = self.hosts[who]
            host.doom() if argument == "in a commit" else host.crash(argument == "silently")
        elif verb is Verb.RESTART:
            self.hosts[who].restart()
        elif verb in (Verb.FREEZE, Verb.THAW):
            sleeper = self.hosts.get(who) or self.applications[who]
            sleeper.freeze() if verb is Verb.FREEZE else sleeper.thaw()
        elif verb in (Verb.CUT, Verb.SILENCE, Verb.PART, Verb.JOIN):
            self._trouble(verb, frozenset((who, str(argument))))

    def _trouble(self, verb: Verb, places: frozenset[str]) -> None:
        if verb is Verb.PART:
            self._network.part(places)
        elif verb is Verb.JOIN:
            self._network.rejoin(places)
        else:
            for wire in self._network.wires(places):
                wire.cut(is_silent=verb is Verb.SILENCE)

    # ---- coming to rest

    def _settle(self) -> None:
        """Heal everything, let everybody be there and quick, and wait until nothing is left to do."""
        self._note("heal")
        self._network.rejoin_all()
        for host in self.hosts.values():
            host.restart()
            host.thaw()
        for application in self.applications.values():
            application.thaw()
            application.connect()
            application.pace_us = FAST_US
        self._rest()
        self._judge.check_lost()

    def _rest(self) -> None:
        limit_us = self._clock.now_us + QUIET_US_MAX
        while (why := self._why_restless()) is not None:
            if self._clock.now_us > limit_us:
                raise Violation("restless", f"{QUIET_US_MAX / 1e6:g} s after all healed, {why}")
            for desk in self._judge.desks.values():
                if not desk.members:  # it was left
                    self.applications[desk.owner].subscribe(desk.want)
            self._clock.run(self._clock.now_us + PATIENCE_US // 6)
        self._clock.run(self._clock.now_us + PATIENCE_US)
        self._note("quiet")

    def _why_restless(self) -> str | None:
        for application in self.applications.values():
            if not application.is_idle:
                return f"{application.place} is not connected, or waits for something"
        for desk in self._judge.desks.values():
            if desk.subscribed_us is None or not desk.members:
                return f"{desk} is not there"
        return why_restless(self.hosts.values(), self._plan.edges)

    def _probe(self) -> None:
        """Publish what everybody who wants it must get."""
        self._judge.begin_probing()
        random = Random(f"probes {self._plan.seed}")
        for application in self.applications.values():
            for durable in (False, True, False):
                text = f'{{"x": {random.randrange(9)}, "s": "{random.choice("ab")}"}}'
                application.publish(Sending(text, b"probe", durable))
                self._clock.run(self._clock.now_us + 40_000)
        self._clock.run(self._clock.now_us + PATIENCE_US)
        self._rest()
        self._judge.check_lost()

    def _part(self) -> None:
        """Everybody leaves, and what was kept for latecomers is thrown away."""
        for application in self.applications.values():
            application.disconnect()
        self._clock.run(self._clock.now_us + self._plan.bounds.retention_us + 15_000_000)
        check_leftovers(self.hosts, self._plan.edges, self._judge.desks.values())

    # ---- the trace

    @property
    def _now_ms(self) -> str:
        return f"{(self._clock.now_us - BEGIN_US) / 1000:.3f}"

    def _saw(self, wire: int, side: int, piece: bytes) -> None:
        self.totals.pieces += 1
        self.totals.bytes += len(piece)
        self._digest.update(f"{self._clock.now_us} {wire} {side} {len(piece)} ".encode())
        self._digest.update(piece)

    def _note(self, text: str) -> None:
        if self._trace is not None:
            self._trace.append(f"{self._now_ms} {text}")


def _secret(a: str, b: str) -> bytes:
    return f"the secret of {' and '.join(sorted((a, b)))}".encode()


def _losing(plan: Plan) -> tuple[str, ...]:
    """The policies that lose messages when a queue is as short as here."""
    if plan.bounds.queue >= 1000:
        return ()
    return ("drop", "end") if plan.full == "block" else ("drop", "end", "")


def run(plan: Plan) -> BrokerVerdict:
    return BrokerWorld(plan).run()


def traced(plan: Plan) -> tuple[BrokerVerdict, list[str]]:
    """The verdict, and every operation and end of a connection on the way."""
    lines: list[str] = []
    return BrokerWorld(plan, lines).run(), lines
