"""The settings of a broker core; its host passes them in at the start."""

from __future__ import annotations

import msgspec

from palio.errors import LimitExceeded, PalioError
from palio.protocol.broker.access import Access
from palio.protocol.broker.disclosure import Disclosure
from palio.protocol.broker.schemas import MessageSchema
from palio.protocol.durability.bounds import Bounds, LastValueBounds
from palio.protocol.durability.queues import Full
from palio.protocol.policies.broker_record import ADDRESS_MAX, WEIGHT_MAX, WEIGHT_MIN
from palio.protocol.policies.registry import POLICIES
from palio.protocol.policies.subscription_forwarding import FORWARDING
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.parts import text_bytes

WAITING_OVERHEAD = 1024
"""More than what a waiting message counts besides its frame."""
ROUTINGS = tuple(POLICIES)


class Neighbour(msgspec.Struct, frozen=True):
    """A broker at the other end of a link."""

    secret: bytes
    weight: float = 1.0
    """The cost of the link: WEIGHT_MIN to WEIGHT_MAX."""
    role: NeighbourRole = NeighbourRole.PEER
    """What it is to this broker; other roles than that of a peer need subscription forwarding."""

    def __repr__(self) -> str:
        return f"Neighbour(weight={self.weight:g}, role={self.role})"


class SubscriptionBounds(msgspec.Struct, frozen=True):
    """Of the subscriptions of one client."""

    subscriptions_max: int = 100_000
    text_bytes_max: int = 256 << 10
    """Of one predicate."""
    filters_max: int = 1024
    """Of one predicate, in its normal form; of a pattern, in all its parts, if that is less than 128."""
    predicates_bytes_max: int = 64 << 20
    """Of the predicates of one client, and of the durable subscriptions of one identity."""
    calls_max: int = 256
    """Of functions and operators, in the expressions of one predicate or pattern."""
    steps_max: int = 20_000
    """Of the expressions of one client, and of the durable subscriptions of one identity: what they take
    in the worst case for a message of 1 KiB, in steps of about a microsecond (model/expression_costs.py)."""
    advertisements_max: int = 1000
    watches_max: int = 1000
    """Patterns that one client watches."""

    def check_text(self, text: str, what: str = "the predicate") -> None:
        """Raise LimitExceeded for a predicate, a pattern or an advertisement that is too long."""
        size = text_bytes(text)
        if size > self.text_bytes_max:
            raise LimitExceeded(
                f"{what} has {size:,} bytes; this broker takes {self.text_bytes_max:,}"
            )


class ConnectionBounds(msgspec.Struct, frozen=True):
    """Of connections: how many, and how long they may keep this broker waiting."""

    clients_max: int = 10_000
    identity_max: int = 8_000
    """Clients of one identity."""
    strangers_max: int = 1_000
    """Connections from others whose handshake is not complete."""
    handshake_us: int = 10_000_000
    """A handshake must be complete after so long, whatever else arrives."""
    frame_us: int = 30_000_000
    """A frame that has begun must be complete, or have grown by FRAME_PROGRESS_BYTES, after so long."""
    unfinished_bytes: int = 256 << 20
    """The most bytes of frames that are not complete, on all connections."""


class WaitingBounds(msgspec.Struct, frozen=True):
    """The most bytes of messages that wait in memory. No bound is smaller than one message."""

    queue_bytes: int = 16 << 20
    """For one live subscription, or in each queue of a neighbour."""
    identity_bytes: int = 128 << 20
    """For all live subscriptions of one identity; a message counts once."""
    total_bytes: int = 512 << 20
    """For all live subscriptions; a message counts once."""
    held_bytes: int = 80 << 20
    """Durable messages of one client that wait for room in the store; more than a client sends ahead."""
    held_total_bytes: int = 512 << 20
    """The same of all clients."""
    watch_bytes: int = 16 << 20
    """Messages that one watched pattern holds, for matches that are not complete."""
    watches_bytes: int = 512 << 20
    """The same of all patterns; a message counts for each that holds it."""


