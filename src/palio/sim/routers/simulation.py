"""One run of routers: a plan happens to them, checks watch, a verdict comes out."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from random import Random
from typing import Any

from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.dump import pattern_lines
from palio.routing.hierarchy import EVERYTHING
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
from palio.routing.topology import Topology
from palio.sim.kernel.clock import START_US
from palio.sim.kernel.datagrams import DatagramNetwork
from palio.sim.kernel.plans import NetworkVerb
from palio.sim.kernel.simulation import Simulation
from palio.sim.kernel.verdicts import RunTotals, RunVerdict, Violation
from palio.sim.routers.delivery_check import DeliveryChecker
from palio.sim.routers.fresh_routers import graph_difference
from palio.sim.routers.kinds import MakeRouter, router_maker
from palio.sim.routers.link_history import LinkHistory
from palio.sim.routers.links import LinkFrame
from palio.sim.routers.packet_text import described, size
from palio.sim.routers.pattern_check import WatchChecker
from palio.sim.routers.plans import RouterOperation, RouterPlan, RouterVerb
from palio.sim.routers.process import ClientRequest, RouterProcess
from palio.sim.routers.recomputation import Recomputation, named, shown
from palio.sim.routers.subscription_history import SubscriptionHistory
from palio.sim.routers.topology_watch import TopologyWatch

QUIET_US_MAX = 60_000_000
"""A healed network must come to rest within this time: links repeat several times a second."""
FRAME_BYTES = 32
"""Incarnations, number, acknowledgement: the head of each frame, as counted in the totals."""


class RouterTotals(RunTotals):
    """What a run cost, between routers only."""

    publications: int = 0
    deliveries: int = 0
    due: int = 0
    """Deliveries that the check could insist on."""
    compounds: int = 0
    """What clients got of the patterns that they watch."""
    compounds_due: int = 0
    """Of these, the ones that the check could insist on."""
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


class RouterSimulation(Simulation[RouterOperation, RouterTotals]):
    """A plan of routers, happening."""

    def __init__(
        self,
        plan: RouterPlan,
        make_router: MakeRouter | None = None,
        trace: list[str] | None = None,
        *,
        recompute: bool = True,
    ) -> None:
        super().__init__(plan, RouterTotals(), trace, START_US)
        self._plan = plan
        self._make_router = make_router or router_maker(
            plan.routing, plan.patterns, lambda: self._clock.now_us, is_graph=plan.graph
        )
        self._router_of = dict(plan.clients)
        self._numbers = dict.fromkeys(self._router_of, 0)
        self._histories = {client: SubscriptionHistory() for client in self._router_of}
        self._links = LinkHistory(plan)
        random = Random(f"topology {plan.seed}")
        self._topology = TopologyWatch(plan, self._clock, random, self._tell_topology)
        watch = self._topology if plan.graph else None
        self._deliveries = DeliveryChecker(plan, self._histories, self._links, watch)
        self._watches = WatchChecker(plan)
        self._recomputation = Recomputation(plan) if recompute else None
        self._is_changed = True
        self.network: DatagramNetwork = DatagramNetwork(
            self._clock, Random(f"network {plan.seed}"), plan.datagrams
        )
        self.network.arrive = self._arrive
        self.processes: dict[str, RouterProcess] = {}

    def _happen_all(self) -> None:
        self.processes.update((name, self._process(name)) for name in self._plan.routers)
        for operation in self._plan.operations:
            self._is_changed |= operation.verb is not RouterVerb.PUBLISH
            if operation.verb in DISTURBING:
                self._watches.disturbed()
            self._happen(operation)
        self._settle()
        if self._plan.graph:
            self._leave()

    def _leave(self) -> None:
        """All clients take back what they said, and no router may hold anything then. The totals do
        not count it."""
        totals, self.totals = self.totals, RouterTotals()
        for client, said in self._histories.items():
            self._ask(client, Unsubscribe(EVERYTHING))
            for offer in said.offers():
                self._ask(client, Unadvertise(offer))
        self._is_changed = True
        self._settle()
        self.totals = totals
        for name, process in self.processes.items():
            assert isinstance(process.router, Router)
            items = [*process.router.subscriptions, *process.router.advertisements]
            if items:
                raise Violation("leftovers", f"router {name} still has {items[0]}")

    def _tell_topology(self, router: str, net: Topology | None) -> None:
        self.processes[router].learn(net)

    def _finish_totals(self) -> None:
        self.totals.frames = self.network.sent

    def _process(self, name: str) -> RouterProcess:
        return RouterProcess(
            name,
            _roles(self._plan, name),
            [client for client, router in self._plan.clients if router == name],
            network=self.network,
            limits=self._plan.limits,
            make_router=lambda: self._make_router(name, self._plan.advertisements),
            observer=self,
            is_graph=self._plan.graph,
        )

    def _act(self, operation: RouterOperation) -> None:
        verb, client, argument = operation.verb, operation.client, operation.argument
        if isinstance(argument, Message):
            self._publish(client, argument)
        elif isinstance(argument, Filter | Advertisement):
            self._ask(client, REQUESTS[verb](argument))
        elif isinstance(argument, Watch | Unwatch):
            self._ask(client, argument)
            self._watches.asked(client, argument, self._histories[client])

    def _publish(self, client: str, message: Message) -> None:
        process = self.processes[self._router_of[client]]
        if not process.is_up:
            self._note(f"{client} cannot publish: its router is down")
            return
        self._numbers[client] += 1
        publication = Publish(message, client, self._numbers[client], self._clock.now_us)
        self.totals.publications += 1
        self._deliveries.published(publication, process.place, self._clock.instant)
        is_known = not self._plan.advertisements or any(
            self._histories[client].allowing(message, self._clock.instant)
        )
        self._watches.published(publication, is_known)
        process.publish(client, publication)

    def _ask(self, client: str, packet: Packet) -> None:
        applied = self._histories[client].ask(packet, self._clock.instant)

        def acknowledge() -> None:
            applied(self._clock.instant)
            if self._trace is not None:
                self._note(f"{client} has {described(packet)}")

        self.processes[self._router_of[client]].ask(ClientRequest(client, packet, acknowledge))

    def _settle(self) -> None:
        self._heal()
        self._clock.run_until_quiet(QUIET_US_MAX)
        self._note("quiet")
        busy = [name for name, process in self.processes.items() if not process.is_idle()]
        if busy:
            raise Violation("restless", f"nothing moves, but work waits in {named(busy)}")
        for sender, receiver in self._links.unfinished():
            raise Violation("restless", f"{sender} and {receiver} do not agree on their session")
        self.totals.due += self._deliveries.check_lost()
        routers = [process.router for process in self.processes.values()]
        late = sum(router.late for router in routers if router is not None)
        self.totals.compounds_due += self._watches.check_missed(late)
        if self._is_changed and self._recomputation is not None:  # publications change no table
            difference = self._difference(self._recomputation)
            if difference is not None:
                raise Violation("state", difference)
            self._is_changed = False

    def _difference(self, recomputation: Recomputation) -> str | None:
        nodes, histories = self.processes, self._histories
        if self._plan.graph:
            return graph_difference(self._plan, nodes, histories, self._topology.topology)
        return recomputation.difference(nodes, histories)

    def _show(self, place: str) -> None:
        """The routing table of a router, filter by filter, as the 2000 paper draws it; then its
        patterns."""
        router = self.processes[place].router
        if router is None:
            self._note(f"  router {place} is down")
            return
        for f in router.subscriptions:
            self._note(f"  {shown(f, router.subscribers(f), router.forwards(f))}")
        for line in pattern_lines(router.watches) if isinstance(router, Router) else ():
            self._note(line)

    def _arrive(self, sender: str, receiver: str, frame: LinkFrame[Packet]) -> None:
        self.totals.bytes += FRAME_BYTES
        if frame.packet is not None:
            self.totals.bytes += size(frame.packet)
        self.processes[receiver].receive(sender, frame)

    # ---- what routers report (`RouterObserver`)

    def opened(self, router: str, peer: str, session: tuple[int, int]) -> None:
        self.totals.sessions += 1
        self._links.opened(router, peer, session, self._clock.instant)
        if self._plan.graph:
            self._topology.opened(router, peer, session)
        if self._trace is not None:
            self._note(f"{router} has a session with {peer}")

    def closed(self, router: str, peer: str) -> None:
        self._links.closed(router, peer, self._clock.instant)
        if self._plan.graph:
            self._topology.closed(router, peer)
        if self._trace is not None:
            self._note(f"{router} has no session with {peer} any more")

    def sent(self, router: str, peer: str, packet: Packet) -> None:
        self._links.sent(router, peer, self._clock.instant)
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
        self._links.delivered(router, peer, self._clock.instant)
        if self._trace is not None:
            self._note(f"{router} <- {peer} {described(packet)}")

    def delivered(self, client: str, publication: Publish) -> None:
        self.totals.deliveries += 1
        if self._trace is not None:
            self._note(f"{client} gets {described(publication)}")
        self._deliveries.delivered(client, publication)

    def repeated(self, client: str, publication: Publish) -> None:
        self._deliveries.repeated(client, publication, self._clock.instant)

    def assembled(self, client: str, packet: Assembled) -> None:
        self.totals.compounds += 1
        if self._trace is not None:
            self._note(f"{client} gets {described(packet)}")
        self._watches.assembled(client, packet)


DISTURBING = {
    RouterVerb.ADVERTISE,
    RouterVerb.UNADVERTISE,
    NetworkVerb.CRASH,
    NetworkVerb.PARTITION,
}
REQUESTS: dict[StrEnum, Callable[[Any], Packet]] = {
    RouterVerb.SUBSCRIBE: Subscribe,
    RouterVerb.UNSUBSCRIBE: Unsubscribe,
    RouterVerb.ADVERTISE: Advertise,
    RouterVerb.UNADVERTISE: Unadvertise,
}


def _roles(plan: RouterPlan, name: str) -> dict[str, Role]:
    """What each neighbouring router is to this one."""
    roles: dict[str, Role] = {}
    for a, b in plan.links:
        if name in (a, b):
            other = b if name == a else a
            if not plan.hierarchy:
                roles[other] = Role.NEIGHBOUR
            else:
                roles[other] = Role.SLAVE if name == a else Role.MASTER
    return roles


def run(
    plan: RouterPlan,
    make_router: MakeRouter | None = None,
    trace: list[str] | None = None,
    *,
    recompute: bool = True,
) -> RunVerdict[RouterTotals]:
    """Run a plan; the trace is appended to a list that is given.

    Without `recompute` the routing tables are not compared with a recomputation, which compares all
    pairs of filters: thousands of subscriptions would take hours. Deliveries are checked as always.
    """
    return RouterSimulation(plan, make_router, trace, recompute=recompute).run()
