"""Session: what a client knows and says, without input and output. It outlives its connections.

    commands: publish, subscribe, acknowledge, ...  ┐            ┌ take() ──▶ bytes for the broker
    connection: opened, receive, closed             ├─▶ Session ─┤
    clock: wake at `deadline_us`                    ┘            └ happenings (words, Arrival, Closing)

    closed ──opened──▶ opening ──Welcome──▶ ready ──Bye, silence, broken frame──▶ ending ──closed──▶ closed

What always holds:
- A durable message stays in the outbox until the broker has said Published or Rejected; after a
  reconnect
  those that Welcome calls stored leave it, and the rest is sent again under the same numbers, in
  order, before anything newer. So each is stored once.
- Subscriptions, advertisements, quenching and unanswered requests are stated again after a
  reconnect. The host sees no difference, and no message of a durable subscription twice
  (receipts.py).
- No subscription has more live messages under way than its credit; it is paid as the host says
  that they are consumed. Of a durable one, never more than `credit` are unacknowledged on top.
- Acknowledgements and credit gather until `take`, so a host that calls it once per turn batches.
"""

from __future__ import annotations

from itertools import count

import msgspec

from palio.errors import InvalidValue, NetworkError
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.protocol import words
from palio.protocol.client.happenings import Arrival, Closing, Happening, parse_wanted
from palio.protocol.client.outbox import Outbox
from palio.protocol.client.standing import Standing
from palio.protocol.frames import (
    BrokenFrame,
    Deliver,
    Frames,
    Letter,
    Limits,
    Publish,
    letter_frame,
    word_frame,
)
from palio.protocol.handshake import other_version
from palio.protocol.words import Word

__all__ = ["Arrival", "Closing", "Happening", "Session", "Settings"]

CREDIT_MAX = 1 << 30
CLOSED, OPENING, READY, ENDING = "closed", "opening", "ready", "ending"


class Settings(msgspec.Struct, frozen=True):
    """The bounds of a session."""

    limits: Limits = Limits()
    outbox_messages_max: int = 20_000
    outbox_bytes_max: int = 64 << 20
    handshake_us_max: int = 10_000_000
    receipts_max: int = 1 << 15
    """Acknowledged positions that are remembered, for each durable subscription."""


