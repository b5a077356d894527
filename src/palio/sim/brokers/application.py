"""An application with a shipped client session: it publishes, and handles messages at its own pace.

It stays with its home broker, dials again when it has lost the connection, and reports everything
that its session tells it to the check of deliveries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from palio.protocol.client.events import Arrival, CloseCause, Closing, SessionEvent
from palio.protocol.client.session import Session
from palio.protocol.wire.codes import CloseCode, EndCode, Full, RefusalCode
from palio.protocol.wire.control import (
    Published,
    Refused,
    Rejected,
    Subscribed,
    SubscriptionEnded,
    Unsubscribed,
)
from palio.sim.brokers.core_view import (
    SHARED_NAME,
    ArrivedMessage,
    arrived_message,
    is_dead_letter,
    publisher_of,
)
from palio.sim.brokers.delivery_check import EndToEndChecker
from palio.sim.brokers.plans import ClientSpec, MessageSpec, SubscriptionSpec
from palio.sim.brokers.process import BrokerProcess
from palio.sim.kernel.process import EventLoopProcess
from palio.sim.kernel.streams import ByteStream, StreamNetwork
from palio.sim.kernel.verdicts import Violation

REDIAL_US = (20_000, 800_000)
EXPECTED_CAUSES = frozenset({CloseCause.SILENCE, CloseCause.NO_WELCOME})
EXPECTED_CODES = frozenset({CloseCode.SILENT, CloseCode.REPLACED, CloseCode.OVERLOAD})
"""Why a connection may end here: found by the session, or said by the broker."""
FOR_GOOD = frozenset({EndCode.FORGOTTEN, EndCode.FULL})
"""Why a subscription ends for all; otherwise it passes to another client."""


def gives_back(spec: SubscriptionSpec, message: ArrivedMessage) -> bool:
    """Whether an application does not process a message now: twice, or, of a subscription that allows so
    many deliveries only, now and then until it is given up."""
    if not message.is_queued or message.number % 5:
        return False
    is_for_ever = spec.deliveries_max > 0 and message.number % 3 == 0
    return message.deliveries <= 2 or is_for_ever


class ApplicationProcess(EventLoopProcess):
    def __init__(
        self,
        spec: ClientSpec,
        network: StreamNetwork,
        random: Random,
        home: BrokerProcess,
        checker: EndToEndChecker,
        note: Callable[[str], None],
    ) -> None:
        super().__init__(spec.name, network, random)
        self.session = Session(SHARED_NAME, session=spec.name)
        self.pace_us = spec.pace_us
        self.subscriptions: dict[int, SubscriptionSpec] = {}
        self._network = network
        self._home = home
        self._checker = checker
        self._note = note
        self._stream: ByteStream | None = None
        self._sent_us = 0
        """When the home broker decided to send what is being received."""
        self._is_dialling = False
        self._is_present = False

    @property
    def publisher(self) -> str:
        return publisher_of(self.place)

    # ---- what it is told to do

    def connect(self) -> None:
        """Connect, and stay connected."""
        if not self._is_present:
            self._is_present = True
            self._dial_soon()

    def disconnect(self) -> None:
        """Disconnect, and stay so; half of the time without Bye."""
        self._is_present = False
        if self._stream is not None:
            if self._random.random() < 0.5:
                self.session.bye("enough for today")
                self._write()
            self._drop_connection()

    def publish(self, spec: MessageSpec) -> None:
        session, now_us = self.session, self._clock.now_us
        if session.welcome is None or (spec.durable and not session.outbox.has_room):
            self._note(f"{self.place} cannot publish")
            return
        if not spec.durable and not session.is_ready:
            self._note(f"{self.place} cannot publish")
            return
        spec = spec.stamped(now_us)
        number = session.publisher.publish(
            spec.attributes.encode(), spec.body, now_us, spec.durable, spec.headers
        )
        self._checker.published(self.publisher, number, spec, now_us)
        self.plan_turn()

    def subscribe(self, spec: SubscriptionSpec) -> None:
        if self._id(spec.name) is not None:
            return
        expected = self._checker.expected.get(spec.name)
        if expected is not None and spec.durable:  # it exists, as it was made
            spec = expected.spec
        now_us = self._clock.now_us
        id = self.session.subscriptions.subscribe(
            spec.predicate,
            durable=spec.durable_name,
            since=None if spec.past_us is None else now_us - spec.past_us,
            group=spec.group,
            credit=spec.credit,
            full=spec.full,
            deliveries_max=spec.deliveries_max,
            last=spec.last,
        )
        self.subscriptions[id] = spec
        self._checker.asked(self.place, id, spec, self._home.place, now_us)
        self.plan_turn()

    def leave(self, name: str, forget: bool) -> None:
        id = self._id(name)
        if id is None:
            return
        spec = self.subscriptions.pop(id)
        self.session.subscriptions.unsubscribe(id, forget)
        if forget:
            self._checker.over(self.place, id, spec, self._clock.now_us)
        else:
            self._checker.left(self.place, spec)
        self.plan_turn()

    def advertise(self, constraints: tuple[str, ...]) -> None:
        self.session.requests.advertise(constraints)
        self.plan_turn()

    @property
    def is_idle(self) -> bool:
        """Connected, and nothing waits here."""
        waiting = sum(self.session.subscriptions.unacknowledged(id) for id in self.subscriptions)
        return self.session.is_ready and not self.session.outbox.unstored and not waiting

    def _id(self, name: str) -> int | None:
        return next((id for id, spec in self.subscriptions.items() if spec.name == name), None)

    # ---- the connection

    def _dial_soon(self) -> None:
        if self._is_present and not self._is_dialling and self._stream is None:
            self._is_dialling = True
            self.after(self._random.randint(*REDIAL_US), self._dial)

    def _dial(self) -> None:
        self._is_dialling = False
        if not self._is_present or self._stream is not None:
            return
        places = frozenset((self.place, self._home.place))
        if not self._home.is_up or self._network.is_partitioned(places):
            self._dial_soon()
            return
        self._note(f"{self.place} connects to {self._home.place}")
        self._stream = self._network.connect(self, self._home)
        self._home.accept(self._stream)
        self.session.opened(self._clock.now_us)
        self._checker.connected(self.place, self._clock.now_us)
        self.plan_turn()

    def received(self, stream: ByteStream, data: bytes) -> None:
        if stream is self._stream:
            self._sent_us = stream.made_us
            self._take(self.session.receive(data, self._clock.now_us))
            self.plan_turn()

    def disconnected(self, stream: ByteStream) -> None:
        if stream is self._stream:
            self._drop_connection()

    def _drop_connection(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._note(f"{self.place} is disconnected")
            stream.close(self)
            self._take(self.session.closed())
        self._dial_soon()

    # ---- turns

    def wake(self) -> None:
        self._take(self.session.wake(self._clock.now_us))
        self.turn()

    def turn(self) -> None:
        self._write()
        self.set_timer(self.session.deadline_us)

    def _write(self) -> None:
        data = b"".join(self.session.take())
        if self._stream is not None:
            self._stream.write(self, data)

    def _take(self, events: Iterable[SessionEvent]) -> None:
        for event in events:
            match event:
                case Arrival():
                    self._arrived(event)
                case Published(number):
                    self._stored(number)
                case Closing():
                    self._closing(event)
                case Subscribed() if event.id in self.subscriptions:
                    self._subscribed(event)
                case SubscriptionEnded(id, reason, code) if id in self.subscriptions:
                    self._ended(id, reason, code)
                case Refused(id, reason, code):
                    self._refused(id, reason, code)
                case Rejected(number, reason):
                    raise Violation("refused", f"{self.place}#{number} is rejected: {reason}")
                case Unsubscribed(id) if id in self.subscriptions:
                    raise Violation("refused", f"{self.place} did not ask to end {id}")

    def _stored(self, number: int) -> None:
        name = self._checker.name_of(self.publisher, number)
        self._note(f"{self.place} knows that all up to {name} is stored")
        self._checker.acknowledged(self.publisher, number, self._clock.now_us)

    def _subscribed(self, event: Subscribed) -> None:
        spec, now_us = self.subscriptions[event.id], self._clock.now_us
        self._note(f"{self.place} has {spec.name}")
        self._checker.subscribed(self.place, spec, self._home.place, event, now_us)

    def _refused(self, id: int, reason: str, code: RefusalCode) -> None:
        if code is RefusalCode.FULL and id in self.subscriptions:
            self._ended(id, reason, EndCode.FULL)
        elif code is not RefusalCode.UNKNOWN or id in self.subscriptions:
            # otherwise it was left here while it ended there
            raise Violation("refused", f"{self.place} is refused {id}: {reason}")

    def _ended(self, id: int, reason: str, code: EndCode) -> None:
        spec = self.subscriptions.pop(id)
        self._note(f"{self.place} has lost {spec.name}: {reason}")
        full = spec.full or (self._home.settings.full if spec.durable else Full.DROP)
        if code is EndCode.FULL and full != Full.END:
            text = f"{self.place} hears that {spec.name!r} ended, which should not end: {reason}"
            raise Violation("refused", text)
        if code in FOR_GOOD:
            self._checker.over(self.place, id, spec, self._clock.now_us)
        else:
            self._checker.left(self.place, spec)

    def _closing(self, closing: Closing) -> None:
        self._note(f"{self.place} closes its connection: {closing.reason}")
        if closing.cause not in EXPECTED_CAUSES and closing.code not in EXPECTED_CODES:
            raise Violation("refused", f"the connection of {self.place} ends: {closing.reason}")
        self._write()
        self._drop_connection()

    def _arrived(self, arrival: Arrival) -> None:
        spec = self.subscriptions.get(arrival.id)
        if spec is None:
            raise Violation("uninterested", f"{self.place} got something for what it left")
        message = arrived_message(arrival, self._sent_us)
        if is_dead_letter(message):
            self._note(f"{self.place} gets a dead letter {message.attributes.decode()}")
            self._checker.dead_letters.arrived(message)
            self.after(0, self._handle, message.id, message.position)
            return
        name = self._checker.name_of(message.publisher, message.number)
        kind = "queued" if message.is_queued else "live"
        redelivered = ", redelivered" if message.is_redelivered else ""
        self._note(
            f"{self.place} gets {name} {message.attributes.decode()} for {spec.name} "
            f"({kind}{redelivered})"
        )
        now_us = self._clock.now_us
        received = self._checker.arrived(self.place, spec, self._home.place, message, now_us)
        if gives_back(spec, message):
            self._note(f"{self.place} gives {name} back")
            delay_us = 50_000 * (message.number % 3)
            received.due_us = now_us + delay_us
            self.session.subscriptions.nack(message.id, message.position, delay_us)
            self.plan_turn()
        elif message.is_queued and message.number % 7 == 0:
            self._note(f"{self.place} rejects {name}")
            received.due_us = now_us
            self._checker.dead_letters.rejected(spec, message, now_us)
            self.session.subscriptions.reject(message.id, message.position, "seven")
            self.plan_turn()
        else:
            delay_us = self._random.randint(0, self.pace_us)
            self.after(delay_us, self._handle, message.id, message.position)

    def _handle(self, id: int, position: int) -> None:
        if position:
            self.session.subscriptions.acknowledge(id, position)
        else:
            self.session.subscriptions.consumed(id)
        self.plan_turn()
