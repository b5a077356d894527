"""News of the router: packets for neighbours, and occurrences of patterns for clients that watch."""

from __future__ import annotations

from palio.protocol.broker.local import LocalDelivery
from palio.protocol.broker.neighbours import NeighbourLinks
from palio.protocol.broker.router_port import RouterPort
from palio.protocol.broker.waiting import Overflow
from palio.protocol.interfaces import Watcher
from palio.protocol.wire.control import PatternItem
from palio.protocol.wire.frames import control_frame
from palio.protocol.wire.packets import to_bytes
from palio.protocol.wire.parts import occurred_parts, packet_parts, text_bytes
from palio.routing.patterns.packets import Assembled

ITEM_BYTES_MAX = 8 << 20
"""Of a message in an occurrence: half of what a client takes at once (`Limits.control`). Names of nested
attributes are written out there, so it may be larger than what was published."""


def send_news(port: RouterPort, neighbours: NeighbourLinks, local: LocalDelivery) -> None:
    """Send what the router has said since the last call."""
    packets, port.packets = port.packets, []
    for name, packet in packets:
        for part in packet_parts(to_bytes(packet)):
            neighbours.say(name, part)
    occurrences, port.occurrences = port.occurrences, []
    for watcher, assembled in occurrences:
        frames = occurrence_frames(watcher, assembled)
        if frames is None:
            local.waiting.dropped[Overflow.BYTES] += 1
        else:
            local.occur(watcher.link, watcher.id, frames)


def occurrence_frames(watcher: Watcher, assembled: Assembled) -> bytes | None:
    """What the client that watches a pattern is sent; None: a message is too large for it."""
    items = [
        PatternItem(one.message.to_json(), one.publisher, one.number, one.time)
        for one in assembled.compound.messages
    ]
    if max(text_bytes(one.attributes) for one in items) > ITEM_BYTES_MAX:
        return None
    return b"".join(map(control_frame, occurred_parts(watcher.id, items)))