class Session:
    """The client's end, whatever the connection under it does."""

    def __init__(
        self, name: str, token: str = "", settings: Settings | None = None, first: int | None = None
    ) -> None:
        """`first` number of a client that publishes the same again: what is stored is not sent."""
        self.name = name
        self.settings = settings or Settings()
        self.welcome: words.Welcome | None = None
        """The last one; None before the first."""
        self.dropped = 0
        """Best-effort messages that were published while there was no connection."""
        self._token = token
        self._state = CLOSED
        self._frames = Frames(self.settings.limits)
        self._out: list[bytes] = []
        self._ids = count(1)
        self._first = first
        self._number = 0 if first is None else first - 1
        self._outbox = Outbox(self.settings.outbox_messages_max, self.settings.outbox_bytes_max)
        self._subscriptions: dict[int, Standing] = {}
        self._due: set[int] = set()
        self._advertised: dict[int, words.Advertise] = {}
        self._requests: dict[int, Word] = {}
        self._quench: words.Quench | None = None
        self._wanted: Predicate | None = None
        self._keepalive_us = 0
        self._heard_us = 0
        self._ping_us = 0

    # ---- the connection

    @property
    def is_ready(self) -> bool:
        """There is a connection, and the broker has said Welcome."""
        return self._state is READY

    @property
    def deadline_us(self) -> int | None:
        """When `wake` has something to do."""
        if self._state is OPENING:
            return self._heard_us + self.settings.handshake_us_max
        if self._state is READY and self._keepalive_us:
            return min(self._ping_us, self._heard_us + self._keepalive_us)
        return None

    def opened(self, now_us: int) -> None:
        """There is a new connection to the broker."""
        if self._state is not CLOSED:
            raise NetworkError("this session has a connection already; say `closed` first")
        self._state = OPENING
        self._heard_us = now_us
        self._frames = Frames(self.settings.limits)
        self._out = [word_frame(words.Hello(words.VERSION, "client", self.name, self._token))]

    def closed(self) -> list[Happening]:
        """The connection is gone."""
        self._state = CLOSED
        self._out = []
        self._wanted = None
        happenings: list[Happening] = []
        for id, subscription in list(self._subscriptions.items()):
            if subscription.is_leaving and not subscription.must_return:
                del self._subscriptions[id]
                happenings.append(words.Unsubscribed(id))
        for id, request in list(self._requests.items()):
            if isinstance(request, words.Unadvertise):
                del self._requests[id]
                happenings.append(words.Done(id))
        return happenings

    def receive(self, data: bytes, now_us: int) -> list[Happening]:
        """Bytes from the broker."""
        happenings: list[Happening] = []
        self._heard_us = now_us
        try:
            for frame in self._frames.feed(data):
                if self._state is not READY:
                    if self._state is not OPENING:
                        break
                    self._greet(frame, now_us, happenings)  # type: ignore[arg-type]
                elif type(frame) is Letter:
                    self._take_letter(frame, happenings)
                else:
                    self._hear(frame, happenings)  # type: ignore[arg-type]
        except BrokenFrame as error:
            happenings.append(self._end(f"what came is no frame: {error}"))
        return happenings

    def wake(self, now_us: int) -> list[Happening]:
        """The time has come to say that we live, or to see that the broker does not.

        A client that was asleep or busy itself blames nobody: what came meanwhile is yet to be read.
        """
        late_us = now_us - (self.deadline_us or now_us)
        if self._keepalive_us and late_us > self._keepalive_us // 3:
            self._heard_us += late_us
        if self._state is OPENING and now_us >= self._heard_us + self.settings.handshake_us_max:
            return [self._end(f"no Welcome within {self.settings.handshake_us_max / 1e6:g} s")]
        if self._state is not READY or not self._keepalive_us:
            return []
        if now_us >= self._heard_us + self._keepalive_us:
            return [self._end(f"the broker was silent for {self._keepalive_us / 1e6:g} s")]
        if now_us >= self._ping_us:
            self._say(words.Ping(now_us))
            self._ping_us = now_us + self._keepalive_us // 3
        return []

    def take(self) -> list[bytes]:
        """What is to be written now, in order."""
        if self._due and self._state is READY:
            for id in sorted(self._due):
                self._pay(id)
            self._due.clear()
        out, self._out = self._out, []
        return out

    def bye(self, reason: str) -> None:
        """Say good-bye; the host writes what `take` gives and closes."""
        if self._state is READY:
            self._out = [*self.take(), word_frame(words.Bye(reason))]
        self._state = ENDING if self._state is not CLOSED else CLOSED

    # ---- messages out

    @property
    def has_room(self) -> bool:
        """May another durable message be published?"""
        return self._outbox.has_room

    @property
    def unstored(self) -> int:
        """How many durable messages are not known to be stored."""
        return len(self._outbox)

    def is_unstored(self, number: int) -> bool:
        """Is the durable message with this number not known to be stored?"""
        return number > self._outbox.settled

    def publish(self, attributes: bytes, body: bytes, now_us: int, durable: bool = True) -> int:
        """Send a message, and a durable one until it is stored. Gives its number."""
        if self.welcome is None:
            raise NetworkError(
                "nothing can be published before the first Welcome: "
                "it tells where the numbers of this client go on"
            )
        self.settings.limits.check(attributes, body)
        if durable and not self.has_room:
            raise NetworkError(
                f"{len(self._outbox)} durable messages wait for the broker already; "
                "look at `has_room` first"
            )
        self._number = number = self._number + 1
        if durable and not self.is_unstored(number):
            return number  # an earlier client with this name and these numbers had it stored
        frame = letter_frame(Publish(number, now_us, durable), attributes, body)
        if durable:
            self._outbox.add(number, frame)
        if self._state is READY:
            self._out.append(frame)
        elif not durable:
            self.dropped += 1
        return number

    def wants(self, message: Message) -> bool:
        """Does anybody want it? True when that is not known, or was not asked for."""
        return self._wanted is None or self._wanted.matches(message)

    @property
    def knows_wanted(self) -> bool:
        """Is it known what anybody wants?"""
        return self._wanted is not None

    # ---- messages in

    def subscribe(
        self,
        predicate: str = "",
        *,
        pattern: str = "",
        durable: str = "",
        since: int | None = None,
        group: str = "",
        credit: int = 1000,
        full: str = "",
    ) -> int:
        """Ask for messages, or compounds of a pattern. Gives the subscription's id."""
        if not 1 <= credit <= CREDIT_MAX:
            raise InvalidValue(
                f"the credit of a subscription is a number from 1 to {CREDIT_MAX}, not {credit}"
            )
        id = next(self._ids)
        word = words.Subscribe(id, predicate, pattern, durable, since, group, credit, full)
        self._subscriptions[id] = Standing(word, self.settings.receipts_max)
        self._state_wish(id)
        return id

    def unsubscribe(self, id: int, forget: bool = False) -> bool:
        """End a subscription; nothing more arrives. True: Unsubscribed or Refused will come."""
        subscription = self._subscriptions.get(id)
        if subscription is None:
            return False
        if subscription.is_held:
            del self._subscriptions[id]
            return False
        if self._state is READY:
            self._pay(id)
        subscription.is_leaving = True
        subscription.forget = forget
        if self._state is READY:
            self._say(words.Unsubscribe(id, forget))
        elif not subscription.must_return:
            del self._subscriptions[id]
            return False
        return True

    def is_subscribed(self, id: int) -> bool:
        """Is it there, and not about to end?"""
        subscription = self._subscriptions.get(id)
        return subscription is not None and not subscription.is_leaving

    def subscribed(self, id: int) -> words.Subscribed | None:
        """What the broker said last when it took this subscription; None: nothing yet."""
        subscription = self._subscriptions.get(id)
        return None if subscription is None else subscription.subscribed

    def acknowledge(self, id: int, position: int) -> None:
        """The application is done with a message. Too late once the subscription has ended."""
        if self.is_subscribed(id):
            self._subscriptions[id].acknowledge(position)
            self._due.add(id)

    def consumed(self, id: int, count: int = 1) -> None:
        """The application has taken so many live messages or compounds: as many more may come."""
        subscription = self._subscriptions.get(id)
        if subscription is not None:
            subscription.consume(count)
            if subscription.is_due:
                self._due.add(id)

    def unacknowledged(self, id: int) -> int:
        """How many messages of a durable subscription the application has not acknowledged."""
        subscription = self._subscriptions.get(id)
        return 0 if subscription is None else subscription.unacknowledged

    # ---- requests

    def advertise(self, constraints: tuple[str, ...]) -> int:
        """Say what will be published; Done or Refused answers."""
        word = words.Advertise(next(self._ids), constraints)
        self._advertised[word.id] = word
        self._say(word)
        return word.id

    def unadvertise(self, id: int) -> bool:
        """Take it back. True: Done will come."""
        if self._advertised.pop(id, None) is None or self._state is not READY:
            return False
        self._ask(words.Unadvertise(id))
        return True

    def quench(self, on: bool) -> int:
        """Learn (or no more) what anybody wants; Done answers."""
        word = words.Quench(next(self._ids), on)
        self._quench = word if on else None
        if not on:
            self._wanted = None
        self._ask(word)
        return word.id

    def explain(self, attributes: str, subscription: str = "") -> int:
        """Ask where a message would go; Explained answers."""
        word = words.Explain(next(self._ids), attributes, subscription)
        self._ask(word)
        return word.id

    def show(self) -> int:
        """Ask for the network; Shown answers."""
        word = words.Show(next(self._ids))
        self._ask(word)
        return word.id

    def forget(self, broker: str) -> int:
        """Say that a broker is gone for good; Done or Refused answers."""
        word = words.Forget(next(self._ids), broker)
        self._ask(word)
        return word.id

    def withdraw(self, id: int) -> None:
        """Nobody waits for the answer to this request any more."""
        self._requests.pop(id, None)

    # ---- what the broker says

    def _greet(self, frame: Word | Letter, now_us: int, happenings: list[Happening]) -> None:
        """The first word decides."""
        match frame:
            case words.Welcome(version=words.VERSION):
                self._begin(frame, now_us, happenings)
            case words.Welcome(version=version):
                happenings.append(self._end(other_version(version), refused=True))
            case words.Bye(reason):
                happenings.append(self._end(reason, refused=True, is_said=True))
            case words.Ping(number):
                self._out.append(word_frame(words.Pong(number)))
            case _:
                name = type(frame).__name__
                happenings.append(self._end(f"the first word of a broker is Welcome, not {name}"))

    def _begin(self, welcome: words.Welcome, now_us: int, happenings: list[Happening]) -> None:
        """Say everything that the broker must know on a new connection."""
        if self._first is None:
            # The clock lets numbers grow over restarts of a client that keeps its name, also those
            # of best-effort messages, which no broker remembers.
            start = now_us if self.welcome is None else self._number
            self._number = max(self._number, welcome.published, start)
        self.welcome = welcome
        self._keepalive_us = welcome.keepalive_us
        self._ping_us = now_us + welcome.keepalive_us // 3
        self._state = READY
        happenings.append(welcome)
        if self._outbox.store(welcome.published):
            happenings.append(words.Published(self._outbox.settled))
        for advertise in self._advertised.values():
            self._say(advertise)
        for id, subscription in self._subscriptions.items():
            self._state_wish(id)
            if subscription.is_leaving:
                self._say(words.Unsubscribe(id, subscription.forget))
        if self._quench is not None and self._quench.id not in self._requests:
            self._say(self._quench)
        for request in self._requests.values():
            self._say(request)
        self._out.extend(self._outbox)

    def _take_letter(self, letter: Letter, happenings: list[Happening]) -> None:
        header = letter.header
        if type(header) is not Deliver:
            happenings.append(self._end(f"a frame {type(header).__name__} is not for clients"))
            return
        for id in header.subscriptions:
            subscription = self._subscriptions.get(id)
            if subscription is None or subscription.is_leaving:
                continue
            if subscription.admit(header):
                happenings.append(Arrival(id, letter))
            else:
                self._due.add(id)

    def _hear(self, word: Word, happenings: list[Happening]) -> None:
        match word:
            case words.Ping(number):
                self._say(words.Pong(number))
            case words.Pong():
                pass
            case words.Published(number):
                if self._outbox.store(number):
                    happenings.append(words.Published(self._outbox.settled))
            case words.Rejected(number):
                happenings.append(word)
                if self._outbox.reject(number):
                    happenings.append(words.Published(self._outbox.settled))
            case words.Occurred(id):
                if (subscription := self._subscriptions.get(id)) and not subscription.is_leaving:
                    subscription.admit_live()
                    happenings.append(word)
            case words.Wanted(text):
                self._wanted = parse_wanted(text) if self._quench is not None else None
            case words.Subscribed(id):
                if id in self._subscriptions:
                    self._subscriptions[id].subscribed = word
                    happenings.append(word)
            case words.Unsubscribed(id) | words.Ended(id):
                if self._end_wish(id):
                    happenings.append(word)
            case words.Refused(id):
                self._end_wish(id)
                self._advertised.pop(id, None)
                self._requests.pop(id, None)
                happenings.append(word)
            case words.Done(id) | words.Explained(id) | words.Shown(id):
                self._requests.pop(id, None)
                happenings.append(word)
            case words.Bye(reason):
                happenings.append(self._end(reason, is_said=True))
            case _:
                happenings.append(self._end(f"{type(word).__name__} is not for clients"))

    # ---- what we say

    def _say(self, word: Word) -> None:
        """Say it now; without a connection, `_begin` will."""
        if self._state is READY:
            self._out.append(word_frame(word))

    def _ask(self, word: Word) -> None:
        self._requests[word.id] = word  # type: ignore[union-attr]
        self._say(word)

    def _state_wish(self, id: int) -> None:
        """Ask for a subscription. While the broker has yet to forget one of its name, later: else,
        should both have to be said again, it would forget this one."""
        wish = self._subscriptions[id]
        wish.is_held = any(
            other.must_return and other.durable == wish.durable and other is not wish
            for other in self._subscriptions.values()
        )
        if not wish.is_held:
            self._say(wish.restated())

    def _end_wish(self, id: int) -> bool:
        """A subscription is gone; False: it was not there."""
        gone = self._subscriptions.pop(id, None)
        if gone is None:
            return False
        if gone.must_return:
            for held in [other for other, wish in self._subscriptions.items() if wish.is_held]:
                self._state_wish(held)
        return True

    def _pay(self, id: int) -> None:
        """Acknowledgements or credit of one subscription, if there are any."""
        subscription = self._subscriptions.get(id)
        if subscription is not None and subscription.is_due and not subscription.is_leaving:
            for word in subscription.take():
                self._say(word)

    def _end(self, reason: str, *, refused: bool = False, is_said: bool = False) -> Closing:
        """The connection must end; the broker hears why, unless it said so itself."""
        if not is_said:
            self._out.append(word_frame(words.Bye(reason)))
        self._state = ENDING
        return Closing(reason, refused)
