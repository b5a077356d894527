"""Carried messages: durable messages in transit to the home brokers of their subscriptions.

    origin ─CARRY─▶ next hop: targets split by next hop ─▶ ... ─▶ home broker: stored in its queues
           ◀──────────────────────── CarryAck ──────────────────

Brokers in between store nothing: the origin resends messages that were lost or refused. A message for
very many subscriptions goes in several CARRY frames, so that no header is too large: targets are put
into frames by their size, and no target has many labels (durability/intake.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec

from palio.protocol.broker.dead_letters import DeadLetters
from palio.protocol.broker.durable import Consumer
from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Links
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.durability.recipients import TEXT_BYTES
from palio.protocol.policies.unicast import Unicast
from palio.protocol.wire.control import CarryAck, Published
from palio.protocol.wire.encode import entry_frames
from palio.protocol.wire.frames import MessageFrame, payload_frame
from palio.protocol.wire.headers import CarryHeader, CarryTarget

TARGETS_BYTES_MAX = 32 << 10
"""Of the targets in one CARRY frame: half of what a header may have (`Limits.header`)."""
_TARGET_BYTES = 32
"""Of a target, at most, besides its texts."""


class Carrier:
    """Sends what the message store has ready, and receives carried messages."""

    def __init__(
        self,
        me: str,
        store: MessageStore,
        unicast: Unicast,
        neighbours: NeighbourLinks,
        links: Links,
        output: Output,
        dead_letters: DeadLetters,
    ) -> None:
        self.dead_letters = dead_letters
        self._me = me
        self._store = store
        self._unicast = unicast
        self._neighbours = neighbours
        self._links = links
        self._output = output

    def send(self, ready: Outgoing, now_us: int) -> None:
        """Send what is committed: answers to publishers and origins, carried messages, deliveries."""
        for publisher, number in ready.published:
            link = self._links.publishers.get(publisher)
            if link is not None:
                self._output.say(link.number, Published(number))
        for ack in ready.acks:
            self.acknowledge(ack, now_us)
        for batch, row, targets in ready.carries:
            m = batch.entry(row)
            header = CarryHeader(
                self._me, self._store.epoch, targets, m.publisher, m.number, m.time
            )
            self._send(header, m.attributes, m.payload, None)
        for delivery in ready.deliveries:
            link_number, id = cast(Consumer, delivery.consumer)
            data = entry_frames(delivery.batch, delivery.positions, id, delivery.deliveries)
            self._output.write(link_number, data)

    def receive(self, neighbour: str, frame: MessageFrame, now_us: int) -> None:
        """Receive a carried message: store it for this broker, and send it on to other targets."""
        header = frame.header
        assert isinstance(header, CarryHeader)
        others = []
        for target in header.targets:
            if target.broker == self._me:
                self._store.arrive(header, target, frame.attributes, frame.payload, now_us)
            else:
                others.append(target)
        if others:
            rest = msgspec.structs.replace(header, targets=tuple(others))
            self._send(rest, frame.attributes, frame.payload, neighbour)

    def _send(
        self, header: CarryHeader, attributes: bytes, payload: bytes, came_from: str | None
    ) -> None:
        """Split the targets by next hop. The origin resends what cannot be sent now."""
        parts: dict[str, list[CarryTarget]] = {}
        for target in header.targets:
            hop = self._unicast.hop_of.get(target.broker)
            if hop is not None and hop != came_from:  # equal: the brokers see different topologies
                parts.setdefault(hop, []).append(target)
        for hop, chosen in parts.items():
            for targets in targets_by_frame(chosen):
                part = msgspec.structs.replace(header, targets=tuple(targets))
                self._neighbours.carry(hop, payload_frame(part, attributes, payload))

    def acknowledge(self, ack: CarryAck, now_us: int) -> None:
        """Process an acknowledgement at its origin, or send it one hop nearer."""
        if ack.origin == self._me:
            self._store.acknowledged(ack, now_us)
            return
        hop = self._unicast.hop_of.get(ack.origin)
        if hop is not None:
            self._neighbours.say(hop, ack)


def targets_by_frame(targets: list[CarryTarget]) -> Iterator[list[CarryTarget]]:
    """Targets in their order, as many together as one frame takes."""
    if len(targets) == 1:
        yield targets
        return
    frame: list[CarryTarget] = []
    frame_bytes = 0
    for target in targets:
        texts = (target.broker, *target.names)
        size = _TARGET_BYTES + sum([TEXT_BYTES + len(text.encode()) for text in texts])
        if frame and frame_bytes + size > TARGETS_BYTES_MAX:
            yield frame
            frame, frame_bytes = [], 0
        frame.append(target)
        frame_bytes += size
    if frame:
        yield frame
