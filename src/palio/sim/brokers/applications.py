"""An application with a real session: it publishes, and deals with what it gets at its own pace.

It stays with its home broker, dials again when it has lost the connection, and tells the judge
everything that its session tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from palio.protocol.client.session import Arrival, Closing, Happening, Session
from palio.protocol.durability.queues import Full
from palio.protocol.words import Ended, Published, Refused, Rejected, Subscribed, Unsubscribed
from palio.sim.brokers.hosts import Host
from palio.sim.brokers.judging import Judge
from palio.sim.brokers.plans import ClientPlan, Sending, Want
from palio.sim.brokers.sleeping import Sleeper
from palio.sim.brokers.wires import Network, Wire
from palio.sim.checkers import Violation

IDENTITY = "anybody"
REDIAL_US = (20_000, 800_000)
EXPECTED = (
    "silent for",
    "no Welcome",
    "nothing was heard",
    "has a newer connection",
    "too many durable",
)
"""Why a connection may end here."""


GONE = "there is no subscription"
TOO_MANY = "waited"
"""Part of the reason why a subscription ends when too much waits for it."""
FOR_GOOD = ("forgotten", TOO_MANY)
"""Parts of the reasons why a subscription ends and not just passes to another client."""


def _is_over(word: Ended | Refused) -> bool:
    return isinstance(word, Ended) or TOO_MANY in word.reason


class Application(Sleeper):
    def __init__(
        self, plan: ClientPlan, network: Network, random: Random, host: Host, judge: Judge,
        note: Callable[[str], None],
    ) -> None:  # fmt: skip
        super().__init__(plan.name, network, random)
        self.session = Session(plan.name)
        self.pace_us = plan.pace_us
        self.wants: dict[int, Want] = {}
        self._host = host
        self._judge = judge
        self._note = note
        self._wire: Wire | None = None
        self._is_dialling = False
        self._is_present = False

    @property
    def publisher(self) -> str:
        return f"{IDENTITY}/{self.place}"

    # ---- what it is told to do

    def connect(self) -> None:
        """Be connected from now on."""
        if not self._is_present:
            self._is_present = True
            self._dial_soon()

    def disconnect(self) -> None:
        """Be away from now on; sometimes without a word."""
        self._is_present = False
        if self._wire is not None:
            if self._random.random() < 0.5:
                self.session.bye("enough for today")
                self._write()
            self._let_go()

    def publish(self, sending: Sending) -> None:
        session, now_us = self.session, self._clock.now_us
        if session.welcome is None or (sending.durable and not session.has_room):
            return
        if not sending.durable and not session.is_ready:
            return
        attributes = sending.attributes.encode()
        number = session.publish(attributes, sending.body, now_us, sending.durable)
        self._judge.published(self.publisher, number, sending, now_us)
        self.soon()

    def subscribe(self, want: Want) -> None:
        if self._id(want.desk) is not None:
            return
        desk = self._judge.desks.get(want.desk)
        if desk is not None and want.durable:  # it is there, as it was made
            want = desk.want
        now_us = self._clock.now_us
        id = self.session.subscribe(
            want.predicate,
            durable=want.desk if want.durable else "",
            since=None if want.past_us is None else now_us - want.past_us,
            group=want.group,
            credit=want.credit,
            full=want.full,
        )
        self.wants[id] = want
        self._judge.wanted(self.place, id, want, self._host.place, now_us)
        self.soon()

    def leave(self, name: str, forget: bool) -> None:
        id = self._id(name)
        if id is None:
            return
        want = self.wants.pop(id)
        self.session.unsubscribe(id, forget)
        if forget:
            self._judge.over(self.place, id, want, self._clock.now_us)
        else:
            self._judge.left(self.place, want)
        self.soon()

    def advertise(self, constraints: tuple[str, ...]) -> None:
        self.session.advertise(constraints)
        self.soon()

    @property
    def is_idle(self) -> bool:
        """Connected, and nothing waits here."""
        waiting = sum(self.session.unacknowledged(id) for id in self.wants)
        return self.session.is_ready and not self.session.unstored and not waiting

    def _id(self, name: str) -> int | None:
        return next((id for id, want in self.wants.items() if want.desk == name), None)

    # ---- the connection

    def _dial_soon(self) -> None:
        if self._is_present and not self._is_dialling and self._wire is None:
            self._is_dialling = True
            self.after(self._random.randint(*REDIAL_US), self._dial)

    def _dial(self) -> None:
        self._is_dialling = False
        if not self._is_present or self._wire is not None:
            return
        if not self._host.is_up or self._network.is_parted(
            frozenset((self.place, self._host.place))
        ):
            self._dial_soon()
            return
        self._wire = self._network.join(self, self._host)
        self._host.accept(self._wire)
        self.session.opened(self._clock.now_us)
        self._judge.joined(self.place, self._clock.now_us)
        self.soon()

    def received(self, wire: Wire, data: bytes) -> None:
        if wire is self._wire:
            self._take(self.session.receive(data, self._clock.now_us))
            self.soon()

    def hung_up(self, wire: Wire) -> None:
        if wire is self._wire:
            self._let_go()

    def _let_go(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close(self)
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
        if self._wire is not None:
            self._wire.write(self, data)

    def _take(self, happenings: Iterable[Happening]) -> None:
        for one in happenings:
            if isinstance(one, Arrival):
                self._arrived(one)
            elif isinstance(one, Published):
                self._judge.acknowledged(self.publisher, one.number, self._clock.now_us)
            elif isinstance(one, Closing):
                self._check_reason(one.reason)
                self._write()
                self._let_go()
            elif isinstance(one, Subscribed) and one.id in self.wants:
                want, now_us = self.wants[one.id], self._clock.now_us
                self._judge.subscribed(self.place, want, self._host.place, one, now_us)
            elif isinstance(one, Ended | Refused) and _is_over(one) and one.id in self.wants:
                self._note(f"{self.place} heard {one}")
                want = self.wants.pop(one.id)
                self._check_end(want, one.reason)
                if any(text in one.reason for text in FOR_GOOD):
                    self._judge.over(self.place, one.id, want, self._clock.now_us)
                else:
                    self._judge.left(self.place, want)
            elif isinstance(one, Refused) and one.id not in self.wants and GONE in one.reason:
                pass  # it was left here while it ended there
            elif isinstance(one, Refused | Rejected):
                raise Violation("refused", f"{self.place} heard {one}")
            elif isinstance(one, Unsubscribed) and one.id in self.wants:
                raise Violation("refused", f"{self.place} heard {one}, and did not ask for it")

    def _check_end(self, want: Want, reason: str) -> None:
        """Too much waiting ends only what was to end by that."""
        full = want.full or (self._host.settings.full if want.durable else Full.DROP)
        if TOO_MANY in reason and full != Full.END:
            raise Violation("refused", f"{self.place} hears that {want.desk!r} ended: {reason}")

    def _check_reason(self, reason: str) -> None:
        self._note(f"{self.place} closes: {reason}")
        if not any(text in reason for text in EXPECTED):
            raise Violation("refused", f"the connection of {self.place} ends: {reason}")

    def _arrived(self, arrival: Arrival) -> None:
        want = self.wants.get(arrival.id)
        if want is None:
            raise Violation("uninterested", f"{self.place} got something for what it left")
        home, now_us = self._host.place, self._clock.now_us
        self._judge.arrived(self.place, want, home, arrival, now_us)
        id, position = arrival.id, arrival.header.position
        self.after(self._random.randint(0, self.pace_us), lambda: self._deal_with(id, position))

    def _deal_with(self, id: int, position: int) -> None:
        if position:
            self.session.acknowledge(id, position)
        else:
            self.session.consumed(id)
        self.soon()
