"""The subscriptions with sinks of a broker: made, changed and ended, stored, and delivered by workers.

    create ─▶ record, durable subscription ─▶ task: client ─▶ durable subscription ─▶ SinkWorker ─▶ sink
    restart ─▶ records ─▶ the same tasks

Each has a client in this process that acts for the identity which made it: its grants hold, and when they or
the identity are gone, it gets nothing. Its durable subscription drops the oldest events when it is full, so a
sink that is away blocks no publisher.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from palio.errors import InvalidValue, NetworkError, PalioError, RefusedByBroker, SubscriptionEnded
from palio.net.config.sinks import SinkSettings
from palio.net.monitoring.logs import log_bug, log_event
from palio.net.sinks.records import SinkRecord, SinkRecords
from palio.net.sinks.sender import SinkSender
from palio.net.sinks.source import ActingClient, NoteSource
from palio.net.sinks.worker import SinkWorker, WorkerCounts, WorkerSettings
from palio.protocol.cloudevents.subscriptions import (
    EventSubscription,
    EventSubscriptions,
    TooManySubscriptions,
)

T = TypeVar("T")
_CREDIT = 10
_AGAIN_S = 30.0
"""After what no retry of an event mends: a sink that does not agree, grants that are gone."""
_CLOSE_S = 1.0


class SinkService:
    """`connect(identity, name)` makes a client that acts for an identity."""

    def __init__(
        self,
        settings: SinkSettings,
        records: SinkRecords,
        connect: Callable[[str, str], ActingClient],
    ) -> None:
        self._settings, self._records, self._connect = settings, records, connect
        self._subscriptions = EventSubscriptions(
            settings.rules, lambda: secrets.token_hex(12), settings.identity_subscriptions_max
        )
        self._running: dict[str, tuple[SinkRecord, asyncio.Task[None]]] = {}
        self._sender = SinkSender(
            settings.rules,
            timeout_s=settings.timeout_us / 1e6,
            connections_max=settings.connections_max,
        )
        self._worker_settings = WorkerSettings(settings.origin, handshake=settings.asks)
        self._restoring: asyncio.Task[None] | None = None
        self._reading = asyncio.Lock()
        self._making = 0
        self._changes: set[asyncio.Task[Any]] = set()
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.counts = WorkerCounts()
        self.retired = 0

    def __len__(self) -> int:
        return len(self._running)

    def start(self) -> None:
        """Go on with what is stored; what the rules allow no more waits for another configuration."""
        restoring = self._restore(list(self._records.load()))
        self._restoring = asyncio.get_running_loop().create_task(restoring)

    async def _restore(self, records: list[SinkRecord]) -> None:
        for record in records:
            try:
                made = await self._read(record.document, record.id)
            except InvalidValue as error:
                log_event(logging.WARNING, "a subscription with a sink is not served",
                          subscription=record.id, identity=record.identity, reason=error)  # fmt: skip
            else:
                self._subscriptions.add(record.identity, made)
                self._run(record, made)

    async def _read(self, document: bytes, id: str = "") -> EventSubscription:
        """Reading holds no turn of the event loop, and no more than one thread."""
        async with self._reading:
            return await asyncio.to_thread(self._read_now, document, id)

    def _read_now(self, document: bytes, id: str) -> EventSubscription:
        made = self._subscriptions.read(document, id)
        str(made.predicate)  # a large one is printed here, and the text is kept
        return made

    @property
    def _tasks(self) -> list[asyncio.Task[Any]]:
        restoring = [self._restoring] if self._restoring is not None else []
        return [*restoring, *self._changes, *[task for _, task in self._running.values()]]

    def stop(self) -> None:
        """The broker stops: what is under way comes again."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        tasks = self._tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_S)
        await self._sender.aclose()

    # ---- what clients ask

    def query(self, identity: str) -> list[EventSubscription]:
        return self._subscriptions.query(identity)

    def retrieve(self, identity: str, id: str) -> EventSubscription:
        return self._subscriptions.retrieve(identity, id)

    async def create(self, identity: str, document: bytes) -> EventSubscription:
        """Raises InvalidValue for a document that is wrong, RefusedByBroker if the grants do not allow it."""
        return await self._alone(identity, self._create(identity, document))

    async def update(self, identity: str, id: str, document: bytes) -> EventSubscription:
        """Another predicate gets another queue: events that wait in the old one are dropped."""
        return await self._alone(identity, self._update(identity, id, document))

    async def delete(self, identity: str, id: str) -> None:
        await self._alone(identity, self._delete(identity, id))

    async def _alone(self, identity: str, change: Coroutine[Any, Any, T]) -> T:
        """One change of an identity after the other, each to its end: also if nobody waits for it."""
        lock = self._changing.setdefault(identity, asyncio.Lock())

        async def changed() -> T:
            if self._restoring is not None:
                await asyncio.wait([self._restoring])
            async with lock:
                return await change

        task = asyncio.get_running_loop().create_task(changed())
        self._changes.add(task)
        task.add_done_callback(self._changed)
        return await asyncio.shield(task)

    def _changed(self, task: asyncio.Task[Any]) -> None:
        self._changes.discard(task)
        if not task.cancelled():
            task.exception()  # of one for which nobody waits any more

    async def _create(self, identity: str, document: bytes) -> EventSubscription:
        self._subscriptions.check_room(identity)
        if len(self._running) + self._making >= self._settings.subscriptions_max:
            raise TooManySubscriptions("the broker has as many subscriptions with sinks as it may")
        self._making += 1
        try:
            made = await self._read(document)
            record = SinkRecord(identity, made.id, 1, made.stored())
            await self._make(record, made)
        finally:
            self._making -= 1
        self._subscriptions.add(identity, made)
        self._run(record, made)
        return made

    async def _update(self, identity: str, id: str, document: bytes) -> EventSubscription:
        before = self._subscriptions.retrieve(identity, id)
        made = await self._read(document, id)
        old, task = self._running[id]
        record = SinkRecord(identity, id, old.version, made.stored())
        if str(made.predicate) == str(before.predicate):
            await self._save(record)
        else:
            record = SinkRecord(identity, id, old.version + 1, made.stored())
            await self._make(record, made, old)
        self._subscriptions.add(identity, made)
        await _ended(task)
        self._run(record, made)
        if record.version != old.version:
            await self._forget(old)
        return made

    async def _delete(self, identity: str, id: str) -> None:
        self._subscriptions.delete(identity, id)
        record, task = self._running.pop(id)
        await _ended(task)
        self._records.delete(identity, id)
        await self._forget(record)

    # ---- its record, and its durable subscription

    async def _save(self, record: SinkRecord) -> None:
        """Records are committed with what the core changes: a durable subscription that comes and goes."""
        self._records.save(record)
        stream = self._connect(record.identity, record.durable)
        try:
            await stream.client.open()
            notes = stream.client.subscribe("FALSE", durable=f"{record.durable}-update", credit=1)
            await notes.ready()
            await notes.close(True)
        finally:
            await _closed(stream)

    async def _make(
        self, record: SinkRecord, made: EventSubscription, old: SinkRecord | None = None
    ) -> None:
        """Store the record and make the durable subscription: one commit has both."""
        stream = self._connect(record.identity, record.durable)
        self._records.save(record)
        try:
            await stream.client.open()
            notes = stream.client.subscribe(
                str(made.predicate), durable=record.durable, full="drop", credit=1
            )
            await notes.ready()
        except BaseException:
            if old is None:
                self._records.delete(record.identity, record.id)
            else:
                self._records.save(old)
            raise
        finally:
            await _closed(stream)

    async def _forget(self, record: SinkRecord) -> None:
        stream = self._connect(record.identity, record.durable)
        try:
            await stream.client.open()
            with suppress(RefusedByBroker):  # it is gone already
                await stream.client.forget_durable(record.durable)
        except RefusedByBroker as error:  # the identity is gone: [queues] orphans ends it
            log_event(
                logging.WARNING, "a queue of a sink stays", subscription=record.id, reason=error
            )
        finally:
            await _closed(stream)

    # ---- delivery

    def _run(self, record: SinkRecord, made: EventSubscription) -> None:
        task = asyncio.get_running_loop().create_task(self._deliver(record, made))
        self._running[record.id] = record, task

    async def _deliver(self, record: SinkRecord, made: EventSubscription) -> None:
        while True:
            try:
                reason = await self._deliver_until(record, made)
            except (SubscriptionEnded, RefusedByBroker, NetworkError) as error:
                reason = str(error)
            except PalioError as error:
                reason = str(error)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                log_bug("the delivery to a sink met a bug", error)
                reason = "a bug"
            if reason is None:
                return
            log_event(logging.WARNING, "a sink gets nothing for now", subscription=record.id,
                      identity=record.identity, reason=reason)  # fmt: skip
            await asyncio.sleep(_AGAIN_S)

    async def _deliver_until(self, record: SinkRecord, made: EventSubscription) -> str | None:
        """Why it ended; None: it ended for good."""
        stream = self._connect(record.identity, record.durable)
        try:
            await stream.client.open()
            notes = stream.client.subscribe(
                str(made.predicate), durable=record.durable, full="drop", credit=_CREDIT
            )
            await notes.ready()
            source = NoteSource(notes, stream.taken)
            worker = SinkWorker(
                made,
                source,
                self._sender,
                self._worker_settings,
                self._settings.policy,
                counts=self.counts,
            )
            reason = await worker.run()
            if worker.is_retired:
                self.retired += 1
                log_event(logging.WARNING, "a sink is retired, and gets nothing more",
                          subscription=record.id, identity=record.identity)  # fmt: skip
                return None
            return reason or "its durable subscription has ended"
        finally:
            await _closed(stream)


async def _closed(stream: ActingClient) -> None:
    with suppress(NetworkError, TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            await stream.client.close()


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
