"""How far the messages of a durable subscription have come at its client, over restarts of the broker too.

    position   1  2  3  4  5  6  7          outstanding  {4: packet 9, PUBREC came; 6: packet 11}
    finished   x  x  x  .  x  .  x ◀─ top

The core sends again what it does not know to be acknowledged; after a crash that can be more than what is.
A position up to `top` that is not outstanding is finished: with QoS 2 it must not go out again (4.3.3).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class Sent(NamedTuple):
    packet_id: int = 0
    """0: it has none yet, or nothing depends on it."""
    is_received: bool = False
    """QoS 2: PUBREC has come."""


class DeliveryProgress:
    """`reserved` has the packet ids of the session whose messages the core has not sent again yet."""

    __slots__ = ("_missing", "_reserved", "outstanding", "top")

    def __init__(self, reserved: set[int]) -> None:
        self.top = 0
        self.outstanding: dict[int, Sent] = {}
        self._missing: set[int] = set()
        self._reserved = reserved

    def resume(self, in_flight: Collection[int]) -> None:
        """A new connection: the core sends again what is not in flight."""
        self._missing = self.outstanding.keys() - in_flight

    def arrived(self, position: int) -> bool:
        """The core sends a position; False: the client has finished it."""
        if position <= self.top:
            self._missing.discard(position)
            return position in self.outstanding
        for (
            gone
        ) in self._missing:  # redelivered ones come first: these have expired, or were purged
            self._reserved.discard(self.outstanding.pop(gone).packet_id)
        self._missing.clear()
        self.top = position
        self.outstanding[position] = Sent()
        return True

    def reserved_id(self, position: int) -> int:
        """The packet id that the message had before a restart, which it must keep; 0: there is none."""
        packet_id = self.outstanding.get(position, Sent()).packet_id
        return packet_id if packet_id in self._reserved else 0

    def sent(self, position: int, packet_id: int) -> None:
        self._reserved.discard(packet_id)
        self.outstanding[position] = Sent(packet_id)

    def received(self, position: int) -> None:
        sent = self.outstanding.get(position)
        if sent is not None:
            self.outstanding[position] = sent._replace(is_received=True)

    def finished(self, position: int) -> None:
        sent = self.outstanding.pop(position, None)
        if sent is not None:
            self._reserved.discard(sent.packet_id)
