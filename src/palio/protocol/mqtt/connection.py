"""One MQTT connection: packets of its client on one side, native frames of the core on the other.

    CONNECTING ──CONNECT──▶ WELCOMING ──Welcome──▶ READY ──▶ ENDING ──▶ ENDED
                  Hello                  CONNACK     │          the client has been told why
                                                     └──▶ AWAY ──▶ ENDED
                                                     ▲  the client is gone; its will or its session waits
                 after a restart: RESTORING ─────────┘

To the core a client of MQTT is one of its own: it says Hello with its password as the token, subscribes with
predicates, and publishes frames. A client that is away keeps its link to the core, so that its will is published
and its session ends with its own grants; when it comes back, the core replaces the link by the new one.

The caller gives `receive` the bytes of the client and `deliver` the frames of the core, calls `wake` at
`deadline_us`, and after each call writes what `core.take()` and `client.take()` give.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.protocol.mqtt.deadlines import Deadlines
from palio.protocol.mqtt.delivering import OutboundMessages
from palio.protocol.mqtt.greeting import Greeting, connack_code, disconnect_code, end_code
from palio.protocol.mqtt.opening import SessionOpening
from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode, protocol_error
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.reader import PacketReader, PacketRun
from palio.protocol.mqtt.packets.values import (
    Ack,
    Connack,
    ConnectPacket,
    DisconnectPacket,
    Packet,
    PingRequest,
    PingResponse,
    PublishPacket,
    SubscribePacket,
    UnsubscribePacket,
    Version,
)
from palio.protocol.mqtt.ports import ClientPort, CorePort
from palio.protocol.mqtt.publishing import InboundMessages
from palio.protocol.mqtt.retained import RetainedMessages
from palio.protocol.mqtt.runs import PubackRun, PublishRun, RunScan, delivery_runs
from palio.protocol.mqtt.session import MqttSession, SessionKey
from palio.protocol.mqtt.sessions import Sessions
from palio.protocol.mqtt.settings import MqttSettings
from palio.protocol.mqtt.states import (
    AWAY,
    CONNECTING,
    ENDED,
    ENDING,
    READY,
    RESTORING,
    WELCOMING,
    State,
)  # fmt: skip
from palio.protocol.mqtt.subscribing import Subscribing, own_name
from palio.protocol.mqtt.turns import PacketTurns
from palio.protocol.wire import control
from palio.protocol.wire.codes import CloseCode, HelloRole
from palio.protocol.wire.frames import FrameReader, Limits, MessageFrame

CONNECT_BYTES_MAX = 128 << 10
"""Of a CONNECT: a stranger must not fill the memory."""


class MqttConnection:
    """`limits` are those of the core's frames."""

    def __init__(
        self, settings: MqttSettings, sessions: Sessions, retained: RetainedMessages,
        limits: Limits, now_us: int, is_over: Callable[[], bool] | None = None,
    ) -> None:  # fmt: skip
        self.state: State = CONNECTING
        self.core, self.client = CorePort(), ClientPort()
        self._packets = PacketReader(min(settings.packet_bytes_max, CONNECT_BYTES_MAX))
        self._turns = PacketTurns(self._packets, is_over)
        self.delivering = OutboundMessages(
            self.core, self.client, settings.waiting_bytes_max, sessions.counts
        )
        self.publishing = InboundMessages(
            self.core, self.client, settings, limits, retained, sessions.counts
        )
        self._subscribing = Subscribing(
            self.core, self.client, self.delivering, settings, retained, sessions,
            self._turns.slices,
        )  # fmt: skip
        self._opening = SessionOpening(
            self.core, self.client, self.delivering, self.publishing, self._subscribing, sessions,
            settings,
        )  # fmt: skip
        self._settings, self._sessions = settings, sessions
        self._frames = FrameReader(limits)
        self._greeting: Greeting | None = None
        self._session: MqttSession | None = None
        self._restored: SessionKey | None = None
        self._deadlines = Deadlines(now_us, settings.connect_s)
        self.close_reason = ""
        self._is_over = False  # only what was published last must still be stored

    @property
    def deadline_us(self) -> int | None:
        """When `wake` must be called next, at the latest."""
        return self._deadlines.next_us

    def ticket(self) -> int:
        """Of a commit that the client waits for; ask for it with what the core is told. 0: none."""
        if self._session is not None:
            self._sessions.records.save_changes(self._session)
        return self.client.ticket()

    # ---- the client

    def receive(self, data: bytes, now_us: int) -> None:
        self._deadlines.heard_us = now_us
        try:
            self._turns.arrived(data)
        except PacketError as error:
            self._fail(error, now_us)
        self.read(now_us)

    @property
    def has_more(self) -> bool:
        """There is work for another turn: call `read`."""
        return self.state in (CONNECTING, READY) and self._turns.has_more

    def read(self, now_us: int) -> None:
        """Process what has arrived, as far as one turn allows. A client need not wait for CONNACK (3.1.4),
        but its packets do."""
        try:
            if self.state in (CONNECTING, READY):
                for packet in self._turns.packets():
                    if self.state is CONNECTING:
                        self._connect(packet, now_us)
                    else:
                        self._handle(packet, now_us)
                    if self.state is not READY:
                        break
        except PacketError as error:
            self._fail(error, now_us)
        if self.state in (ENDING, AWAY, ENDED):
            self._turns.clear()

    def _fail(self, error: PacketError, now_us: int) -> None:
        if self.state in (CONNECTING, WELCOMING):
            self._refuse(error.code, str(error))
        else:
            self.disconnect(error.code, str(error), now_us)

    def _connect(self, packet: Packet | PacketRun, now_us: int) -> None:
        if not isinstance(packet, ConnectPacket):
            raise protocol_error("the first packet is CONNECT")
        self.client.version = self._packets.version = packet.version
        self._packets.packet_bytes_max = self._settings.packet_bytes_max
        self._packets.runs = RunScan(self._settings, self._frames.limits, packet.version)
        self.state = WELCOMING  # from now on a refusal is a CONNACK
        self._greeting = Greeting(packet, self._settings, self._sessions.new_client_id)
        self.core.say(self._greeting.hello())

    def _refuse(self, code: ReasonCode, reason: str) -> None:
        """CONNACK with an error; to whom has not said CONNECT, nothing."""
        if self.state is WELCOMING or code is ReasonCode.UNSUPPORTED_VERSION:
            self.client.send(Connack(False, code, self.client.reason(reason, always=True)))
        self.close_reason = reason
        self._end()

    def _handle(self, packet: Packet | PacketRun, now_us: int) -> None:
        session = self._session
        assert session is not None
        if isinstance(packet, PublishPacket):
            self.publishing.publish(packet, session, now_us)
        elif isinstance(packet, PublishRun):
            if not self.publishing.publish_run(packet, session, now_us):
                self._turns.slices.append(self.publishing.one_by_one(packet, session, now_us))
        elif isinstance(packet, PubackRun):
            self.delivering.acknowledged_run(packet.packet_ids)
        elif isinstance(packet, Ack):
            if packet.type is PacketType.PUBREL:
                self.publishing.release(packet, session)
            else:
                self.delivering.acknowledged(packet)
        elif isinstance(packet, SubscribePacket):
            self._turns.slices.append(self._subscribing.subscribe(packet, session, now_us))
        elif isinstance(packet, UnsubscribePacket):
            self._subscribing.unsubscribe(packet, session, now_us)
        elif isinstance(packet, PingRequest):
            self.client.send(PingResponse())
        elif isinstance(packet, DisconnectPacket):
            self._client_leaves(packet, session, now_us)
        else:
            raise protocol_error(f"{type(packet).__name__} must not come here")

    def _client_leaves(self, packet: DisconnectPacket, session: MqttSession, now_us: int) -> None:
        expiry_s = packet.properties.get("session_expiry")
        if expiry_s is not None:
            if expiry_s and not session.expiry_s:
                raise protocol_error("a session that ends with its connection cannot be prolonged")
            session.expiry_s = min(expiry_s, self._settings.session_expiry_s_max)
        if packet.code is not ReasonCode.DISCONNECT_WITH_WILL and session.will is not None:
            session.will = None
            self._sessions.records.save(session)
        self.state = ENDING
        self.lost(now_us)

    def lost(self, now_us: int) -> None:
        """The client's connection is gone, whoever closed it."""
        if self.state in (ENDED, AWAY):
            return
        session = self._session
        if session is None:
            self._end()
            return
        self.state = AWAY
        expiry_s, will_s = 0, None
        if session.expiry_s and self._sessions.has_room:
            self._sessions.records.save(session)
            self._subscribing.pause(session)
            expiry_s = session.expiry_s
        if session.will is not None:
            will_s = session.will.properties.get("will_delay", 0)
        self._deadlines.away(now_us, will_s, expiry_s)
        self.wake(now_us)

    # ---- time

    def wake(self, now_us: int) -> None:
        """A deadline may have passed."""
        if self.state is READY:
            if self._deadlines.is_silent(now_us):
                self.disconnect(ReasonCode.KEEP_ALIVE_TIMEOUT, "nothing came for too long", now_us)
        elif self.state in (CONNECTING, WELCOMING):
            if self._deadlines.is_over(now_us):
                self._refuse(ReasonCode.SERVER_BUSY, "the handshake took too long")
        elif self.state is AWAY:
            if self._deadlines.takes_will(now_us):
                self._publish_will(now_us)
            if self._deadlines.is_over(now_us):
                self._end_session()

    def _publish_will(self, now_us: int) -> None:
        session = self._session
        if session is not None and session.will is not None:
            self.publishing.publish_will(session.will, session, now_us)
            session.will = None
            self._sessions.records.save(session)

    def _end_session(self) -> None:
        session = self._session
        if session is not None:
            self._subscribing.forget(session)
            session.expiry_s = 0
        self._is_over = True
        self._deadlines.clear()
        self._end_if_over()

    def _end_if_over(self) -> None:
        session = self._session
        if self._is_over and (session is None or not session.unstored):
            if session is not None:
                self._sessions.end(session.key, self)
            self._end()

    # ---- the end

    def disconnect(self, code: ReasonCode, reason: str, now_us: int) -> None:
        """Tell the client why, and end the connection; its session goes on as if it were lost."""
        if self.state is READY:
            if self.client.version is Version.V5:
                self.client.send(DisconnectPacket(code, self.client.reason(reason, always=True)))
            self.close_reason = reason
            self.state = ENDING
            self.lost(now_us)
        elif self.state in (CONNECTING, WELCOMING):
            self._refuse(code, reason)

    def taken_over(self) -> None:
        """Another connection of the client has its session."""
        if self.state is READY and self.client.version is Version.V5:
            self.client.send(DisconnectPacket(ReasonCode.SESSION_TAKEN_OVER))
        self._session = None
        self.close_reason = "the client has a newer connection"
        self._end()

    def _end(self) -> None:
        if self.state is not ENDED:
            self.state = ENDED
            self._deadlines.clear()
            self.core.say(control.Bye(self.close_reason or "the client has left", CloseCode.REMOTE))

    def gone(self, code: CloseCode, reason: str, now_us: int) -> None:
        """The core, or the host, ends the link; nothing that is said to it arrives."""
        if self.state is WELCOMING or self.state is CONNECTING:
            self._refuse(connack_code(code), reason)
        elif self.state is READY and self.client.version is Version.V5:
            self.client.send(
                DisconnectPacket(disconnect_code(code), self.client.reason(reason, always=True))
            )
        session = self._session
        if session is not None and self.state is not ENDED:
            if session.expiry_s:
                self._sessions.release(session.key, self, now_us)
            elif code is not CloseCode.REPLACED:
                self._sessions.end(session.key, self)
        self.state = ENDED
        self._deadlines.clear()

    # ---- the core

    def deliver(self, data: bytes, now_us: int) -> None:
        """Whole frames of the core."""
        for part in delivery_runs(data, self.client.packet_bytes_max):
            frames = part
            if not isinstance(frames, bytes):
                frames = frames.rest(
                    self.delivering.deliver_run(frames) if self.state is READY else 0
                )
            messages: list[MessageFrame] = []
            for frame in self._frames.feed(frames):
                if type(frame) is MessageFrame:
                    messages.append(frame)
                    continue
                if messages and self.state is READY:
                    self.delivering.deliver(messages, now_us)
                messages = []
                self._hear(frame, now_us)  # type: ignore[arg-type]
            if messages and self.state is READY:
                self.delivering.deliver(messages, now_us)

    def _hear(self, message: control.ControlMessage, now_us: int) -> None:
        match message:
            case control.Ping(number):
                if self.state is not ENDED:
                    self.core.say(control.Pong(number))
            case control.Welcome():
                if self._restored is not None and self.state is RESTORING:
                    self._take_restored(self._restored, message, now_us)
                else:
                    self._welcomed(message, now_us)
            case control.Bye(reason, code):
                self.gone(code, reason, now_us)
            case control.Published(number):
                if self._session is not None:
                    self.publishing.stored(number, self._session)
                    self._end_if_over()
            case control.Rejected(number, reason, code):
                if self._session is not None:
                    self.publishing.rejected(number, reason, code, self._session)
                    self._end_if_over()
            case control.Subscribed(id) | control.Unsubscribed(id) | control.Done(id):
                self._subscribing.answered(id)
            case control.Refused():
                self._subscribing.refused(message)
            case control.SubscriptionEnded(id, reason, code):
                if self._session is not None and self._subscribing.ended(id, self._session):
                    self.disconnect(end_code(code), reason, now_us)
            case _:
                pass

    def _welcomed(self, welcome: control.Welcome, now_us: int) -> None:
        greeting = self._greeting
        if self.state is not WELCOMING or greeting is None:
            return
        if not greeting.is_user(welcome.identity):
            self._refuse(
                ReasonCode.BAD_USER_NAME_OR_PASSWORD,
                "the password is the token of another identity than the user name says",
            )
            return
        self.state = READY
        self._deadlines.welcome(greeting.keep_alive_s)
        self._session = self._opening.open(greeting, welcome, self, now_us)
        self.read(now_us)

    # ---- a will that waits since a restart

    def restore(self, key: SessionKey) -> None:
        """Hold a session whose client a restart of the broker has cut off."""
        self._restored, self.state = key, RESTORING
        self.core.say(control.Hello(control.VERSION, HelloRole.CLIENT, own_name(key.client_id)))

    def _take_restored(self, key: SessionKey, welcome: control.Welcome, now_us: int) -> None:
        session = self._session = self._opening.restore(key, welcome, self, now_us)
        if session is None or session.will is None:
            self._end()
            return
        self.state = AWAY
        will_s = session.will.properties.get("will_delay", 0)
        self._deadlines.away(now_us, will_s, session.expiry_s)
        self.wake(now_us)
