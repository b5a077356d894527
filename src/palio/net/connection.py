"""A session on a socket: dials, writes, receives, and dials again when the connection is lost.

    command ─▶ session ─touch─▶ (end of the loop's turn) flush ─▶ one write
    data_received ─▶ session ─▶ inboxes, answers, acknowledgements of messages
    lost ─▶ dial at once, then after 0.05 s, and twice as long each time up to 5 s, with jitter;
            who was connected only shortly begins with the wait before, up to 1 s

Everything that waits here ends: with its answer, with an error after `max_wait`, or when the
client fails or is closed. A client fails for good only when the broker refuses it for that long.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, TypeVar

from palio.errors import ClientClosed, NetworkError, RefusedByBroker, SubscriptionEnded, Unreachable
from palio.net.acknowledgements import Acknowledgements
from palio.net.address import Address
from palio.net.inbox import Ended, Inbox
from palio.protocol import words
from palio.protocol.client.session import Arrival, Closing, Happening, Session
from palio.protocol.words import Word

log = logging.getLogger("palio.client")

Answer = TypeVar("Answer")

DIAL_S_MAX = 10.0
BACKOFF_S = 0.05
BACKOFF_S_MAX = 5.0
STEADY_S = 2.0
"""A connection that lives as long was a good one."""
UNSTEADY_S_MAX = 1.0
"""Two clients with one name take the connection from each other: not in a busy loop."""
LINGER_S = 1.0
WRITE_BYTES_HIGH = 1 << 20
UNFLUSHED_MAX = 512
"""Messages that may gather before whoever publishes must let the loop write."""


class _Wire(asyncio.Protocol):
    """One socket. What it says counts only while it is the connection's newest."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.transport: asyncio.Transport | None = None
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._connection.received(self, data)

    def pause_writing(self) -> None:
        self._connection.paused(self, True)

    def resume_writing(self) -> None:
        self._connection.paused(self, False)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.gone.done():
            self.gone.set_result(None)
        self._connection.lost(self, "the connection was lost" + (f": {error}" if error else ""))

    def leave(self) -> None:
        """Close it; a peer that takes nothing more is not waited for."""
        if self.transport is not None:
            self.transport.close()
            asyncio.get_running_loop().call_later(LINGER_S, self.transport.abort)


