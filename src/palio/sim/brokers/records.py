"""What clients wanted, sent and got, as the applications saw it: what the judge judges by."""

from __future__ import annotations

from palio.model.language import parse
from palio.model.message import Message
from palio.sim.brokers.plans import Sending, Want


class Publication:
    """A message, and when its publisher knew that it is stored."""

    __slots__ = (
        "acknowledged_us",
        "is_probe",
        "message",
        "number",
        "publisher",
        "sending",
        "time_us",
    )

    def __init__(self, publisher: str, number: int, time_us: int, sending: Sending) -> None:
        self.publisher = publisher
        self.number = number
        self.time_us = time_us
        self.sending = sending
        self.message = Message.from_json(sending.attributes)
        self.acknowledged_us: int | None = None
        self.is_probe = False

    def __str__(self) -> str:
        kind = "durable " if self.sending.durable else ""
        return f"{kind}{self.sending.attributes} (number {self.number} of {self.publisher})"


class Receipt:
    """A message that one client got for a desk."""

    __slots__ = ("client", "id", "is_again", "is_queued", "publication", "time_us")

    def __init__(
        self,
        client: str,
        id: int,
        publication: Publication,
        is_queued: bool,
        is_again: bool,
        time_us: int,
    ) -> None:
        self.client = client
        self.id = id
        self.publication = publication
        self.is_queued = is_queued
        self.is_again = is_again
        self.time_us = time_us


class Desk:
    """A subscription as applications see it, whatever connections and members it has."""

    def __init__(self, want: Want, home: str, owner: str, since_us: int) -> None:
        self.want = want
        self.owner = owner
        """Who asked for it first."""
        self.home = home
        self.predicate = parse(want.predicate)
        self.since_us = since_us
        """What was acknowledged before this time is not for it."""
        self.asked_us = since_us
        """The same, as it was asked for the last time before it was known to be there."""
        self.subscribed_us: int | None = None
        """When somebody was told that it is there."""
        self.ended_us = 0
        """When somebody said or heard that it has ended."""
        self.members: dict[str, int] = {}
        """Clients, with the id in their session."""
        self.receipts: dict[tuple[str, int], list[Receipt]] = {}
        self.last: dict[str, int] = {}
        """The last number of each publisher that came out of the queue."""

    def __str__(self) -> str:
        kind = "durable " if self.want.durable else "live "
        return f"{kind}desk {self.want.desk!r} at {self.home} ({self.want.predicate})"

    @property
    def from_us(self) -> int | None:
        """All that is published from this time on must come; None: nothing must."""
        if self.subscribed_us is None:
            return None
        return self.asked_us if self.want.past_us is not None else self.subscribed_us
