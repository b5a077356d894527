"""Session: the state of a client, without input and output. It outlives its connections.

    closed ──opened──▶ opening ──Welcome──▶ ready ──Bye, silence, broken frame──▶ ending ──closed──▶ closed

The parts hold what must survive a connection: the outbox, the subscriptions, the requests in flight
and the advertisements. Each new connection is told all of it, in this order: advertisements,
subscriptions, quenching, requests, and the outbox before anything newer. So reconnects are invisible
to the host: a durable message is stored once, and no message of a durable subscription arrives
twice. Frames to send gather until `take`: a host that calls it once a turn writes large pieces.
"""

from __future__ import annotations

from enum import Enum
from itertools import count

import msgspec

from palio.errors import NetworkError
from palio.protocol.client.events import CloseCause, Closing, SessionEvent
from palio.protocol.client.keepalive import Keepalive
from palio.protocol.client.outbox import Outbox
from palio.protocol.client.publisher import SessionPublisher
from palio.protocol.client.quenching import QuenchFilter
from palio.protocol.client.requests import SessionRequests
from palio.protocol.client.send_buffer import SendBuffer
from palio.protocol.client.subscriptions import SessionSubscriptions
from palio.protocol.wire import control
from palio.protocol.wire.codes import HelloRole
from palio.protocol.wire.control import ControlMessage
from palio.protocol.wire.frames import BrokenFrame, FrameReader, Limits, MessageFrame
from palio.protocol.wire.handshake import check_token, other_version
from palio.protocol.wire.headers import DeliverHeader
from palio.protocol.wire.parts import AnswerParts
from palio.protocol.wire.queue_control import Purged, QueuesListed, SubscriptionsListed


class SessionSettings(msgspec.Struct, frozen=True):
    """The bounds of a session."""

    limits: Limits = Limits()
    outbox_messages_max: int = 20_000
    outbox_bytes_max: int = 64 << 20
    handshake_us_max: int = 10_000_000
    dedup_window_size: int = 1 << 15
    """Acknowledged positions that each durable subscription remembers, at least."""


class ConnectionState(Enum):
    CLOSED = "closed"
    OPENING = "opening"
    READY = "ready"
    ENDING = "ending"


CLOSED, OPENING, READY, ENDING = ConnectionState


