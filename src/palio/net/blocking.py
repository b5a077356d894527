"""The client without asyncio: the same names, with a loop of its own in a thread behind it.

    with palio.blocking.connect("palio://127.0.0.1:7400") as client:
        client.publish({"price": 450}, body=b"...")
        for note in client.subscribe("price < 500", durable="desk-7", timeout=10):
            note.ack()

Any number of threads may use one client, and one subscription: each note goes to one of them.
Every call waits for the asynchronous client (client.py); an interrupt (Ctrl-C) ends the wait, and
what was waited for is cancelled there. Notes are fetched in batches, so that a thread is changed
once for many of them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from palio.errors import ClientClosed, NetworkError, SubscriptionEnded
from palio.model.advertisement import Advertisement
from palio.model.predicate import Constraint, Predicate
from palio.net import client as asynchronous
from palio.net.address import Trust
from palio.net.client import CREDIT, Attributes, Outgoing
from palio.net.inbox import Ended
from palio.net.notes import Received
from palio.net.subscription import Note as AsyncNote
from palio.net.subscription import Subscription as AsyncSubscription
from palio.net.subscription import Watch as AsyncWatch
from palio.protocol.client.session import Settings
from palio.protocol.words import Explained, Place, Subscribed
from palio.routing.patterns.pattern import Pattern

__all__ = ["Client", "Note", "Subscription", "Watch", "connect"]

log = logging.getLogger("palio.client")

Result = TypeVar("Result")
Out = TypeVar("Out")
FETCH_MAX = 1000


def connect(
    url: str = "palio://127.0.0.1:7400",
    *,
    token: str | None = None,
    name: str | None = None,
    tls: Trust = None,
    certificate: tuple[str, str] | None = None,
    wait: float = 0.0,
    max_wait: float = 60.0,
    settings: Settings | None = None,
    first: int | None = None,
) -> Client:
    """An open client of the broker at `url`; the arguments are those of `palio.connect`."""
    client = asynchronous.connect(
        url,
        token=token,
        name=name,
        tls=tls,
        certificate=certificate,
        wait=wait,
        max_wait=max_wait,
        settings=settings,
        first=first,
    )
    loop = _Loop()
    try:
        loop.call(client.open())
    except BaseException:
        loop.stop()
        raise
    return Client(client, loop)


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="palio-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run it there, and wait for it."""
        if not self.is_alive:
            work.close()
            raise ClientClosed("this client is closed")
        if threading.current_thread() is self._thread:
            work.close()
            raise ClientClosed("the blocking client cannot be used inside its own event loop")
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # after an interrupt; nothing happens when it is done
            raise

    def soon(self, function: Callable[[], object]) -> None:
        """Run it there, and do not wait."""
        if not self.is_alive:
            raise ClientClosed("this client is closed")
        self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        if self.is_alive:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed: it is about twice as fast."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class Note(Received):
    """A message that came to a subscription."""

    __slots__ = ("_loop", "_note")

    def __init__(self, note: AsyncNote, loop: _Loop) -> None:
        super().__init__(note._header, note._text, note.body)
        self._note = note
        self._loop = loop

    def ack(self) -> None:
        """Say that it is dealt with: a durable subscription never sends it again."""
        if self.position:
            self._note.check()
            self._loop.soon(partial(_acknowledge, self._note))


def _acknowledge(note: AsyncNote) -> None:
    try:
        note.ack_soon()
    except NetworkError as error:  # it ended in the moment since the check
        log.warning("note %d of %s is not acknowledged: %s", note.number, note.publisher, error)


class _Incoming(Generic[Out]):
    """An iterator over what comes, for threads."""

    def __init__(
        self, source: AsyncSubscription | AsyncWatch, loop: _Loop, timeout: float | None
    ) -> None:
        self._source = source
        self._loop = loop
        self._timeout = timeout
        self._fetched: deque[Any] = deque()
        self._turn = threading.Lock()
        """Of the one thread that fetches."""

    def _make(self, item: Any) -> Out:
        raise NotImplementedError

    def next(self, timeout: float | None = None) -> Out:
        """The next one. Raises TimeoutError when none comes in time, SubscriptionEnded at the end."""
        try:
            return self._take(timeout)
        except Ended:
            raise SubscriptionEnded(f"{self!r} is closed") from None

    def __iter__(self) -> Iterator[Out]:
        return self

    def __next__(self) -> Out:
        """The next one; the iteration ends after `timeout` seconds of silence, if there is one."""
        try:
            return self._take(self._timeout)
        except (Ended, TimeoutError):
            raise StopIteration from None

    def _take(self, timeout: float | None) -> Out:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return self._make(self._fetched.popleft())
            except IndexError:
                pass
            if not self._turn.acquire(timeout=-1 if deadline is None else _left(deadline)):
                raise TimeoutError(f"nothing came within {timeout:g} s")
            try:
                if not self._fetched:
                    self._fetch(timeout, deadline)
            finally:
                self._turn.release()

    def _fetch(self, timeout: float | None, deadline: float | None) -> None:
        left = None if deadline is None else _left(deadline)
        try:
            has_ended = self._loop.call(self._fetch_there(left))
        except TimeoutError:
            raise TimeoutError(f"nothing came within {timeout:g} s") from None
        if has_ended:
            raise Ended

    async def _fetch_there(self, timeout: float | None) -> bool:
        # What was taken goes into the deque here, in one step: whoever waits may be interrupted.
        async with asyncio.timeout(timeout):
            taken = await self._source.many(FETCH_MAX)
            self._fetched.extend(taken)
        return not taken

    def close(self, forget: bool = False) -> None:
        """End it. A durable one goes on at the broker and keeps what comes, unless `forget`."""
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


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


