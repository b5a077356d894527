"""What applications published, asked for and received: what the checks compare deliveries with."""

from __future__ import annotations

from palio.model.language import parse
from palio.model.message import Message
from palio.sim.brokers.core_view import ArrivedMessage
from palio.sim.brokers.plans import MessageSpec, SubscriptionSpec


class PublishedMessage:
    """A message, and when its publisher knew that it is stored. Its `name` is short: `eve#3`."""

    __slots__ = (
        "acknowledged_us",
        "is_probe",
        "message",
        "name",
        "number",
        "publisher",
        "spec",
        "time_us",
    )

    def __init__(
        self,
        name: str,
        publisher: str,
        number: int,
        time_us: int,
        spec: MessageSpec,
        is_probe: bool,
    ) -> None:
        self.name = name
        self.publisher = publisher
        self.number = number
        self.time_us = time_us
        self.spec = spec
        self.message = Message.from_json(spec.attributes)
        self.acknowledged_us: int | None = None
        self.is_probe = is_probe

    def __str__(self) -> str:
        kind = "durable " if self.spec.durable else ""
        return f"{kind}{self.name} {self.spec.attributes}"


class DeliveredMessage:
    """A message that one client received for a subscription."""

    __slots__ = ("arrival", "client", "due_us", "published", "time_us")

    def __init__(
        self,
        client: str,
        arrival: ArrivedMessage,
        published: PublishedMessage,
        time_us: int,
    ) -> None:
        self.client = client
        self.arrival = arrival
        self.published = published
        self.time_us = time_us
        self.due_us: int | None = None
        """The client has given it back, to come again from this time on."""

    @property
    def is_returned(self) -> bool:
        return self.due_us is not None


class ExpectedDeliveries:
    """One subscription as applications see it, whatever connections and members it has: from when
    on it must receive what matches, and what it has received."""

    def __init__(self, spec: SubscriptionSpec, home: str, owner: str, since_us: int) -> None:
        self.spec = spec
        self.owner = owner
        """Who asked for it first."""
        self.home = home
        self.predicate = parse(spec.predicate)
        self.since_us = since_us
        """What was acknowledged before this time is not for it."""
        self.asked_us = since_us
        """The same, as it was asked for the last time before it was known to exist."""
        self.subscribed_us: int | None = None
        """When a client was first told that it exists."""
        self.ended_us = 0
        """When a client ended it, or was told that it has ended."""
        self.members: dict[str, int] = {}
        """Clients, with the id in their session."""
        self.confirmed_us: dict[str, int] = {}
        """Clients, with the time when they were last told that they have it."""
        self.asked_after: dict[str, int] = {}
        """Clients, with the number of the last message that they had published."""
        self.received: dict[tuple[str, int], list[DeliveredMessage]] = {}
        """By publisher and number."""
        self.last: dict[str, int] = {}
        """The last number of each publisher that came out of the queue."""

    def __str__(self) -> str:
        kind = "durable" if self.spec.durable else "live"
        return f"{kind} subscription {self.spec.name!r} at {self.home} ({self.spec.predicate})"

    @property
    def from_us(self) -> int | None:
        """All that is published from this time on must arrive; None: nothing must."""
        if self.subscribed_us is None:
            return None
        return self.asked_us if self.spec.past_us is not None else self.subscribed_us
