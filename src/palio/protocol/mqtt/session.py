"""A session: what outlives the connections of a client. Values and tables, no behaviour of its own.

    subscriptions   by topic filter, as it was written
    in_flight       packet id ─▶ a QoS 1 or 2 message that the client has not acknowledged, in order
    unstored        durable messages that were published and the core has not stored yet; or runs of them
    incoming        packet ids of QoS 2 messages that were published and not released, and their numbers
    reserved        packet ids of before a restart, whose messages the core will send again

Packet ids of the two directions have nothing to do with each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from palio.protocol.mqtt.content import MqttMessage
from palio.protocol.mqtt.packets.values import SubscriptionOptions, Will
from palio.protocol.mqtt.progress import DeliveryProgress

_PACKET_IDS = 65_535
_IN_A_RUN = MqttMessage("", b"", 1, False, {})


class SessionKey(NamedTuple):
    """Whose session it is: client ids are unique within an identity."""

    identity: str
    client_id: str


class MqttSubscription:
    """A topic filter that the client has subscribed to."""

    __slots__ = (
        "credit", "durable", "group", "id", "identifier", "options", "owed", "predicate", "progress",
        "resent", "run_member", "text",
    )  # fmt: skip

    def __init__(self, text: str, predicate: str, options: SubscriptionOptions) -> None:
        self.text, self.predicate, self.options = text, predicate, options
        self.identifier = 0
        self.id = 0
        """At the core, on the connection of now; 0: not there."""
        self.durable = ""
        """The name of the durable subscription; empty: it is live."""
        self.group = ""
        self.credit = 0
        self.owed = 0
        """Messages that were sent, and for which the core has got no new credit."""
        self.resent: set[int] = set()
        """Positions that this connection sent again by itself; the core does so, too."""
        self.progress: DeliveryProgress | None = None
        """Of a durable subscription that is the session's own."""
        self.run_member = InFlight(_IN_A_RUN, [self], 0, 1, False)
        """Stands for each live message of a run that is in flight: none of them is sent again."""

    @property
    def is_plain(self) -> bool:
        """Its live messages go out as they are."""
        return self.progress is None and not self.identifier and not self.options.no_local


class InFlight:
    """A message on its way to the client."""

    __slots__ = ("is_received", "message", "position", "qos", "retain", "subscriptions")

    def __init__(
        self, message: MqttMessage, subscriptions: list[MqttSubscription], position: int, qos: int,
        retain: bool,
    ) -> None:  # fmt: skip
        self.message, self.subscriptions, self.position = message, subscriptions, position
        self.qos, self.retain = qos, retain
        self.is_received = False
        """QoS 2: PUBREC has come, so only PUBREL may be sent again."""


class Unstored(NamedTuple):
    """A durable message that the core has not stored yet."""

    number: int
    packet_id: int
    """0: nobody waits for an acknowledgement."""
    qos: int


class UnstoredRun(NamedTuple):
    """Messages of quality 1 with numbers one after the other, in place of as many `Unstored`."""

    number: int
    """Of the first."""
    packet_ids: Sequence[int]

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and 0 <= number - self.number < len(self.packet_ids)

    def split(self, number: int) -> tuple[Sequence[int], UnstoredRun | None]:
        """The packet ids up to a number, and the run of the others."""
        count = number + 1 - self.number
        stored, others = self.packet_ids[:count], self.packet_ids[count:]
        return stored, UnstoredRun(number + 1, others) if others else None

    def members(self) -> list[Unstored]:
        return [Unstored(n, id, 1) for n, id in enumerate(self.packet_ids, self.number)]


class MqttSession:
    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.expiry_s = 0
        self.is_stored = False
        """There is a record of it."""
        self.subscriptions: dict[str, MqttSubscription] = {}
        self.in_flight: dict[int, InFlight] = {}
        self.incoming: dict[int, int] = {}
        self.reserved: set[int] = set()
        self.unstored: deque[Unstored | UnstoredRun] = deque()
        self.unstored_ids: set[int] = set()
        """Their packet ids."""
        self.will: Will | None = None
        self.is_unsaved = False
        """Its subscriptions have changed."""
        self.is_changed = False
        """What must survive a crash of an exchange of QoS 2 has changed, and is not written down."""
        self._packet_id = 0

    def follow(self, before: MqttSession) -> None:
        """Begin after a session that is over: what it published may still be stored, and retained."""
        for some in before.unstored:
            members = some.members() if isinstance(some, UnstoredRun) else [some]
            self.unstored.extend([one._replace(packet_id=0) for one in members])

    def take_unstored(self, number: int) -> Unstored | None:
        """Remove the message with this number from those that are not stored."""
        for place, some in enumerate(self.unstored):
            if isinstance(some, UnstoredRun) and number in some:
                self.unstored.rotate(-place)
                del self.unstored[0]
                self.unstored.extendleft(reversed(some.members()))
                self.unstored.rotate(place)
                return self.take_unstored(number)
            if isinstance(some, Unstored) and some.number == number:
                del self.unstored[place]
                return some
        return None

    def settle_incoming(self, published: int) -> None:
        """After a restart: what the core has not stored up to this number will come again as new."""
        self.incoming = {
            id: number
            for id, number in self.incoming.items()
            if number <= published or id in self.unstored_ids
        }

    def next_packet_ids(self, count: int) -> range:
        """So many packet ids that are free, one after the other, or fewer; `use_packet_ids` takes them."""
        first = self._packet_id % _PACKET_IDS + 1
        ids = range(first, min(first + count, _PACKET_IDS + 1))
        is_free = self.in_flight.keys().isdisjoint(ids) and self.reserved.isdisjoint(ids)
        return ids if is_free else range(0)

    def use_packet_ids(self, ids: range, messages: Iterable[InFlight]) -> None:
        self.in_flight.update(zip(ids, messages, strict=True))
        self._packet_id = ids[-1] if ids else self._packet_id

    def new_packet_id(self) -> int:
        """A packet id that is free; 0: there is none."""
        if len(self.in_flight) + len(self.reserved) >= _PACKET_IDS:
            return 0
        while True:
            self._packet_id = self._packet_id % _PACKET_IDS + 1
            if self._packet_id not in self.in_flight and self._packet_id not in self.reserved:
                return self._packet_id
