"""A simulated router process: a router, the ends of its links, and a disk with its clients' requests.

A client's request is written to disk, committed, and only then applied to the router and
acknowledged, all in one instant. A crash loses the router, the links and what was not committed; a
restart replays the disk to a new router and greets the neighbours, which restate the rest. Clients
repeat requests that were not acknowledged.

    request ──▶ disk.put ──(SYNC_US)──▶ disk.end ──▶ router.step ──▶ acknowledged

On a graph, neighbours leave when their session ends, and copies of a message may come over several links
while routers follow different trees. So a router sends a message to each neighbour once, and its clients drop
what they have got.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from palio.routing.packets import (
    Event,
    Joined,
    Left,
    Packet,
    Publish,
    Received,
    Role,
    Tick,
    TopologyChanged,
)
from palio.routing.patterns.packets import Assembled
from palio.routing.topology import Topology
from palio.sim.kernel.datagrams import DatagramNetwork
from palio.sim.kernel.disk import SimulatedDisk
from palio.sim.kernel.process import CrashMode, SimulatedProcess
from palio.sim.routers.kinds import AnyRouter
from palio.sim.routers.links import (
    LinkEffect,
    LinkFrame,
    LinkLimits,
    PacketDelivered,
    ReliableLink,
    SessionClosed,
    SessionOpened,
    Transmit,
)

SYNC_US = 4_000


class RouterObserver(Protocol):
    """Who is told what happens in a router: the checks and the trace."""

    def opened(self, router: str, peer: str, session: tuple[int, int]) -> None: ...
    def closed(self, router: str, peer: str) -> None: ...
    def sent(self, router: str, peer: str, packet: Packet) -> None: ...
    def arrived(self, router: str, peer: str, packet: Packet) -> None: ...
    def delivered(self, client: str, publication: Publish) -> None: ...
    def repeated(self, client: str, publication: Publish) -> None: ...
    def assembled(self, client: str, packet: Assembled) -> None: ...


class ClientRequest:
    """What a client asked for; `acknowledge` is called once."""

    __slots__ = ("acknowledge", "client", "packet")

    def __init__(self, client: str, packet: Packet, acknowledge: Callable[[], None]) -> None:
        self.client = client
        self.packet = packet
        self.acknowledge = acknowledge


class RouterProcess(SimulatedProcess):
    def __init__(
        self,
        name: str,
        roles: dict[str, Role],
        clients: Iterable[str],
        *,
        network: DatagramNetwork,
        limits: LinkLimits,
        make_router: Callable[[], AnyRouter],
        observer: RouterObserver,
        is_graph: bool = False,
    ) -> None:
        super().__init__(name, network)
        self._is_graph = is_graph
        self._sent: set[tuple[str, str, int]] = set()  # neighbour, publisher, number
        self._gone: list[str] = []  # neighbours whose session has ended, and that are to leave
        self._depth = 0  # of steps: sending may end a session
        self._got: set[tuple[str, str, int]] = set()  # the same of clients, which do not crash
        self._roles = roles
        self._clients = dict.fromkeys(clients)
        self._network = network
        self._limits = limits
        self._make_router = make_router
        self._observer = observer
        self._disk: SimulatedDisk[tuple[str, Packet]] = SimulatedDisk()
        self._written = 0
        self._requests: deque[ClientRequest] = deque()
        self._links: dict[str, ReliableLink[Packet]] = {}
        self._alarms: dict[str, int] = {}
        self._tick_us: int | None = None
        self._incarnation = 0
        self.router: AnyRouter | None = None
        self._start()

    @property
    def is_up(self) -> bool:
        return self.router is not None

    def restart(self) -> None:
        if not self.is_up:
            self._start()

    def _start(self) -> None:
        """Begin with nothing but the disk."""
        self.router = self._make_router()
        for client in self._clients:
            self._step(Joined(client, Role.CLIENT))
        for _, (client, packet) in self._disk.scan(""):
            self._step(Received(client, packet))
        self._incarnation = max(self._incarnation + 1, self._clock.now_us)
        for peer in self._roles:
            self._links[peer] = ReliableLink(self._incarnation, self._limits)
            self._set_alarm(peer)
        for request in self._requests:
            self._write(request)

    def crash(self, mode: CrashMode) -> None:
        if self.router is None:
            return
        self.router = None
        self._end_life()
        for peer, link in self._links.items():
            self._incarnation = max(self._incarnation, link.mine)
            self._observer.closed(self.place, peer)
        self._links.clear()
        self._sent.clear()
        self._gone.clear()
        self._alarms.clear()
        self._tick_us = None
        self._disk.crash()

    def ask(self, request: ClientRequest) -> None:
        """A client says something that must be kept; while the router is down it waits."""
        self._requests.append(request)
        if self.is_up:
            self._write(request)

    def learn(self, net: Topology | None) -> None:
        """The links of the graph are others; a router that is down learns it when it is back."""
        if self.is_up:
            self._step(TopologyChanged(net))

    def publish(self, client: str, publication: Publish) -> None:
        """A client publishes; the router is up."""
        self._step(Received(client, publication))

    def receive(self, peer: str, frame: LinkFrame[Packet]) -> None:
        """A frame comes in; a router that is down receives nothing."""
        link = self._links.get(peer)
        if link is not None:
            self._act(peer, link.receive(frame, self._clock.now_us))

    def is_idle(self) -> bool:
        """Nothing waits here: no request, no packet."""
        return not self._requests and all(
            link.is_open and not link.waiting and not link.early for link in self._links.values()
        )

    def _write(self, request: ClientRequest) -> None:
        self._written += 1
        self._disk.put(f"{self._written:09}", (request.client, request.packet))
        self._disk.begin()
        self.after(SYNC_US, self._synced, request)

    def _synced(self, request: ClientRequest) -> None:
        self._disk.end()
        self._requests.remove(request)
        self._step(Received(request.client, request.packet))
        request.acknowledge()

    def _step(self, event: Event) -> None:
        self._depth += 1
        self._step_once(event)
        self._depth -= 1
        self._let_go()

    def _let_go(self) -> None:
        """Neighbours leave after the step in which their session ended: what it says comes first."""
        while self._gone and not self._depth:
            self._step(Left(self._gone.pop(0)))

    def _step_once(self, event: Event) -> None:
        assert self.router is not None
        for send in self.router.step(event):
            peer, packet = send.peer, send.packet
            if peer in self._clients:
                if isinstance(packet, Assembled):
                    self._observer.assembled(peer, packet)
                    continue
                assert isinstance(packet, Publish), f"router {self.place} sends {packet} to {peer}"
                if self._is_repeated(self._got, peer, packet):
                    self._observer.repeated(peer, packet)
                else:
                    self._observer.delivered(peer, packet)
                continue
            link = self._links[peer]
            if link.is_open and not self._is_repeated(self._sent, peer, packet):
                effects = link.send(packet, self._clock.now_us)
                if link.is_open:
                    self._observer.sent(self.place, peer, packet)
                self._act(peer, effects)
        self._set_tick()

    def _is_repeated(self, seen: set[tuple[str, str, int]], peer: str, packet: Packet) -> bool:
        """On a graph: whether a peer was sent this message before. Notes that it is now."""
        if not self._is_graph or not isinstance(packet, Publish):
            return False
        key = (peer, packet.publisher, packet.number)
        is_known = key in seen
        seen.add(key)
        return is_known

    def _set_tick(self) -> None:
        """Tell the router the time when it waits for it."""
        assert self.router is not None
        due_us = self.router.due
        if due_us is not None and (self._tick_us is None or due_us < self._tick_us):
            self._tick_us = due_us
            self.after(max(0, due_us - self._clock.now_us), self._tick, due_us)

    def _tick(self, time_us: int) -> None:
        if self._tick_us == time_us:
            self._tick_us = None
            self._step(Tick(self._clock.now_us))

    def _act(self, peer: str, effects: list[LinkEffect[Packet]]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                self._network.send(self.place, peer, effect.frame)
            elif isinstance(effect, PacketDelivered):
                if self._is_graph and not self._links[peer].is_open:
                    continue  # an answer to the packet before ended the session
                self._observer.arrived(self.place, peer, effect.packet)
                self._step(Received(peer, effect.packet))
            elif isinstance(effect, SessionOpened):
                link = self._links[peer]
                self._let_go()
                pair = (link.mine, link.theirs)
                self._observer.opened(
                    self.place, peer, pair if self.place < peer else (pair[1], pair[0])
                )
                self._step(Joined(peer, self._roles[peer]))
            elif isinstance(effect, SessionClosed):
                self._observer.closed(self.place, peer)
                if self._is_graph:
                    self._gone.append(peer)
        self._let_go()
        self._set_alarm(peer)

    def _set_alarm(self, peer: str) -> None:
        """Wake the link at its deadline; an alarm that is too early does no harm."""
        deadline_us = self._links[peer].deadline_us
        if deadline_us is not None and deadline_us < self._alarms.get(peer, deadline_us + 1):
            self._alarms[peer] = deadline_us
            self.after(max(0, deadline_us - self._clock.now_us), self._alarm, peer, deadline_us)

    def _alarm(self, peer: str, time_us: int) -> None:
        if self._alarms.get(peer) == time_us:
            del self._alarms[peer]
            self._act(peer, self._links[peer].wake(self._clock.now_us))