class Subscription(_Incoming[Note]):
    """Notes of the messages that a predicate selects."""

    _source: AsyncSubscription

    def _make(self, item: AsyncNote) -> Note:
        return Note(item, self._loop)

    @property
    def subscribed(self) -> Subscribed | None:
        """What the broker said last when it took it: where its queue begins and ends, its version."""
        return self._source.subscribed

    def acknowledge(self, positions: Iterable[int]) -> None:
        """Say of many notes at once that they are dealt with."""
        self._loop.call(self._source.acknowledge(positions))


class Watch(_Incoming[list[Note]]):
    """Compounds of a pattern: the messages that together are what it waits for."""

    def _make(self, item: list[AsyncNote]) -> list[Note]:
        return [Note(note, self._loop) for note in item]


class Client:
    """A client of one broker. `connect` makes it; what its methods do is told in client.py."""

    def __init__(self, client: asynchronous.Client, loop: _Loop) -> None:
        self._client = client
        self._loop = loop

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def broker(self) -> str:
        return self._client.broker

    @property
    def identity(self) -> str:
        return self._client.identity

    @property
    def is_connected(self) -> bool:
        return self._client.is_connected

    @property
    def unacknowledged(self) -> int:
        return self._client.unacknowledged

    @property
    def rejected(self) -> int:
        return self._client.rejected

    @property
    def quenched(self) -> int:
        return self._client.quenched

    def close(self) -> None:
        """Wait until everything durable is stored (for `max_wait` at most), then leave."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._loop.is_alive:
            return
        try:
            self._loop.call(self._client.__aexit__(kind, error, trace))
        finally:
            self._loop.stop()

    def publish(
        self, attributes: Attributes, body: bytes = b"", *, durable: bool = True
    ) -> int | None:
        """Publish a message. Gives its number; None: nobody wants it (see `quench`)."""
        return self._loop.call(self._client.publish(attributes, body, durable=durable))

    def publish_many(self, messages: Iterable[Outgoing], *, durable: bool = True) -> int:
        """Publish messages, or pairs of message and body, with one wait at the end.

        The iterable is read in the thread of the loop.
        """
        return self._loop.call(self._client.publish_many(messages, durable=durable))

    def quench(self, on: bool = True) -> None:
        """From now on, do not send what nobody wants (or send everything again)."""
        self._loop.call(self._client.quench(on))

    def subscribe(
        self,
        predicate: str | Predicate,
        *,
        durable: str | None = None,
        since: datetime | int | None = None,
        group: str | None = None,
        credit: int = CREDIT,
        full: str | None = None,
        timeout: float | None = None,
    ) -> Subscription:
        """Notes of the messages that a predicate selects; the broker has taken it on return.

        With a timeout, iterating ends after so many seconds of silence.
        """

        async def begin() -> AsyncSubscription:
            return await self._client.subscribe(
                predicate, durable=durable, since=since, group=group, credit=credit, full=full
            ).__aenter__()

        return Subscription(self._loop.call(begin()), self._loop, timeout)

    def watch(
        self, pattern: str | Pattern, *, credit: int = CREDIT, timeout: float | None = None
    ) -> Watch:
        """Compounds of a pattern: lists of notes, which have no body."""

        async def begin() -> AsyncWatch:
            return await self._client.watch(pattern, credit=credit).__aenter__()

        return Watch(self._loop.call(begin()), self._loop, timeout)

    def advertise(self, *constraints: str | Constraint | Advertisement) -> int:
        """Say what this client publishes; gives an id for `unadvertise`."""
        return self._loop.call(self._client.advertise(*constraints))

    def unadvertise(self, id: int) -> None:
        """Take an advertisement back."""
        self._loop.call(self._client.unadvertise(id))

    def explain(self, message: Attributes, subscription: str = "") -> Explained:
        """Where the message would go if it were published here, hop by hop, and why."""
        return self._loop.call(self._client.explain(message, subscription))

    def topology(self) -> tuple[Place, ...]:
        """The network as the broker sees it."""
        return self._loop.call(self._client.topology())

    def forget(self, broker: str) -> None:
        """Say that a broker which is away will never come back. For operators."""
        self._loop.call(self._client.forget(broker))

    def __repr__(self) -> str:
        return repr(self._client)
