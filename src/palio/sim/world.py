"""One run: a plan happens to a network, checkers watch, a verdict comes out.

    Plan ──▶ World ──▶ Verdict (what went wrong, totals) and, if asked for, the trace

The world owns the clock and the seeded randomness; nothing else in a run has either, so the same
plan gives the same trace, byte for byte.
"""

from __future__ import annotations

from random import Random

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.protocol.links import Frame
from palio.routing.dump import pattern_lines
from palio.routing.packets import (
    Advertise,
    Packet,
    Publish,
    Restate,
    Role,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.patterns.packets import Assembled, Sieved, Unwatch, Watch
from palio.routing.router import Router
from palio.sim.checkers import DeliveryChecker, Violation
from palio.sim.clock import START_US, Clock, Restless
from palio.sim.history import History
from palio.sim.network import Network
from palio.sim.node import Node, Request
from palio.sim.operations import Operation, Plan, Verb, ms
from palio.sim.recomputation import Recomputation, named, shown
from palio.sim.routers import MakeRouter, router_maker
from palio.sim.watches import WatchChecker
from palio.sim.wishes import Wishes
from palio.sim.wording import described, size

QUIET_US_MAX = 60_000_000
"""A healed network must come to rest within this time: links repeat several times a second."""
FRAME_BYTES = 32
"""Incarnations, number, acknowledgement: the head of each frame, as counted in the totals."""


class Totals(msgspec.Struct):
    """What a run cost, between routers only. Numbers of a seed add up to those of many."""

    publications: int = 0
    deliveries: int = 0
    due: int = 0
    """Deliveries that the checker could insist on."""
    compounds: int = 0
    """What clients got of the patterns that they watch."""
    compounds_due: int = 0
    """Of these, the ones that the checker could insist on."""
    messages: int = 0
    """Hops of publications, alone, sieved or in compounds: one for each packet."""
    subscriptions: int = 0
    """Packets about subscriptions, and the filters within restatements."""
    advertisements: int = 0
    watches: int = 0
    """Packets about what is delegated, and the watches within restatements."""
    sessions: int = 0
    frames: int = 0
    bytes: int = 0

    def add(self, other: Totals) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Verdict(msgspec.Struct, frozen=True):
    """How a run ended."""

    seed: int
    kind: str | None
    """The checker that failed; None: all are content."""
    text: str
    totals: Totals


class World:
    """A plan, happening."""

    def __init__(
        self,
        plan: Plan,
        make_router: MakeRouter | None = None,
        trace: list[str] | None = None,
        *,
        recompute: bool = True,
    ) -> None:
        self._plan = plan
        self._make_router = make_router or router_maker(plan.routing, plan.patterns)
        self._trace = trace
        self._clock = Clock()
        self._homes = dict(plan.clients)
        self._numbers = dict.fromkeys(self._homes, 0)
        self._wishes = {client: Wishes() for client in self._homes}
        self._history = History(plan)
        self._checker = DeliveryChecker(plan, self._wishes, self._history)
        self._watch_checker = WatchChecker(plan)
        self._recomputation = Recomputation(plan) if recompute else None
        self.totals = Totals()
        self._is_changed = True
        self._network = Network(self._clock, Random(f"network {plan.seed}"), plan.weather)
        self._network.arrive = self._arrive
        self._nodes: dict[str, Node] = {}

    def run(self) -> Verdict:
        """Let the whole plan happen, then bring the network to rest."""
        try:
            self._run()
        except Violation as violation:
            return self._verdict(violation.kind, str(violation))
        except Restless as error:
            return self._verdict("restless", str(error))
        except Exception as error:  # whatever a router raises is a finding, not our failure
            return self._verdict("broken", f"{type(error).__name__}: {error}")
        return self._verdict(None, "all checkers are content")

    def _verdict(self, kind: str | None, text: str) -> Verdict:
        self.totals.frames = self._network.frames
        if kind is not None:
            text = f"at {ms(self._clock.now_us - START_US)} ms: {text}"
            self._note(f"violation {text}")
        return Verdict(self._plan.seed, kind, text, self.totals)

    def _run(self) -> None:
        self._nodes.update((name, self._node(name)) for name in self._plan.routers)
        for operation in self._plan.operations:
            self._clock.run(operation.time_us + START_US)
            self._happen(operation)
        self._settle()

    def _node(self, name: str) -> Node:
        return Node(
            name,
            _roles(self._plan, name),
            [client for client, home in self._plan.clients if home == name],
            clock=self._clock,
            network=self._network,
            limits=self._plan.limits,
            make_router=lambda: self._make_router(name, self._plan.advertisements),
            watcher=self,
        )

    def _happen(self, operation: Operation) -> None:
        verb, client, argument = operation.verb, operation.client, operation.argument
        if self._trace is not None:
            self._note(str(operation).partition(" ")[2])
        self._is_changed |= verb is not Verb.PUBLISH
        if verb in DISTURBING:
            self._watch_checker.disturbed()
        if isinstance(argument, Message):
            self._publish(client, argument)
        elif isinstance(argument, Filter | Advertisement):
            self._ask(client, REQUESTS[verb](argument))
        elif isinstance(argument, Watch | Unwatch):
            self._ask(client, argument)
            self._watch_checker.asked(client, argument, self._wishes[client])
        elif verb is Verb.CRASH and self._nodes[argument[0]].is_up:
            self._nodes[argument[0]].crash()
        elif verb is Verb.RESTART and not self._nodes[argument[0]].is_up:
            self._nodes[argument[0]].start()
        elif verb is Verb.CUT:
            self._network.cut(*argument)
        elif verb is Verb.HEAL:
            self._network.heal(*argument)
        elif verb is Verb.SETTLE:
            self._settle()
        elif verb is Verb.SHOW:
            self._show(argument[0])

    def _publish(self, client: str, message: Message) -> None:
        node = self._nodes[self._homes[client]]
        if not node.is_up:
            self._note(f"{client} cannot publish: its router is down")
            return
        self._numbers[client] += 1
        publication = Publish(message, client, self._numbers[client], self._clock.now_us)
        self.totals.publications += 1
        self._checker.published(publication, node.name, self._clock.instant)
        is_known = not self._plan.advertisements or any(
            self._wishes[client].allowing(message, self._clock.instant)
        )
        self._watch_checker.published(publication, is_known)
        node.publish(client, publication)

    def _ask(self, client: str, packet: Packet) -> None:
        applied = self._wishes[client].ask(packet, self._clock.instant)

        def acknowledge() -> None:
            applied(self._clock.instant)
            if self._trace is not None:
                self._note(f"{client} has {described(packet)}")

        self._nodes[self._homes[client]].ask(Request(client, packet, acknowledge))

    def _settle(self) -> None:
        """Heal everything, wait until nothing moves, and look closely."""
        self._network.heal_all()
        for node in self._nodes.values():
            if not node.is_up:
                node.start()
        self._clock.run_until_quiet(QUIET_US_MAX)
        self._note("quiet")
        restless = [name for name, node in self._nodes.items() if not node.is_idle()]
        if restless:
            raise Violation("restless", f"nothing moves, but work waits in {named(restless)}")
        for sender, receiver in self._history.unfinished():
            raise Violation("restless", f"{sender} and {receiver} do not agree on their session")
        self.totals.due += self._checker.check_lost()
        late = sum(node.router.late for node in self._nodes.values() if node.router is not None)
        self.totals.compounds_due += self._watch_checker.check_missed(late)
        if self._is_changed and self._recomputation is not None:  # publications change no table
            difference = self._recomputation.difference(self._nodes, self._wishes)
            if difference is not None:
                raise Violation("state", difference)
            self._is_changed = False

    def _show(self, name: str) -> None:
        """The routing table of a router, filter by filter, as the 2000 paper draws it; then its
        patterns."""
        router = self._nodes[name].router
        if router is None:
            self._note(f"  router {name} is down")
            return
        for f in router.subscriptions:
            self._note(f"  {shown(f, router.subscribers(f), router.forwards(f))}")
        for line in pattern_lines(router.watches) if isinstance(router, Router) else ():
            self._note(line)

    def _note(self, text: str) -> None:
        if self._trace is not None:
            self._trace.append(f"{ms(self._clock.now_us - START_US)} {text}")

    def _arrive(self, sender: str, receiver: str, frame: Frame[Packet]) -> None:
        self.totals.bytes += FRAME_BYTES
        if frame.packet is not None:
            self.totals.bytes += size(frame.packet)
        self._nodes[receiver].receive(sender, frame)

    # What nodes report (`palio.sim.node.Watcher`).

    def opened(self, router: str, peer: str, session: tuple[int, int]) -> None:
        self.totals.sessions += 1
        self._history.opened(router, peer, session, self._clock.instant)
        if self._trace is not None:
            self._note(f"{router} has a session with {peer}")

    def closed(self, router: str, peer: str) -> None:
        self._history.closed(router, peer, self._clock.instant)
        if self._trace is not None:
            self._note(f"{router} has no session with {peer} any more")

    def sent(self, router: str, peer: str, packet: Packet) -> None:
        self._history.sent(router, peer, self._clock.instant)
        if isinstance(packet, Publish | Assembled | Sieved):
            self.totals.messages += 1
        elif isinstance(packet, Watch | Unwatch):
            self.totals.watches += 1
        elif isinstance(packet, Subscribe | Unsubscribe):
            self.totals.subscriptions += 1
        elif isinstance(packet, Restate):
            self.totals.subscriptions += len(packet.subscriptions)
            self.totals.advertisements += len(packet.advertisements)
            self.totals.watches += len(packet.watches)
        else:
            self.totals.advertisements += 1
        if self._trace is not None:
            self._note(f"{router} -> {peer} {described(packet)}")

    def arrived(self, router: str, peer: str, packet: Packet) -> None:
        self._history.delivered(router, peer, self._clock.instant)
        if self._trace is not None:
            self._note(f"{router} <- {peer} {described(packet)}")

    def delivered(self, client: str, publication: Publish) -> None:
        self.totals.deliveries += 1
        if self._trace is not None:
            self._note(f"{client} gets {described(publication)}")
        self._checker.delivered(client, publication)

    def assembled(self, client: str, packet: Assembled) -> None:
        self.totals.compounds += 1
        if self._trace is not None:
            self._note(f"{client} gets {described(packet)}")
        self._watch_checker.assembled(client, packet)


DISTURBING = {Verb.ADVERTISE, Verb.UNADVERTISE, Verb.CRASH, Verb.CUT}
REQUESTS = {
    Verb.SUBSCRIBE: Subscribe,
    Verb.UNSUBSCRIBE: Unsubscribe,
    Verb.ADVERTISE: Advertise,
    Verb.UNADVERTISE: Unadvertise,
}


def _roles(plan: Plan, name: str) -> dict[str, Role]:
    """What each neighbouring router is to this one."""
    roles: dict[str, Role] = {}
    for a, b in plan.links:
        if name in (a, b):
            other = b if name == a else a
            if not plan.hierarchy:
                roles[other] = Role.NEIGHBOUR
            else:
                roles[other] = Role.CLIENT if name == a else Role.MASTER
    return roles


def run(plan: Plan, make_router: MakeRouter | None = None, *, recompute: bool = True) -> Verdict:
    """Run a plan without a trace.

    Without `recompute` the routing tables are not compared with a recomputation, which compares all
    pairs of filters: thousands of subscriptions would take hours. Deliveries are checked as always.
    """
    return World(plan, make_router, recompute=recompute).run()


def traced(plan: Plan, make_router: MakeRouter | None = None) -> tuple[Verdict, list[str]]:
    """Run a plan and keep every line of what happened."""
    lines: list[str] = []
    verdict = World(plan, make_router, lines).run()
    return verdict, lines