class Settings(msgspec.Struct, frozen=True):
    name: str
    access: Access
    neighbours: dict[str, Neighbour] = {}
    routing: str = "iPS"
    """The routing policy of live messages: a scheme, or subscription forwarding. All brokers of a
    network use the same one."""
    advertisements: bool = False
    """Subscription forwarding only: forward subscriptions only towards advertisements."""
    limits: Limits = Limits()
    keepalive_us: int = 1_000_000
    """Silence after which an end sends Ping; after three times this, it closes the link."""
    waiting_max: int = 10_000
    """The most messages that wait for a live subscription, or in each queue of a neighbour."""
    waiting: WaitingBounds = WaitingBounds()
    connections: ConnectionBounds = ConnectionBounds()
    link_credit: int = 20_000
    """The most messages in flight on a link between brokers, in each direction; the sender is told."""
    subscriptions: SubscriptionBounds = SubscriptionBounds()
    held_max: int = 20_000
    """The most durable messages of one client that wait for room in the store."""
    quench: Disclosure = Disclosure.RANGES
    """What quenching tells a publisher of filters that it may not subscribe to itself."""
    skew_us: int = 10_000_000
    """How far ahead of the broker's clock a publisher's may be; later times of messages are cut."""
    full: Full = Full.BLOCK
    """What happens when the queue of a durable subscription is full, unless its client asks for less:
    only where this is `block` may it ask for `block`."""
    deliveries_max: int = 0
    """How often a message of a durable subscription is delivered before it is a dead letter, unless its
    client asks for less; 0: any number."""
    orphans_us: int | None = 7 * 24 * 3600 * 1_000_000
    """How long durable subscriptions stay whose identity is no longer in the configuration; None: for
    ever."""
    address: str = ""
    """At which clients reach this broker, for those that ask for a durable subscription elsewhere; empty:
    it does not say."""
    bounds: Bounds = Bounds()
    """Of durable messages."""
    last_values: LastValueBounds = LastValueBounds()
    """Of the last values that this broker holds, for all keys of the network."""
    schemas: dict[str, MessageSchema] = {}
    """By which messages of clients must be valid."""

    def __post_init__(self) -> None:
        if self.routing not in ROUTINGS:
            raise PalioError(
                f"routing {self.routing!r} does not exist; choose one of {', '.join(ROUTINGS)}"
            )
        if self.advertisements and self.routing != FORWARDING:
            raise PalioError(f"advertisements go with routing {FORWARDING!r}, not {self.routing!r}")
        if len(self.address) > ADDRESS_MAX or not (self.address or " ").isprintable():
            raise PalioError(
                f"[broker] address has {len(self.address)} characters, or some that cannot be printed; "
                f"it has at most {ADDRESS_MAX}: palio://milan.example.org:7400"
            )
        if self.name in self.neighbours:
            raise PalioError(f"broker {self.name!r} is its own neighbour; take it out")
        self._check_roles()
        for name, neighbour in self.neighbours.items():
            if not WEIGHT_MIN <= neighbour.weight <= WEIGHT_MAX:
                raise PalioError(
                    f"the link to {name!r} has weight {neighbour.weight!r}; "
                    f"a link weighs {WEIGHT_MIN} to {WEIGHT_MAX:,.0f}"
                )
        if self.link_credit < 1:
            raise PalioError(
                f"link_credit is {self.link_credit}; a link needs credit for 1 message"
            )

    def role_of(self, neighbour: str) -> NeighbourRole:
        """What a neighbour is to this broker."""
        known = self.neighbours.get(neighbour)
        return NeighbourRole.PEER if known is None else known.role

    def _check_roles(self) -> None:
        """Raise if this broker cannot have neighbours of these roles."""
        by_role: dict[NeighbourRole, list[str]] = {role: [] for role in NeighbourRole}
        for name, neighbour in self.neighbours.items():
            by_role[neighbour.role].append(name)
        masters, peers = by_role[NeighbourRole.MASTER], by_role[NeighbourRole.PEER]
        for role in (NeighbourRole.MASTER, NeighbourRole.SLAVE):
            if by_role[role] and self.routing != FORWARDING:
                raise PalioError(
                    f"[neighbours.{by_role[role][0]}] role = {role.value!r} goes with routing "
                    f"{FORWARDING!r}, not {self.routing!r}: change the routing of all brokers, or leave out role"
                )
        if len(masters) > 1:
            raise PalioError(
                f"broker {self.name!r} has {len(masters)} masters, {' and '.join(masters)}; a broker has "
                "one: change role in [neighbours] of the others"
            )
        if masters and peers and self.advertisements:
            raise PalioError(
                f"broker {self.name!r} has the master {masters[0]!r} and the peer {peers[0]!r}, to which "
                "nobody advertises what is published above: leave out advertisements at all brokers, or "
                "make all other neighbours slaves"
            )
