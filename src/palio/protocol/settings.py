"""What a broker is told before it begins."""

from __future__ import annotations

import msgspec

from palio.errors import PalioError
from palio.protocol.access import Access
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.queues import Full
from palio.protocol.frames import Limits

FORWARDING = "forwarding"
ROUTINGS = (FORWARDING, "PSF", "iPS", "PIF", "DRP")


class Neighbour(msgspec.Struct, frozen=True):
    """A broker at the other end of a link."""

    secret: bytes
    weight: float = 1.0

    def __repr__(self) -> str:
        return f"Neighbour(weight={self.weight:g})"


class Settings(msgspec.Struct, frozen=True):
    name: str
    access: Access
    neighbours: dict[str, Neighbour] = {}
    routing: str = "PSF"
    """How live messages travel: by a scheme on any graph, or by subscription forwarding on a tree;
    the same everywhere."""
    advertisements: bool = False
    """With subscription forwarding: publishers advertise, and subscriptions go only there."""
    limits: Limits = Limits()
    keepalive_us: int = 1_000_000
    """After so long without a word, an end says Ping; after three times that, the link is dead."""
    waiting_max: int = 10_000
    """The most live messages that wait for a subscription, or for a neighbour."""
    link_credit: int = 20_000
    """The most messages that a neighbour may have sent and that were not dealt with."""
    subscriptions_max: int = 100_000
    """Of one client."""
    held_max: int = 20_000
    """The most durable messages of one client for which there is no room yet."""
    full: Full = Full.BLOCK
    """What happens when the queue of a durable subscription is full, unless it says so itself."""
    bounds: Bounds = Bounds()
    """Of durable messages."""

    def __post_init__(self) -> None:
        if self.routing not in ROUTINGS:
            raise PalioError(
                f"routing {self.routing!r} does not exist; choose one of {', '.join(ROUTINGS)}"
            )
        if self.advertisements and not self.is_forwarding:
            raise PalioError(f"advertisements go with routing {FORWARDING!r}, not {self.routing!r}")
        if self.name in self.neighbours:
            raise PalioError(f"broker {self.name!r} is its own neighbour; take it out")

    @property
    def is_forwarding(self) -> bool:
        return self.routing == FORWARDING
