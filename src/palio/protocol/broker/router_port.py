"""The router of a broker, and its output sorted by receiver."""

from __future__ import annotations

from palio.protocol.interfaces import Network, RemoteBroker, Watcher
from palio.routing.packets import Event, Packet, Publish, Send
from palio.routing.patterns.packets import Assembled
from palio.routing.router import Router


class RouterPort:
    def __init__(self, router: Router) -> None:
        self.router = router
        self.packets: list[tuple[str, Packet]] = []
        """For neighbours."""
        self.occurrences: list[tuple[Watcher, Assembled]] = []
        """Occurrences of patterns, for clients."""

    def step(self, event: Event) -> None:
        self.take(self.router.step(event))

    def observe(self, came_from: str | None, packet: Publish) -> None:
        """Pass a message to the patterns that wait for it."""
        source = None if came_from is None else RemoteBroker(came_from)
        self.take(self.router.observe(source, packet))

    def take(self, sends: list[Send]) -> None:
        for peer, packet in [(send.peer, send.packet) for send in sends]:
            if isinstance(peer, RemoteBroker):
                self.packets.append((peer.name, packet))
            elif isinstance(peer, Watcher):
                assert isinstance(packet, Assembled), packet
                self.occurrences.append((peer, packet))
            else:  # sent by link state instead (policies/scheme_policy.py)
                assert isinstance(peer, Network), peer
