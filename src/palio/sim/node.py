"""A simulated host: a router, the ends of its links, and a disk with what its clients said.

A client's request is written to disk, synced, and only then applied to the router and acknowledged,
all in one instant. A crash loses the router, the links and what was not synced; a restart replays
the disk to a new router and greets the neighbours, which restate the rest. Clients repeat requests
that were not acknowledged.

    request ──▶ disk.write ──(SYNC_US)──▶ disk.sync ──▶ router.step ──▶ acknowledged
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from palio.protocol.links import Closed, Delivered, Effect, Frame, Limits, Link, Opened, Transmit
from palio.routing.packets import Event, Joined, Packet, Publish, Received, Role, Tick
from palio.routing.patterns.packets import Assembled
from palio.sim.clock import Clock
from palio.sim.disk import Disk
from palio.sim.network import Network
from palio.sim.routers import AnyRouter

SYNC_US = 4_000


class Watcher(Protocol):
    """Who is told what happens in a node: the checkers and the trace."""

    def opened(self, router: str, peer: str, session: tuple[int, int]) -> None: ...
    def closed(self, router: str, peer: str) -> None: ...
    def sent(self, router: str, peer: str, packet: Packet) -> None: ...
    def arrived(self, router: str, peer: str, packet: Packet) -> None: ...
    def delivered(self, client: str, publication: Publish) -> None: ...
    def assembled(self, client: str, packet: Assembled) -> None: ...


class Request:
    """What a client asked for; `acknowledge` is called once."""

    __slots__ = ("acknowledge", "client", "packet")

    def __init__(self, client: str, packet: Packet, acknowledge: Callable[[], None]) -> None:
        self.client = client
        self.packet = packet
        self.acknowledge = acknowledge


class Node:
    def __init__(
        self,
        name: str,
        roles: dict[str, Role],
        clients: Iterable[str],
        *,
        clock: Clock,
        network: Network,
        limits: Limits,
        make_router: Callable[[], AnyRouter],
        watcher: Watcher,
    ) -> None:
        self.name = name
        self._roles = roles
        self._clients = dict.fromkeys(clients)
        self._clock = clock
        self._network = network
        self._limits = limits
        self._make_router = make_router
        self._watcher = watcher
        self._disk: Disk[tuple[str, Packet]] = Disk()
        self._requests: deque[Request] = deque()
        self._links: dict[str, Link[Packet]] = {}
        self._alarms: dict[str, int] = {}
        self._tick_us: int | None = None
        self._incarnation = 0
        self.router: AnyRouter | None = None
        self.start()

    @property
    def is_up(self) -> bool:
        return self.router is not None

    def start(self) -> None:
        """Begin with nothing but the disk."""
        self.router = self._make_router()
        for client in self._clients:
            self._step(Joined(client, Role.CLIENT))
        for client, packet in self._disk.records:
            self._step(Received(client, packet))
        self._incarnation = max(self._incarnation + 1, self._clock.now_us)
        for peer in self._roles:
            self._links[peer] = Link(self._incarnation, self._limits)
            self._set_alarm(peer)
        for request in self._requests:
            self._write(request)

    def crash(self) -> None:
        """Lose everything that is not synced."""
        self.router = None
        for peer, link in self._links.items():
            self._incarnation = max(self._incarnation, link.mine)
            self._watcher.closed(self.name, peer)
        self._links.clear()
        self._alarms.clear()
        self._tick_us = None
        self._disk.crash()

    def ask(self, request: Request) -> None:
        """A client says something that must be kept; while the router is down it waits."""
        self._requests.append(request)
        if self.is_up:
            self._write(request)

    def publish(self, client: str, publication: Publish) -> None:
        """A client publishes; the router is up."""
        self._step(Received(client, publication))

    def receive(self, peer: str, frame: Frame[Packet]) -> None:
        """A frame comes in; a router that is down hears nothing."""
        link = self._links.get(peer)
        if link is not None:
            self._act(peer, link.receive(frame, self._clock.now_us))

    def is_idle(self) -> bool:
        """Nothing waits here: no request, no packet."""
        return not self._requests and all(
            link.is_open and not link.waiting and not link.early for link in self._links.values()
        )

    def _write(self, request: Request) -> None:
        self._disk.write((request.client, request.packet))
        self._clock.after(SYNC_US, self._synced, self.router, len(self._disk.records), request)

    def _synced(self, router: AnyRouter, count: int, request: Request) -> None:
        if router is not self.router:  # it crashed meanwhile, and the write is gone
            return
        self._disk.sync(count)
        self._requests.remove(request)
        self._step(Received(request.client, request.packet))
        request.acknowledge()

    def _step(self, event: Event) -> None:
        assert self.router is not None
        for send in self.router.step(event):
            peer, packet = send.peer, send.packet
            if peer in self._clients:
                if isinstance(packet, Assembled):
                    self._watcher.assembled(peer, packet)
                    continue
                assert isinstance(packet, Publish), f"router {self.name} sends {packet} to {peer}"
                self._watcher.delivered(peer, packet)
                continue
            link = self._links[peer]
            if link.is_open:
                effects = link.send(packet, self._clock.now_us)
                if link.is_open:
                    self._watcher.sent(self.name, peer, packet)
                self._act(peer, effects)
        self._set_tick()

    def _set_tick(self) -> None:
        """Have the router told the time when it waits for it."""
        assert self.router is not None
        due_us = self.router.due
        if due_us is not None and (self._tick_us is None or due_us < self._tick_us):
            self._tick_us = due_us
            delay_us = max(0, due_us - self._clock.now_us)
            self._clock.after(delay_us, self._tick, self.router, due_us)

    def _tick(self, router: AnyRouter, time_us: int) -> None:
        if router is self.router and self._tick_us == time_us:
            self._tick_us = None
            self._step(Tick(self._clock.now_us))

    def _act(self, peer: str, effects: list[Effect[Packet]]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                self._network.send(self.name, peer, effect.frame)
            elif isinstance(effect, Delivered):
                self._watcher.arrived(self.name, peer, effect.packet)
                self._step(Received(peer, effect.packet))
            elif isinstance(effect, Opened):
                link = self._links[peer]
                pair = (link.mine, link.theirs)
                self._watcher.opened(
                    self.name, peer, pair if self.name < peer else (pair[1], pair[0])
                )
                self._step(Joined(peer, self._roles[peer]))
            elif isinstance(effect, Closed):
                self._watcher.closed(self.name, peer)
        self._set_alarm(peer)

    def _set_alarm(self, peer: str) -> None:
        """Have the link woken at its deadline; an alarm that is too early does no harm."""
        deadline_us = self._links[peer].deadline_us
        if deadline_us is not None and deadline_us < self._alarms.get(peer, deadline_us + 1):
            self._alarms[peer] = deadline_us
            delay_us = max(0, deadline_us - self._clock.now_us)
            self._clock.after(delay_us, self._alarm, peer, self._links[peer], deadline_us)

    def _alarm(self, peer: str, link: Link[Packet], time_us: int) -> None:
        if self._links.get(peer) is link and self._alarms.get(peer) == time_us:
            del self._alarms[peer]
            self._act(peer, link.wake(self._clock.now_us))
