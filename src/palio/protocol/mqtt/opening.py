"""How a session begins on a connection: after CONNECT, or after a restart of the broker for its will.

Welcome ─▶ the session of before, or a new one ─▶ the will of before, if it is due ─▶ CONNACK
        ─▶ its subscriptions at the core ─▶ what the client has not acknowledged
"""

from __future__ import annotations

from palio.errors import PalioError
from palio.protocol.mqtt.delivering import OutboundMessages
from palio.protocol.mqtt.greeting import Greeting
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.values import Connack
from palio.protocol.mqtt.ports import ClientPort, CorePort
from palio.protocol.mqtt.publishing import InboundMessages
from palio.protocol.mqtt.session import MqttSession, SessionKey
from palio.protocol.mqtt.sessions import Holder, Sessions
from palio.protocol.mqtt.settings import MqttSettings
from palio.protocol.mqtt.subscribing import Subscribing
from palio.protocol.wire.control import Welcome
from palio.protocol.wire.publishers import publisher_key

_PACKET_BYTES_MAX = (1 << 28) - 1
"""A packet of more bytes has no length."""


class SessionOpening:
    def __init__(
        self, core: CorePort, client: ClientPort, delivering: OutboundMessages,
        publishing: InboundMessages, subscribing: Subscribing, sessions: Sessions, settings: MqttSettings,
    ) -> None:  # fmt: skip
        self._core, self._client = core, client
        self._delivering, self._publishing, self._subscribing = delivering, publishing, subscribing
        self._sessions, self._settings = sessions, settings

    def open(
        self, greeting: Greeting, welcome: Welcome, holder: Holder, now_us: int
    ) -> MqttSession:
        """The core has welcomed the client: answer with CONNACK, and go on with its session."""
        connect, key = greeting.connect, SessionKey(welcome.identity, greeting.client_id)
        self._core.number = max(welcome.published, now_us)
        self._delivering.publisher = publisher_key(welcome.identity, greeting.name, "")
        before = self._sessions.take(key, holder)
        is_present = before is not None and bool(before.expiry_s) and not connect.clean_start
        session = before if before is not None and is_present else self._sessions.begin(key)
        if before is not None:
            before.settle_incoming(welcome.published)
            self._settle_before(before, session, now_us)
        session.expiry_s, session.will = greeting.expiry_s, connect.will
        client, properties = self._client, connect.properties
        client.packet_bytes_max = min(
            properties.get("maximum_packet_size", _PACKET_BYTES_MAX), _PACKET_BYTES_MAX
        )
        client.tells_reasons = bool(properties.get("request_problem_information", 1))
        self._delivering.receive_maximum = properties.get("receive_maximum", 65_535)
        self._delivering.alias_maximum = min(
            properties.get("topic_alias_maximum", 0), self._settings.topic_alias_maximum
        )
        client.send(Connack(is_present, ReasonCode.SUCCESS, greeting.properties(welcome.identity)))
        self._sessions.records.save(session)
        client.waits, client.needs_commit = bool(session.expiry_s), session.is_stored
        self._publishing.stored(welcome.published, session)
        self._subscribing.resume(session)
        self._delivering.begin(session)
        return session

    def _settle_before(self, before: MqttSession, session: MqttSession, now_us: int) -> None:
        """The will of a session that ends now, or whose connection was taken over, is due."""
        will, is_over = before.will, before is not session
        if is_over:
            session.follow(before)
        if will is not None and (is_over or not will.properties.get("will_delay", 0)):
            try:
                self._publishing.publish_will(will, session, now_us)
            except PalioError:  # its topic is not allowed any more
                self._sessions.counts.refused += 1
        before.will = None
        if is_over:
            self._subscribing.forget(before)

    def restore(
        self, key: SessionKey, welcome: Welcome, holder: Holder, now_us: int
    ) -> MqttSession | None:
        """The core has welcomed a client that is away since a restart; None: it has no will any more."""
        session = self._sessions.waiting(key)
        if session is None or session.will is None:
            return None
        self._sessions.take(key, holder)
        self._core.number = max(welcome.published, now_us)
        session.settle_incoming(welcome.published)
        return session