class Session:
    """The client's end of the protocol, whatever the connection below it does."""

    def __init__(
        self,
        name: str,
        token: str = "",
        settings: SessionSettings | None = None,
        first: int | None = None,
        session: str = "",
    ) -> None:
        """`session` is a nonce that no other client has: letters and digits. Without one, only one
        client at a time may use the name. `first` is the number of the first message, for a program
        that publishes the same messages in the same order after a restart, without a session: those
        that are stored are not sent again."""
        settings = settings or SessionSettings()
        self.name = name
        self.welcome: control.Welcome | None = None
        """The last one; None before the first."""
        buffer, ids = SendBuffer(), count(1)
        self.outbox = Outbox(settings.outbox_messages_max, settings.outbox_bytes_max)
        self.publisher = SessionPublisher(settings.limits, self.outbox, buffer, first)
        self.subscriptions = SessionSubscriptions(ids, buffer, settings.dedup_window_size)
        self.requests = SessionRequests(ids, buffer)
        self.quenching = QuenchFilter(self.requests, buffer)
        self._hello = control.Hello(
            control.VERSION, HelloRole.CLIENT, name, check_token(token), session=session
        )
        self._limits = settings.limits
        self._state = CLOSED
        self._frames = FrameReader(settings.limits)
        self._buffer = buffer
        self._parts = AnswerParts()
        self._keepalive = Keepalive(settings.handshake_us_max)

    @property
    def is_ready(self) -> bool:
        """There is a connection, and the broker has said Welcome."""
        return self._buffer.is_ready

    @property
    def deadline_us(self) -> int | None:
        """When `wake` must be called next."""
        return self._keepalive.deadline_us

    def opened(self, now_us: int) -> None:
        """There is a new connection to the broker."""
        if self._state is not CLOSED:
            raise NetworkError("the session has a connection already; call `closed` first")
        self._enter(OPENING)
        self._keepalive.begin(now_us)
        self._frames = FrameReader(self._limits)
        self._buffer.frames = []
        self._buffer.send(self._hello)

    def closed(self) -> list[SessionEvent]:
        """The connection is gone."""
        self._enter(CLOSED)
        self._buffer.frames = []
        self._parts.clear()
        self.quenching.disconnect()
        return self.subscriptions.disconnect() + self.requests.disconnect()

    def receive(self, data: bytes, now_us: int) -> list[SessionEvent]:
        """Bytes from the broker. Hot: the loop runs once for each message."""
        events: list[SessionEvent] = []
        self._keepalive.heard_us = now_us
        deliver = self.subscriptions.deliver
        try:
            for frame in self._frames.feed(data):
                if self._state is not READY:
                    if self._state is not OPENING:
                        break
                    self._greet(frame, now_us, events)  # type: ignore[arg-type]
                elif type(frame) is not MessageFrame:
                    self._handle(frame, events)  # type: ignore[arg-type]
                elif type(frame.header) is DeliverHeader:
                    deliver(frame, frame.header, events)
                else:
                    events.append(self._end_unexpected(frame.header))
        except BrokenFrame as error:
            reason = f"the broker sent a broken frame: {error}"
            events.append(self._end(Closing(CloseCause.PROTOCOL_ERROR, reason)))
        return events

    def wake(self, now_us: int) -> list[SessionEvent]:
        """The deadline has passed: ping, or give up a broker that is silent."""
        closing = self._keepalive.check(now_us)
        if closing is not None:
            return [self._end(closing)]
        if self._keepalive.takes_ping(now_us):
            self._buffer.send(control.Ping(now_us))
        return []

    def take(self) -> list[bytes]:
        """What the host must write now, in order."""
        if self.subscriptions.due:
            self.subscriptions.flush()
        buffer = self._buffer
        frames, buffer.frames = buffer.frames, []
        return frames

    def bye(self, reason: str) -> None:
        """Say goodbye; the host writes what `take` returns and closes the connection."""
        if self._state is READY:
            self.subscriptions.flush()
            self._buffer.send(control.Bye(reason))
        if self._state is not CLOSED:
            self._enter(ENDING)

    # ---- what the broker says

    def _greet(
        self, frame: ControlMessage | MessageFrame, now_us: int, events: list[SessionEvent]
    ) -> None:
        """The first control message decides whether this is a connection."""
        match frame:
            case control.Welcome(version=control.VERSION):
                self._begin(frame, now_us, events)
            case control.Welcome(version=version):
                reason = other_version(version)
                events.append(self._end(Closing(CloseCause.OTHER_VERSION, reason)))
            case control.Bye(reason, code):
                cause = CloseCause.UNAVAILABLE if code.is_temporary else CloseCause.REFUSED
                events.append(self._end(Closing(cause, reason, code)))
            case control.Ping(number):
                self._buffer.send(control.Pong(number))
            case _:
                reason = f"a broker says Welcome first, not {type(frame).__name__}"
                events.append(self._end(Closing(CloseCause.PROTOCOL_ERROR, reason)))

    def _begin(self, welcome: control.Welcome, now_us: int, events: list[SessionEvent]) -> None:
        """State everything that the broker must know on a new connection."""
        self.welcome = welcome
        self._enter(READY)
        self._keepalive.welcome(welcome.keepalive_us, now_us)
        self.publisher.continue_from(welcome.published, now_us)
        events.append(welcome)
        if self.outbox.store(welcome.published):
            events.append(control.Published(self.outbox.settled))
        self.requests.restate_advertisements()
        self.subscriptions.restate()
        self.quenching.restate()
        self.requests.resend()
        self.publisher.resend()

    def _handle(self, message: ControlMessage, events: list[SessionEvent]) -> None:
        match message:
            case control.Ping(number):
                self._buffer.send(control.Pong(number))
            case control.Pong():
                pass
            case control.Published(number):
                if self.outbox.store(number):
                    events.append(control.Published(self.outbox.settled))
            case control.Rejected(number):
                events.append(message)
                if self.outbox.reject(number):
                    events.append(control.Published(self.outbox.settled))
            case control.Occurred(id):
                occurred = self._parts.whole(message)
                if occurred is not None and self.subscriptions.deliver_compound(id):
                    events.append(occurred)
            case control.Wanted(predicate):
                self.quenching.learn(predicate)
            case control.Subscribed():
                if self.subscriptions.confirm(message):
                    events.append(message)
            case control.Unsubscribed(id) | control.SubscriptionEnded(id):
                if self.subscriptions.remove(id):
                    events.append(message)
            case control.Refused(id):
                self.subscriptions.remove(id)
                self.requests.refuse(id)
                events.append(message)
            case control.Explained(id) | control.Shown(id):
                answer = self._parts.whole(message)
                if answer is not None:
                    self.requests.answer(id)
                    events.append(answer)
            case control.Done(id):
                self.requests.answer(id)
                events.append(message)
            case QueuesListed(id) | SubscriptionsListed(id) | Purged(id):
                self.requests.answer(id)
                events.append(message)
            case control.Bye(reason, code):
                events.append(self._end(Closing(CloseCause.BYE, reason, code)))
            case _:
                events.append(self._end_unexpected(message))

    # ---- the state of the connection

    def _enter(self, state: ConnectionState) -> None:
        self._state = state
        self._buffer.is_ready = state is READY
        if state is CLOSED or state is ENDING:
            self._keepalive.stop()

    def _end_unexpected(self, sent: object) -> Closing:
        reason = f"{type(sent).__name__} is not for clients"
        return self._end(Closing(CloseCause.PROTOCOL_ERROR, reason))

    def _end(self, closing: Closing) -> Closing:
        """The connection must end; the broker is told why, unless it ended it itself."""
        if not closing.cause.is_said_by_broker:
            self._buffer.send(control.Bye(closing.reason))
        self._enter(ENDING)
        return closing
