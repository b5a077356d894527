"""One end of a reliable link over datagrams that are lost, doubled and reordered.

    send(packet) ─┐                                   ┌─▶ Transmit(frame)    to the other end
    receive(frame)├──▶ ReliableLink ──▶ [effect, effect, ...] ├─▶ PacketDelivered(packet)  to the router
    wake(now)    ─┘   deadline_us: when to wake it    └─▶ SessionOpened, SessionClosed     the session

    outbox   [ 7 8 9 | 10 11 ]     7 to 9 are in flight: at most `window`; 10 and 11 wait
               ^ first not acknowledged
    arrived  { 12, 13 }            came early; at most `window`; `expected` (11) is missing

Each end has an incarnation: a number that only grows, new after a restart. A *session* is a pair
of incarnations that both ends know; numbers begin at 1 in each. What always holds: within a session
everything arrives in order and exactly once; a packet of one session never arrives in another, so
across sessions everything arrives at most once. When a session ends, what was not acknowledged is
dropped: who needs it says it again when the next one opens (a router by a `Restate`).

An outbox that is full means that the other end is gone for long: the session ends, so memory is
bounded. Until the next one opens, `send` drops packets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Generic, TypeAlias, TypeVar

import msgspec

from palio.errors import PalioError

T = TypeVar("T")


class LinkFrame(msgspec.Struct, Generic[T], frozen=True):
    """What travels between two ends. Without a packet it is a greeting or an acknowledgement."""

    sender: int
    """The incarnation of the end that sends it."""
    receiver: int
    """The incarnation that the sender believes the other end to have; 0: it knows none."""
    acknowledged: int
    """All packets up to this number have arrived at the sender."""
    number: int = 0
    """Of the packet within the session, from 1; 0: there is none."""
    asks: bool = False
    """The sender wants an answer."""
    packet: T | None = None


class Transmit(msgspec.Struct, Generic[T], frozen=True):
    """This frame to the other end; it may be lost."""

    frame: LinkFrame[T]


class PacketDelivered(msgspec.Struct, Generic[T], frozen=True):
    """The next packet of the other end."""

    packet: T


class SessionOpened(msgspec.Struct, frozen=True):
    """A session begins: whatever was said in an earlier one must be said again."""


class SessionClosed(msgspec.Struct, frozen=True):
    """The session is over: packets that were not acknowledged are dropped."""


LinkEffect: TypeAlias = Transmit[T] | PacketDelivered[T] | SessionOpened | SessionClosed


class LinkLimits(msgspec.Struct, frozen=True):
    """How much an end holds, and how long it waits."""

    window: int = 64
    """The most packets in flight, and the most that are kept because they came early."""
    outbox: int = 4096
    """The most packets that wait or are in flight; one more ends the session."""
    retry_us_min: int = 20_000
    """How long an end waits for an answer; twice as long each time it gets none, up to the most."""
    retry_us_max: int = 320_000

    def __post_init__(self) -> None:
        if not (1 <= self.window <= self.outbox and 1 <= self.retry_us_min <= self.retry_us_max):
            raise PalioError(
                f"limits of a link: a window of at least 1 that fits the outbox, and retries from "
                f"the least to the most; got {self}"
            )


class ReliableLink(Generic[T]):
    """One end. `incarnation` is larger than any that this end had before: the time will do."""

    def __init__(self, incarnation: int, limits: LinkLimits | None = None) -> None:
        if incarnation < 1:
            raise PalioError(f"the incarnation of a link is a positive number, not {incarnation}")
        self.limits = limits or LinkLimits()
        self.mine = incarnation
        self.theirs = 0
        self.is_open = False
        self.deadline_us: int | None = 0
        """When to call `wake`; None: there is nothing to wait for."""
        self._begin()

    def _begin(self) -> None:
        """The numbers of a new session."""
        self._outbox: deque[T] = deque()
        self._first = 1  # the number of outbox[0]
        self._in_flight = 0
        self._expected = 1
        self._arrived: dict[int, T] = {}
        self._retry_us = self.limits.retry_us_min

    @property
    def waiting(self) -> int:
        """How many packets have not been acknowledged."""
        return len(self._outbox)

    @property
    def early(self) -> int:
        """How many packets are kept until the one before them arrives."""
        return len(self._arrived)

    def send(self, packet: T, now_us: int) -> list[LinkEffect[T]]:
        """Take a packet for the other end; without a session it is dropped."""
        if not self.is_open:
            return []
        if len(self._outbox) >= self.limits.outbox:
            self.mine = max(self.mine + 1, now_us)
            return [self._close(now_us), Transmit(self._greeting(now_us))]
        self._outbox.append(packet)
        if self._in_flight >= self.limits.window:
            return []
        if self.deadline_us is None:
            self.deadline_us = now_us + self._retry_us
        self._in_flight += 1
        return [Transmit(self._frame(self._first + len(self._outbox) - 1, packet))]

    def receive(self, frame: LinkFrame[T], now_us: int) -> list[LinkEffect[T]]:
        """Take a frame of the other end, however old it is."""
        if frame.sender < self.theirs:  # from before a restart
            return []
        effects: list[LinkEffect[T]] = []
        if frame.sender > self.theirs:
            was_open = self.is_open
            self.theirs = frame.sender
            closed = self._close(now_us)
            if was_open:
                effects.append(closed)
            if frame.receiver != self.mine:
                effects.append(Transmit(self._greeting(now_us)))
                return effects
        if frame.receiver == self.mine:
            if not self.is_open:
                self.is_open = True
                self.deadline_us = None
                self._retry_us = self.limits.retry_us_min
                effects.append(SessionOpened())
            effects.extend(map(Transmit, self._settle(frame.acknowledged, now_us)))
            if frame.packet is not None:
                effects.extend(map(PacketDelivered, self._accept(frame.number, frame.packet)))
        if frame.asks:
            effects.append(Transmit(self._frame()))
        return effects

    def wake(self, now_us: int) -> list[LinkEffect[T]]:
        """The deadline is here: say again what was not answered. Earlier, nothing happens."""
        if self.deadline_us is None or now_us < self.deadline_us:
            return []
        if not self.is_open:
            return [Transmit(self._greeting(now_us))]
        self._wait(now_us)
        in_flight = islice(self._outbox, self._in_flight)
        return [Transmit(self._frame(n, p)) for n, p in enumerate(in_flight, self._first)]

    def _close(self, now_us: int) -> SessionClosed:
        self.is_open = False
        self.deadline_us = now_us
        self._begin()
        return SessionClosed()

    def _wait(self, now_us: int) -> None:
        """Set the deadline, twice as far as the last time."""
        self.deadline_us = now_us + self._retry_us
        self._retry_us = min(2 * self._retry_us, self.limits.retry_us_max)

    def _greeting(self, now_us: int) -> LinkFrame[T]:
        self._wait(now_us)
        return LinkFrame(self.mine, self.theirs, 0, 0, True)

    def _frame(self, number: int = 0, packet: T | None = None) -> LinkFrame[T]:
        return LinkFrame(self.mine, self.theirs, self._expected - 1, number, number > 0, packet)

    def _settle(self, acknowledged: int, now_us: int) -> Iterator[LinkFrame[T]]:
        """Forget what has arrived; frames of the packets that waited for it."""
        count = acknowledged - self._first + 1
        if count <= 0:
            return
        if count > self._in_flight:
            raise PalioError(
                f"a frame acknowledges packet {acknowledged}, but {self._first + self._in_flight - 1}"
                " is the last that was sent: the other end is broken; begin a new link"
            )
        for _ in range(count):
            self._outbox.popleft()
        self._first += count
        self._in_flight -= count
        self._retry_us = self.limits.retry_us_min
        at = self._in_flight
        self._in_flight = min(self.limits.window, len(self._outbox))
        self.deadline_us = now_us + self._retry_us if self._in_flight else None
        for n, packet in enumerate(islice(self._outbox, at, self._in_flight), self._first + at):
            yield self._frame(n, packet)

    def _accept(self, number: int, packet: T) -> Iterator[T]:
        """The packets that are next in order, now that this one is here."""
        if not self._expected <= number < self._expected + self.limits.window:
            return
        self._arrived[number] = packet
        while self._expected in self._arrived:
            yield self._arrived.pop(self._expected)
            self._expected += 1
