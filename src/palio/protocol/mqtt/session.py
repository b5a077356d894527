"""A session: what outlives the connections of a client. Values and tables, no behaviour of its own.

    subscriptions   by topic filter, as it was written
    in_flight       packet id ─▶ a QoS 1 or 2 message that the client has not acknowledged, in order
    unstored        durable messages that were published and the core has not stored yet
    incoming        packet ids of QoS 2 messages that were published and not released, and their numbers
    reserved        packet ids of before a restart, whose messages the core will send again

Packet ids of the two directions have nothing to do with each other.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from palio.protocol.mqtt.content import MqttMessage
from palio.protocol.mqtt.packets.values import SubscriptionOptions, Will
from palio.protocol.mqtt.progress import DeliveryProgress

_PACKET_IDS = 65_535


class SessionKey(NamedTuple):
    """Whose session it is: client ids are unique within an identity."""

    identity: str
    client_id: str


class MqttSubscription:
    """A topic filter that the client has subscribed to."""

    __slots__ = (
        "credit", "durable", "group", "id", "identifier", "options", "owed", "predicate", "progress",
        "resent", "text",
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
        self.unstored: deque[Unstored] = deque()
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
        self.unstored.extend([one._replace(packet_id=0) for one in before.unstored])

    def settle_incoming(self, published: int) -> None:
        """After a restart: what the core has not stored up to this number will come again as new."""
        self.incoming = {
            id: number
            for id, number in self.incoming.items()
            if number <= published or id in self.unstored_ids
        }

    def new_packet_id(self) -> int:
        """A packet id that is free; 0: there is none."""
        if len(self.in_flight) + len(self.reserved) >= _PACKET_IDS:
            return 0
        while True:
            self._packet_id = self._packet_id % _PACKET_IDS + 1
            if self._packet_id not in self.in_flight and self._packet_id not in self.reserved:
                return self._packet_id