class Connection:
    """A session with a socket under it, most of the time."""

    def __init__(
        self, address: Address, session: Session, tls: ssl.SSLContext | None, max_wait: float
    ) -> None:
        self.address = address
        self.session = session
        self.max_wait = max_wait
        self._patience = None if max_wait == inf else max_wait
        self.inboxes: dict[int, Inbox[Any]] = {}
        self.acknowledgements = Acknowledgements(max_wait)
        self.failure: NetworkError | None = None
        self._tls = tls
        self._answers: dict[int, asyncio.Future[Word]] = {}
        self._room: list[asyncio.Future[None]] = []
        self._wire: _Wire | None = None
        self._is_paused = False
        self._unflushed = 0
        self._is_touched = False
        self._trouble = ""
        self._timer: asyncio.TimerHandle | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._ticker: asyncio.TimerHandle | None = None

    # ---- opening and closing

    async def open(self, wait: float) -> None:
        """Dial, for at most `wait` seconds when nobody answers."""
        self._loop = asyncio.get_running_loop()
        self._start = time.time() - self._loop.time()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        patience = self._loop.time() + wait
        delay = BACKOFF_S
        while True:
            try:
                await self._dial()
                break
            except Unreachable:
                if self._loop.time() + delay > patience:
                    raise
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(2 * delay, BACKOFF_S_MAX)
        self._keeper = self._loop.create_task(self._keep())
        self._tick()

    async def close(self, wait: float | None) -> None:
        """Wait until all durable messages are stored, for at most `wait` seconds; then leave."""
        unstored = 0
        try:
            if self.failure is None:
                unstored = await self._settle(wait)
        finally:
            self._fail(ClientClosed(f"this client of {self.address} is closed"))
        if self._wire is not None and self._wire.transport is not None:
            wire, self._wire = self._wire, None
            self.session.bye("the client is done")
            wire.transport.write(b"".join(self.session.take()))  # type: ignore[union-attr]
            self.session.closed()
            wire.leave()
            await asyncio.wait([wire.gone], timeout=LINGER_S + 1.0)
        if unstored:
            raise Unreachable(
                f"{unstored} durable messages were not acknowledged by {self.address} "
                f"before the client was closed; {self._state_of_things()}"
            )

    async def _settle(self, wait: float | None) -> int:
        """How many durable messages are still not stored after the wait."""
        try:
            async with asyncio.timeout(wait):
                while self.session.unstored:
                    await self._wait_for_change()
        except TimeoutError:
            pass
        except NetworkError:
            pass  # it failed meanwhile; those who publish have been told why
        return self.session.unstored

    def _fail(self, failure: NetworkError) -> None:
        """Nothing more will happen; everybody who waits is told."""
        if self.failure is None:
            self.failure = failure
        for handle in (self._timer, self._ticker):
            if handle is not None:
                handle.cancel()
        if self._keeper is not None and self._keeper is not asyncio.current_task():
            self._keeper.cancel()
        is_closed = isinstance(failure, ClientClosed)
        for inbox in self.inboxes.values():
            inbox.end(Ended() if is_closed else failure)
        for future in self._answers.values():
            if not future.done():
                future.set_exception(failure)
        self.acknowledgements.fail(failure)
        self._changed()

    # ---- dialling

    async def _dial(self) -> None:
        """One try: a connection with a Welcome, or an error that says what is there."""
        self._welcomed: asyncio.Future[None] = self._loop.create_future()
        wire = _Wire(self)
        host, port = self.address.host, self.address.port
        try:
            async with asyncio.timeout(DIAL_S_MAX):
                await self._loop.create_connection(lambda: wire, host, port, ssl=self._tls)
        except (OSError, TimeoutError) as error:
            raise Unreachable(_no_connection(self.address, error)) from None
        self._wire = wire
        self._is_paused = False
        self.session.opened(self._now_us())
        self._flush()
        self._schedule()
        try:
            await self._welcomed
        except BaseException:
            if self._wire is wire:  # cancelled
                self._drop(wire)
            raise

    async def _keep(self) -> None:
        """Dial again whenever the connection is lost."""
        delay = BACKOFF_S
        while True:
            since = self._loop.time()
            await self._lost
            self._lost = self._loop.create_future()
            lost_at = self._loop.time()
            is_steady = lost_at - since > STEADY_S
            delay = BACKOFF_S if is_steady else min(delay, UNSTEADY_S_MAX)
            await asyncio.sleep(delay * random.random())
            while True:
                delay = min(2 * delay, BACKOFF_S_MAX)
                try:
                    await self._dial()
                    log.info("connected to %s again", self.address)
                    break
                except Unreachable as error:
                    self._trouble = str(error)
                except RefusedByBroker as error:
                    self._trouble = str(error)
                    if self._loop.time() - lost_at > self.max_wait:
                        self._fail(error)
                        return
                await asyncio.sleep(delay / 2 * random.uniform(0.5, 1.0))

    # ---- what comes

    def received(self, wire: _Wire, data: bytes) -> None:
        if wire is not self._wire:
            return
        inboxes = self.inboxes
        for happening in self.session.receive(data, self._now_us()):
            if type(happening) is Arrival:
                inbox = inboxes.get(happening.id)
                if inbox is not None:
                    inbox.put(happening.letter)
            else:
                self._handle(happening)
        self.touch()

    def _handle(self, happening: Happening) -> None:
        match happening:
            case words.Welcome(broker=broker):
                self._trouble = ""
                log.debug("connected to broker %s at %s", broker, self.address)
                if not self._welcomed.done():
                    self._welcomed.set_result(None)
                self._schedule()
                self._changed()
            case words.Published(number):
                self.acknowledgements.store(number)
                self._changed()
            case words.Rejected(number, reason):
                self.acknowledgements.reject(number, reason)
            case words.Occurred(id, items):
                if id in self.inboxes:
                    self.inboxes[id].put(items)
            case words.Ended(id, reason):
                if id in self.inboxes:
                    self.inboxes.pop(id).end(SubscriptionEnded(f"the broker ended it: {reason}"))
                self._answer(id, words.Unsubscribed(id))
            case words.Refused(id, reason):
                error = RefusedByBroker(f"{self.address} says: {reason}")
                if id in self.inboxes:
                    self.inboxes.pop(id).end(error)
                self._answer(id, error)
            case Closing(reason, refused):
                if self._wire is not None:
                    self._refuse(self._wire, reason) if refused else self._end(self._wire, reason)
            case words.Subscribed(id):
                if id in self.inboxes:
                    self.inboxes[id].take()
            case words.Unsubscribed(id) | words.Done(id) | words.Explained(id) | words.Shown(id):
                self._answer(id, happening)

    def _answer(self, id: int, answer: Word | NetworkError) -> None:
        future = self._answers.pop(id, None)
        if future is None or future.done():
            return
        if isinstance(answer, NetworkError):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def lost(self, wire: _Wire, reason: str) -> None:
        """The socket is gone, or must go."""
        if wire is not self._wire:
            return
        self._wire = None
        self._is_paused = False
        self._trouble = reason
        for happening in self.session.closed():
            self._handle(happening)
        if not self._welcomed.done():
            self._welcomed.set_exception(
                Unreachable(
                    f"what listens at {self.address} ended the connection before it said "
                    f"Welcome ({reason}): it is no Palio broker, or it wants "
                    f"{'palio' if self.address.is_secure else 'palios'}://"
                )
            )
        elif not self._lost.done():
            log.warning("%s: %s; connecting again", self.address, reason)
            self._lost.set_result(None)
        self._changed()

    def _end(self, wire: _Wire, reason: str) -> None:
        self._flush()
        wire.leave()
        self.lost(wire, reason)

    def _refuse(self, wire: _Wire, reason: str) -> None:
        if not self._welcomed.done():
            self._welcomed.set_exception(
                RefusedByBroker(f"the broker at {self.address} refuses this client: {reason}")
            )
        self._drop(wire)

    def _drop(self, wire: _Wire) -> None:
        self._flush()
        self._wire = None
        wire.leave()
        self.session.closed()

    # ---- what goes

    def touch(self, messages: int = 1) -> None:
        """Something is to be written: at the end of this turn, with all that comes until then."""
        self._unflushed += messages
        if not self._is_touched:
            self._is_touched = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_touched = False
        self._unflushed = 0
        if self._wire is None or self._wire.transport is None:
            return
        data = self.session.take()
        if data:
            self._wire.transport.write(data[0] if len(data) == 1 else b"".join(data))

    def paused(self, wire: _Wire, is_paused: bool) -> None:
        if wire is self._wire:
            self._is_paused = is_paused
            self._changed()

    def has_room(self, durable: bool) -> bool:
        """A message may go now; otherwise `room` waits until it may."""
        if self._is_paused or self._unflushed > UNFLUSHED_MAX or self.failure is not None:
            return False
        return self.session.has_room if durable else self.session.is_ready

    async def room(self, durable: bool) -> None:
        """Wait until a message may go."""
        if self._unflushed > UNFLUSHED_MAX:
            await asyncio.sleep(0)
        if self.has_room(durable):
            return
        try:
            async with asyncio.timeout(self._patience):
                while not self.has_room(durable):
                    await self._wait_for_change()
        except TimeoutError:
            raise Unreachable(
                f"nothing could be sent to {self.address} for {self.max_wait:g} s; "
                f"{self._state_of_things()}"
            ) from None

    async def ask(self, id: int) -> Word:
        """Wait for the answer to a request that the session has."""
        self.touch()
        future: asyncio.Future[Word] = self._loop.create_future()
        self._answers[id] = future
        try:
            return await self.in_time(future)
        finally:
            self._answers.pop(id, None)
            self.session.withdraw(id)

    async def in_time(self, answer: Awaitable[Answer]) -> Answer:
        """Wait for an answer of the broker, for `max_wait` at most."""
        try:
            async with asyncio.timeout(self._patience):
                return await answer
        except TimeoutError:
            raise Unreachable(
                f"{self.address} did not answer within {self.max_wait:g} s; "
                f"{self._state_of_things()}"
            ) from None

    def check(self) -> None:
        """May this be used, here and now?"""
        if self.failure is not None:
            raise self.failure
        if self._keeper is None:
            raise ClientClosed("the client is not open: use `async with palio.connect(...)`")
        if asyncio.get_running_loop() is not self._loop:
            raise ClientClosed(
                "the client belongs to another event loop; open one in each, or use palio.blocking"
            )

    # ---- waiting and time

    def call_from_anywhere(self, function: Callable[[], None]) -> None:
        """From a destructor, in whatever thread it runs."""
        if self.failure is None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _changed(self) -> None:
        room, self._room = self._room, []
        for future in room:
            if not future.done():
                future.set_result(None)

    async def _wait_for_change(self) -> None:
        if self.failure is not None:
            raise self.failure
        future: asyncio.Future[None] = self._loop.create_future()
        self._room.append(future)
        await future

    def _now_us(self) -> int:
        """The time when this client was opened, and what has passed since by a steady clock."""
        return int((self._start + self._loop.time()) * 1e6)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline_us = self.session.deadline_us
        if deadline_us is not None:
            at = deadline_us / 1e6 - self._start
            self._timer = self._loop.call_at(at, self._wake)

    def _wake(self) -> None:
        for happening in self.session.wake(self._now_us()):
            self._handle(happening)
        self.touch()
        self._schedule()

    def _tick(self) -> None:
        """Waits that took too long end here, so that a publish needs no timer of its own."""
        self.acknowledgements.expire(self._loop.time(), self._state_of_things())
        self._ticker = self._loop.call_later(min(0.5, self.max_wait / 2), self._tick)

    def _state_of_things(self) -> str:
        if self.session.is_ready:
            return "the broker is connected, and does not keep up or is full"
        return f"there is no connection ({self._trouble or 'none was made'})"


def _no_connection(address: Address, error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return (
                f"the certificate of {address} is not trusted: {error.verify_message}; "
                "give the file of its authority as tls=..., and use the name that it is for"
            )
        case ssl.SSLError():
            return f"no TLS with {address}: {error.reason or error}; is it a plain palio:// port?"
        case TimeoutError():
            return f"no broker answers at {address} within {DIAL_S_MAX:g} s; is the host right?"
        case _:
            return (
                f"no broker at {address} ({error.strerror or error}); "  # type: ignore[attr-defined]
                "start one with `palio broker --config broker.toml`"
            )
