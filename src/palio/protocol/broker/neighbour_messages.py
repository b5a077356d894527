"""The control messages of neighbours, and their joining and leaving.

LinkStates, Digest, Missing ─▶ flooding.py          Credit       ─▶ neighbours.py
ExplainHop, HopExplained    ─▶ explain.py           RouterPacket ─▶ interests.py

The broker itself handles Ping, Pong, Bye and CarryAck (broker.py).
"""

from __future__ import annotations

from palio.protocol.broker.effects import BackgroundJob
from palio.protocol.broker.explain import Explaining
from palio.protocol.broker.flooding import Flooding
from palio.protocol.broker.interests import Interests
from palio.protocol.broker.links import Link
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.broker.scheduler import Slices
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

PACKET_BYTES_MAX = 1 << 30
"""Of a packet of a router, in all its parts."""
SMALL_PACKET = 2048
"""Bytes of a packet that is decoded and processed at once."""


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
        self._packets: dict[int, bytearray] = {}
        """By link: the beginning of a packet."""

    def restore(self) -> None:
        """Take what is stored of other brokers' durable subscriptions."""
        self._flooding.restore()

    def join(self, link: Link, name: str, now_us: int) -> None:
        """A neighbour has authenticated itself. Raises RolesDiffer if it closes a cycle of masters."""
        is_there, role = name in self.links, self.links.role(name)
        self._flooding.check_masters(name, role)
        if self.links.join(link, name, now_us):
            if is_there:
                self._interests.neighbour(name, None)
            self._flooding.greet(link)
            self._interests.neighbour(name, role)

    def leave(self, link: Link) -> None:
        self._packets.pop(link.number, None)
        if self.links.leave(link):
            self._flooding.leave(link.neighbour)
            self._interests.neighbour(link.neighbour, None)

    def congest(self, link: Link, is_congested: bool) -> None:
        """The host has too many unsent bytes for a neighbour, or no longer."""
        self.links.congest(link, is_congested)
        if not is_congested:
            self._flooding.resume(link.neighbour)

    def hear(self, link: Link, message: ControlMessage) -> Slices | None:
        """Process a control message of a neighbour. Returns the rest of what takes long."""
        if isinstance(message, Credit):
            self.links.grant_credit(link, message.count)
        elif isinstance(message, LinkStates):
            return self._flooding.hear(link, message)
        elif isinstance(message, Digest | Missing):
            self._flooding.answer(link, message)
        elif isinstance(message, RouterPacket):
            return self._hear_packet(link, message)
        elif isinstance(message, ExplainHop | HopExplained):
            self._explaining.hear(link, message)
        else:
            raise BrokenFrame(f"brokers must not send {type(message).__name__} to each other")
        return None

    def _hear_packet(self, link: Link, message: RouterPacket) -> Slices | None:
        """Process a packet of a router, or a part of one."""
        packet = message.packet
        if message.more or link.number in self._packets:
            begun = self._packets.setdefault(link.number, bytearray())
            begun += packet
            if len(begun) > PACKET_BYTES_MAX:
                raise BrokenFrame(f"a packet of a router with more than {PACKET_BYTES_MAX:,} bytes")
            if message.more:
                return None
            packet = bytes(self._packets.pop(link.number))
        if len(packet) > SMALL_PACKET:
            return self._hear_large(link, packet)
        self._interests.packet(link.neighbour, from_bytes(packet))
        return None

    def _hear_large(self, link: Link, packet: bytes) -> Slices:
        job = BackgroundJob(lambda: from_bytes(packet))
        yield job
        yield from self._interests.large_packet(link.neighbour, job.result())
