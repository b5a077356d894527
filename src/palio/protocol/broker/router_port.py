"""The router of a broker, and its output sorted by receiver."""

from __future__ import annotations

from collections.abc import Iterator

from palio.protocol.interfaces import Network, RemoteBroker, Watcher
from palio.routing.packets import Event, Packet, Publish, Send
from palio.routing.patterns.packets import Assembled, Sieved
from palio.routing.patterns.watching import WatchSteps
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

    def observing(self, came_from: str | None, packet: Publish, begun: int) -> Iterator[int]:
        """Pass a message to the patterns that wait for it, one by one; gives the effort of each. `begun`:
        the number `router.watches.begun` when the message arrived."""
        source = None if came_from is None else RemoteBroker(came_from)
        return self._taking(self.router.observing(source, packet, begun))

    def hearing(self, neighbour: str, packet: Assembled | Sieved, begun: int) -> Iterator[int]:
        """The same with an answer of a neighbour; raises RoutingError, at once, if it is wrong."""
        return self._taking(self.router.hearing(RemoteBroker(neighbour), packet, begun))

    def _taking(self, steps: WatchSteps) -> Iterator[int]:
        for sends, effort in steps:
            self.take(sends)
            yield effort

    def take(self, sends: list[Send]) -> None:
        for peer, packet in [(send.peer, send.packet) for send in sends]:
            if isinstance(peer, RemoteBroker):
                self.packets.append((peer.name, packet))
            elif isinstance(peer, Watcher):
                assert isinstance(packet, Assembled), packet
                self.occurrences.append((peer, packet))
            else:  # sent by link state instead (policies/scheme_policy.py)
                assert isinstance(peer, Network), peer
