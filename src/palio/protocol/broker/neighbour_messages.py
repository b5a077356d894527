"""The control messages of neighbours, and their joining and leaving.

LinkStates, Digest, Missing ─▶ flooding.py          Credit       ─▶ neighbours.py
ExplainHop, HopExplained    ─▶ explain.py           RouterPacket ─▶ interests.py

The broker itself handles Ping, Pong, Bye and CarryAck (broker.py).
"""

from __future__ import annotations

from palio.protocol.broker.explain import Explaining
from palio.protocol.broker.flooding import Flooding
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.links import Link
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.wire.control import (
    ControlMessage,
    Credit,
    Digest,
    ExplainHop,
    HopExplained,
    LinkStates,
    Missing,
    RouterPacket,
)
from palio.protocol.wire.frames import BrokenFrame
from palio.protocol.wire.packets import from_bytes


class NeighbourMessages:
    def __init__(
        self,
        links: NeighbourLinks,
        flooding: Flooding,
        interests: Interests,
        explaining: Explaining,
    ) -> None:
        self.links = links
        self._flooding = flooding
        self._interests = interests
        self._explaining = explaining

    def restore(self, now_us: int) -> None:
        """Re-register the stored durable subscriptions of other brokers."""
        self._flooding.restore(now_us)

    def join(self, link: Link, name: str, now_us: int) -> None:
        """A neighbour has authenticated itself."""
        is_there = name in self.links
        if self.links.join(link, name, now_us):
            if is_there:
                self._interests.neighbour(name, False)
            self._flooding.greet(link)
            self._interests.neighbour(name, True)

    def leave(self, link: Link) -> None:
        if self.links.leave(link):
            self._flooding.leave()
            self._interests.neighbour(link.neighbour, False)

    def hear(self, link: Link, message: ControlMessage, now_us: int) -> None:
        if isinstance(message, Credit):
            self.links.grant_credit(link, message.count)
        elif isinstance(message, LinkStates):
            self._flooding.hear(link, message, now_us)
        elif isinstance(message, Digest | Missing):
            self._flooding.answer(link, message)
        elif isinstance(message, RouterPacket):
            self._interests.packet(link.neighbour, from_bytes(message.packet))
        elif isinstance(message, ExplainHop | HopExplained):
            self._explaining.hear(link, message)
        else:
            raise BrokenFrame(f"brokers must not send {type(message).__name__} to each other")
