"""Subscriptions, watches and notes for threads.

Items are fetched from the event loop in batches, so that threads switch once for many of them.
One thread fetches at a time; the others wait for it, and take from what it fetched.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from palio.errors import NetworkError, SubscriptionEnded
from palio.net.blocking.loop_thread import LoopThread
from palio.net.client.inbox import InboxClosed
from palio.net.client.notes import ReceivedMessage
from palio.net.client.subscription import Note, PatternSubscription, Subscription, check_rejection
from palio.net.client.times import Duration, microseconds_of
from palio.protocol.wire.control import Subscribed
from palio.protocol.wire.message_headers import Headers

log = logging.getLogger("palio.client")

Out = TypeVar("Out")
FETCH_MAX = 1000


class BlockingNote(ReceivedMessage):
    """A message that arrived for a subscription."""

    __slots__ = ("_loop", "_note")

    def __init__(self, note: Note, loop: LoopThread) -> None:
        super().__init__(note._header, note._text, note._payload)
        self._note = note
        self._loop = loop

    def ack(self) -> None:
        """Acknowledge the message as processed: a durable subscription never sends it again."""
        if self.position:
            self._note.check()
            self._loop.call_soon(partial(_acknowledge, self._note))

    def nack(self, delay: Duration = 0.0) -> None:
        """Give the message back: a durable subscription sends it again, not before the delay is over."""
        microseconds_of("delay", delay)
        if self.position:
            self._note.check()
            self._loop.call_soon(partial(_give_back, self._note, delay))

    def reply(
        self,
        body: bytes = b"",
        *,
        attributes: Mapping[str, object] | None = None,
        headers: Headers | None = None,
        durable: bool = False,
    ) -> None:
        """Answer a request; raises InvalidValue if the message asks for no reply."""
        self._loop.call(
            self._note.reply(body, attributes=attributes, headers=headers, durable=durable)
        )

    def reject(self, reason: str = "") -> None:
        """Say that the message will never be processed: it is published as a dead letter."""
        check_rejection(reason)
        if self.position:
            self._note.check()
            self._loop.call_soon(partial(_reject, self._note, reason))


def _reject(note: Note, reason: str) -> None:
    try:
        note.reject_soon(reason)
    except NetworkError as error:  # the subscription ended after the check
        log.warning("note %d of %s is not rejected: %s", note.number, note.publisher, error)


def _give_back(note: Note, delay: Duration) -> None:
    try:
        note.nack_soon(delay)
    except NetworkError as error:  # the subscription ended after the check
        log.warning("note %d of %s is not given back: %s", note.number, note.publisher, error)


def _acknowledge(note: Note) -> None:
    try:
        note.ack_soon()
    except NetworkError as error:  # the subscription ended after the check
        log.warning("note %d of %s is not acknowledged: %s", note.number, note.publisher, error)


class _BlockingIterator(Generic[Out]):
    """What subscriptions and watches share."""

    def __init__(
        self, source: Subscription | PatternSubscription, loop: LoopThread, timeout: float | None
    ) -> None:
        self._source = source
        self._loop = loop
        self._timeout = timeout
        self._fetched: deque[Any] = deque()
        self._fetching = threading.Lock()

    def _make(self, item: Any) -> Out:
        raise NotImplementedError

    def next(self, timeout: float | None = None) -> Out:
        """The next one. Raises TimeoutError if none comes in time, SubscriptionEnded at the end."""
        try:
            return self._take(timeout)
        except InboxClosed:
            raise SubscriptionEnded(f"{self!r} is closed") from None

    def __iter__(self) -> Iterator[Out]:
        return self

    def __next__(self) -> Out:
        """The next one. With a timeout, the iteration ends after that many seconds of silence."""
        try:
            return self._take(self._timeout)
        except (InboxClosed, TimeoutError):
            raise StopIteration from None

    def _take(self, timeout: float | None) -> Out:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return self._make(self._fetched.popleft())
            except IndexError:
                pass
            wait = -1 if deadline is None else _seconds_left(deadline)
            if not self._fetching.acquire(timeout=wait):
                raise TimeoutError(f"nothing came within {timeout:g} s")
            try:
                if not self._fetched:
                    self._fetch(timeout, deadline)
            finally:
                self._fetching.release()

    def _fetch(self, timeout: float | None, deadline: float | None) -> None:
        wait = None if deadline is None else _seconds_left(deadline)
        try:
            has_ended = self._loop.call(self._fetch_in_loop(wait))
        except TimeoutError:
            raise TimeoutError(f"nothing came within {timeout:g} s") from None
        if has_ended:
            raise InboxClosed

    async def _fetch_in_loop(self, timeout: float | None) -> bool:
        """Returns whether the subscription has ended."""
        # Items go into the deque here, in the step that takes them from the inbox: the thread that
        # waits may be interrupted.
        async with asyncio.timeout(timeout):
            items = await self._source.many(FETCH_MAX)
            self._fetched.extend(items)
        return not items

    def close(self, forget: bool = False) -> None:
        """End it. A durable one continues at the broker and keeps messages, unless `forget`."""
        self._loop.call(self._source.close(forget))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._source)


def _seconds_left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


class BlockingSubscription(_BlockingIterator[BlockingNote]):
    """Notes of the messages that a predicate selects."""

    _source: Subscription

    def _make(self, item: Note) -> BlockingNote:
        return BlockingNote(item, self._loop)

    @property
    def subscribed(self) -> Subscribed | None:
        """The broker's last confirmation: where the queue begins and ends, and its version."""
        return self._source.subscribed

    @property
    def took_over(self) -> bool:
        """Whether it has taken its durable subscription over from another client."""
        return self._source.took_over

    def acknowledge(self, positions: Iterable[int]) -> None:
        """Acknowledge many notes at once, by their positions."""
        self._loop.call(self._source.acknowledge(positions))


class BlockingPatternSubscription(_BlockingIterator[list[BlockingNote]]):
    """Compounds of a pattern: the messages that match it together."""

    def _make(self, item: list[Note]) -> list[BlockingNote]:
        return [BlockingNote(note, self._loop) for note in item]
