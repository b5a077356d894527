"""The core of a broker. Its host has the sockets, the disk and the clock.

    calls of the host: open, receive, close, wake, ... (the section `input`) ─▶ Broker ─▶ take() ─▶ Effects

    bytes ─▶ frames ─┬─ message batches ─▶ data_path.py ─┬─▶ local.py       clients here
                     │                                   ├─▶ policies/      neighbours
                     │                                   └─▶ durability/    queues, streams ─▶ carrying.py
                     └─ control messages ┬─▶ clients.py ────────────┐
                                         └─▶ neighbour_messages.py ─┴─▶ interests.py

The broker only dispatches; assembly.py makes the parts and gives each the few others that it uses.

What always holds: nothing that depends on the store leaves before the commit that holds it; output
depends only on the calls, their arguments and the store, so the simulator can replay a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from palio.errors import InvalidFile, PalioError
from palio.protocol.broker import scheduler as turns
from palio.protocol.broker.access import Access
from palio.protocol.broker.assembly import assemble
from palio.protocol.broker.durable import Consumer
from palio.protocol.broker.effects import BackgroundJob, Effects
from palio.protocol.broker.failure import BrokerFailed
from palio.protocol.broker.handshakes import Handshakes
from palio.protocol.broker.link_guard import LinkGuard
from palio.protocol.broker.links import ANYWHERE, Link, LinkOrigin, close_code, wrong_frame
from palio.protocol.broker.listener_acts import ListenerActs
from palio.protocol.broker.long_lookups import LongLookups
from palio.protocol.broker.router_news import send_news
from palio.protocol.broker.scheduler import Item, Slices, TurnScheduler, guarded
from palio.protocol.broker.schemas import Schemas
from palio.protocol.broker.settings import Settings
from palio.protocol.broker.snapshot import Snapshot
from palio.protocol.broker.subscriptions import end_overflowed
from palio.protocol.broker.table_upkeep import TableUpkeep
from palio.protocol.durability.storage import Store
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.control import (
    Acknowledge,
    Bye,
    CarryAck,
    CloseCode,
    ControlMessage,
    Nack,
    Ping,
    Pong,
    Reject,
)
from palio.protocol.wire.frames import BrokenFrame, MessageFrame
from palio.protocol.wire.headers import CarryHeader


class Broker:
    """`random(n)` returns n unpredictable bytes. With `defers` the host runs jobs and takes turns until
    nothing waits (scheduler.py); without, every call does all at once. `stopwatch` gives seconds, to end turns
    that take long. Calls raise BrokerFailed when the broker cannot go on; then it must not be called again."""

    def __init__(
        self, settings: Settings, store: Store, now_us: int, random: Callable[[int], bytes], *,
        defers: bool = False, stopwatch: Callable[[], float] | None = None,
    ) -> None:  # fmt: skip
        self.settings, self.now_us = settings, now_us
        self.parts = parts = assemble(settings, store, now_us, random, defers)
        """Others than tests and the simulator must not read it."""
        self.listener_acts = ListenerActs(parts)
        self._output, self._links = parts.output, parts.links
        self._handshakes = Handshakes(
            settings, parts.clients, parts.neighbours, parts.data_path, parts.messages, self._output, random,
        )  # fmt: skip

        def read(link: Link, items: Iterator[Item]) -> Iterator[Item]:
            yield from guarded(link, items, self._fail)
            self._guard.arrived(link, 0, self.now_us)

        self._scheduler = TurnScheduler(self._process, read, stopwatch, defers=defers)
        flush = parts.data_path.flush
        self._lookups = LongLookups(parts.table, parts.data_path.schemas, flush, defers=defers)
        self._guard = LinkGuard(
            self._links, self._output, self._scheduler.backlogs, settings.connections,
            settings.keepalive_us,
        )  # fmt: skip
        self._commit: int | None = None  # under way
        self._upkeep = TableUpkeep(self.parts.table, defers=defers)
        self.parts.data_path.now_us = now_us
        self.parts.subscriptions.home.restore(now_us)
        self.parts.operations.follow(settings.access, now_us)
        self.parts.view.last_values.restore()
        self.parts.neighbours.restore()
        self.parts.view.follow(now_us)
        self._upkeep.settle()

    # ---- input

    def open(
        self, link: int, now_us: int, origin: LinkOrigin = ANYWHERE, *, dials: str | None = None
    ) -> None:
        """A connection is open. `dials`: the neighbour that this broker dialled."""
        self._at(now_us)
        made = Link(link, now_us, origin)
        self._links.add(made)
        if dials is not None:
            self._handshakes.dial(made, dials)
        else:
            self._guard.opened(made, now_us)

    def secure(self, link: int, size: int, certificate: str, now_us: int) -> None:
        """So many bytes of a TLS handshake came; when it is complete, with the verified name in it."""
        self._at(now_us)
        if (found := self._links.open.get(link)) is not None:
            found.heard_us = now_us
            found.origin = found.origin._replace(certificate=certificate)
            self._guard.arrived(found, size, now_us)
            self._settle()

    def receive(self, link: int, data: bytes, now_us: int) -> None:
        """Process bytes from a connection."""
        self._at(now_us)
        found = self._links.open.get(link)
        if found is None:
            return
        found.heard_us = now_us
        scheduler, lookups = self._scheduler, self._lookups
        expressions, schemas = self.parts.table.expressions, self.parts.data_path.schemas
        if link in scheduler.backlogs:
            scheduler.arrived(link, data)
            self._guard.arrived(found, len(data), now_us)
            return
        items = found.reader.feed(data)
        try:
            for item in items:
                kind = type(item)
                if kind in turns.COSTS or (
                    (expressions.has_any or schemas.has_any) and lookups.is_long(item, scheduler)
                ):
                    scheduler.take(found, item)
                elif kind is MessageBatch or kind is MessageFrame:
                    self._take_messages(found, item)  # type: ignore[arg-type]
                elif scheduler.budget > 0:
                    scheduler.budget -= turns.SMALL_COST
                    self._process(found, item)
                else:
                    scheduler.take(found, item)
                if link not in self._links.open:
                    return
                if link in scheduler.backlogs:
                    scheduler.wait(link, items, len(data))
                    break
        except PalioError as error:
            self._fail(found, error)
            self._settle()
        if found.reader.waiting or link in self._guard.watched:
            self._guard.arrived(found, len(data), now_us)

    def close(self, link: int, now_us: int) -> None:
        """A connection is lost."""
        self._at(now_us)
        self._output.drop(link)
        found = self._links.remove(link)
        if found is not None:
            self._detach(found)
            self._settle()

    def congest(self, link: int, is_congested: bool, now_us: int) -> None:
        """The host has too many unsent bytes for a link (it gets no messages), or no longer."""
        self._at(now_us)
        found = self._links.open.get(link)
        if found is None or found.is_congested == is_congested:
            return
        if found.neighbour:
            self.parts.neighbours.congest(found, is_congested)
        elif found.publisher:
            self.parts.clients.congest(found, is_congested)

    def pause(self, now_us: int) -> None:
        """The host reads from nobody until `resume`: nobody counts as silent meanwhile."""
        self._at(now_us)
        self._guard.pause(now_us)

    def resume(self, now_us: int) -> None:
        self._at(now_us)
        missed_us = self._guard.resume(now_us)
        if missed_us:
            self.parts.view.database.wake(now_us, missed_us)

    def wake(self, now_us: int) -> None:
        """Do what is due; the host calls this at `deadline_us`."""
        self._at(now_us)
        self._guard.wake(now_us)
        self.parts.interests.tick(now_us)
        if self._guard.is_listening:
            self.parts.view.database.wake(now_us)
        self.parts.messages.wake(now_us)
        self.parts.wake(now_us)
        self._settle()

    def committed(self, ticket: int, now_us: int) -> None:
        """The host has committed everything that was pending when `take` returned the ticket."""
        self._at(now_us)
        self._commit = None
        self.parts.messages.committed(ticket, now_us)
        self.parts.data_path.committed(ticket)
        if self.parts.data_path.retaining.values.uncommitted:
            self.parts.committed(ticket)

    def finished(self, job: BackgroundJob[Any], now_us: int) -> None:
        """The host has run a job."""
        self._at(now_us)
        if self._upkeep.finished(job):
            self._scheduler.jobs += self._upkeep.settle()
        else:
            self._scheduler.finished(job)

    def reload_access(self, access: Access, now_us: int, schemas: Schemas | None = None) -> None:
        """Replace identities and grants; end what they no longer allow. Schemas too, if there are any."""
        self._at(now_us)
        self.parts.clients.reload(access, now_us)
        if schemas is not None:
            self.parts.data_path.schemas.follow(schemas, self.parts.interests)
        self._settle()

    def take(self) -> Effects:
        """The effects of the calls since the last `take`; call it once a turn."""
        parts, now_us = self.parts, self.now_us
        view = parts.view
        if parts.work.new:
            self._settle()
        if parts.local.deferred:
            parts.local.send_deferred()
        while self._scheduler.turn and self._scheduler.work():
            self._settle()
        parts.data_path.flush()
        self._settle()
        if view.policy.interests or now_us >= view.database.own.due_us:
            view.announce(now_us)
        ready = parts.messages.take(now_us)
        if ready.published or ready.acks or ready.carries or ready.deliveries:
            parts.carrying.send(ready, now_us)
        if ready.created or ready.ended or ready.acts or ready.is_republishing:
            parts.answer(ready, now_us)
        if ready.has_room:
            parts.data_path.store_held()
        self._settle()
        if now_us >= view.database.own.due_us:  # durable subscriptions were just committed
            view.announce(now_us)
        if self._upkeep.is_rough or parts.table.version != self._upkeep.version:
            self._scheduler.jobs += self._upkeep.settle()
        commit = parts.messages.seal() if self._commit is None else None
        if commit is not None:
            self._commit = commit
            parts.data_path.sealed(commit)
        effects, scheduler = self._output.take(commit), self._scheduler
        scheduler.budget, scheduler.ends_s = turns.TURN_UNITS, 0.0
        if scheduler.turn or scheduler.jobs or scheduler.reading or scheduler.requests:
            scheduler.add_to(effects)
        if parts.local.sent or parts.data_path.patterns.has_worked:
            parts.end_turn()
        if parts.local.deferred or ready.has_more:
            effects.has_more = True
        return effects

    @property
    def deadline_us(self) -> int:
        """When to call `wake` at the latest."""
        deadlines_us = [*self._guard.deadlines_us, *self.parts.deadlines_us]
        return min(deadlines_us, default=self.now_us + self.settings.keepalive_us)

    def is_linked(self, neighbour: str) -> bool:
        return neighbour in self.parts.neighbours.links

    def snapshot(self) -> Snapshot:
        """Counters and gauges for operators."""
        return self.parts.snapshot(self.now_us, self._guard.strangers, self._guard.unfinished_bytes)

    def _at(self, now_us: int) -> None:
        """Advance the clock. While there are links the host calls once a keepalive at least: if it did
        not, this process was paused or its clock was set, and the rest of that time is no silence of
        others."""
        missed_us = now_us - self.now_us - self.settings.keepalive_us
        self.now_us = self.parts.data_path.now_us = self.parts.local.now_us = now_us
        if missed_us > 0 and self._guard.is_listening:  # else `resume` counts all of it
            self._guard.listen_from(now_us, missed_us)
            self.parts.view.database.wake(now_us, missed_us)

    # ---- results of the parts

    def _settle(self) -> None:
        """Process what the parts have queued, and what follows from that, until nothing does."""
        parts = self.parts
        local, port, links, view = parts.local, parts.port, self._links, parts.view
        while True:
            if local.overflowed:
                end_overflowed(local, parts.subscriptions)
            elif links.closed:
                self._close_links()
            elif port.packets or port.occurrences:
                send_news(parts.port, parts.neighbours.links, parts.local)
            elif view.database.version != view.version:
                view.follow(self.now_us)
            elif parts.work.new:
                new, parts.work.new = parts.work.new, []
                for slices in new:
                    self._scheduler.detach(slices)
            else:
                break
        if parts.operations.quenching.told:
            parts.operations.quenching.follow(self.now_us)

    def _close_links(self) -> None:
        """Messages that arrived before count, and Bye is last."""
        parts = self.parts
        parts.data_path.flush()
        send_news(parts.port, parts.neighbours.links, parts.local)
        closed = self._links.take_closed()
        for link, _ in closed:
            self._detach(link)
        send_news(parts.port, parts.neighbours.links, parts.local)
        for link, close in closed:
            self._output.close(link.number, close)

    def _detach(self, link: Link) -> None:
        self._guard.forget(link)
        if link.number in self._scheduler.backlogs:
            self._scheduler.drop(link)
        if link.neighbour:
            self.parts.neighbours.leave(link)
        elif link.publisher:
            self.parts.data_path.flush()  # its last messages must follow the held ones
            if self.parts.clients.leave(link):
                self.parts.data_path.held.forget(link.publisher)

    # ---- frames

    def _process(self, link: Link, item: Item) -> Slices | None:
        """Do what an item asks for; an error ends the connection. Returns the rest, if it takes long."""
        try:
            if type(item) is MessageBatch or type(item) is MessageFrame:
                if self._lookups.is_long(item, self._scheduler):
                    parts = self._lookups.slices(item, partial(self._take_messages, link))
                    return guarded(link, parts, self._fail)
                self._take_messages(link, item)
                return None
            slices = self._take_control(link, item)  # type: ignore[arg-type]
        except PalioError as error:
            self._fail(link, error)
            slices = None
        self._settle()
        return slices if link.number in self._links.open else None

    def _fail(self, link: Link, error: PalioError) -> None:
        """Close a link over which something came that is wrong. A damaged store is no fault of it."""
        if isinstance(error, InvalidFile):
            raise BrokerFailed(f"the store is damaged: {error}") from error
        self._scheduler.discard_unread(link)
        self._links.close(link, close_code(error), str(error))

    def _take_messages(self, link: Link, item: MessageBatch | MessageFrame) -> None:
        parts = self.parts
        if not link.neighbour and not link.publisher:
            raise BrokenFrame("a message before the handshake; say Hello first")
        if isinstance(item, MessageBatch):
            if link.publisher:
                parts.data_path.publish(link, item)
            else:
                parts.neighbours.links.received(link, item.count)
                parts.data_path.receive(link.neighbour, item)
        elif link.neighbour and isinstance(item.header, CarryHeader):
            parts.neighbours.links.received(link, 1)
            parts.carrying.receive(link.neighbour, item, self.now_us)
        else:
            raise wrong_frame(link, item.header)

    def _take_control(self, link: Link, message: ControlMessage) -> Slices | None:
        if isinstance(message, Pong):
            return None
        if isinstance(message, Ping):
            self._output.say(link.number, Pong(message.number))
        elif isinstance(message, Bye):
            self._links.close(link, CloseCode.REMOTE, f"the other end said: {message.reason}")
        elif link.publisher and isinstance(message, Acknowledge):
            consumer = Consumer(link.number, message.id)
            self._scheduler.budget -= len(message.positions) / turns.POSITIONS_PER_UNIT
            self.parts.messages.acknowledge(consumer, message.positions, self.now_us)
        elif link.neighbour and isinstance(message, CarryAck):
            self.parts.carrying.acknowledge(message, self.now_us)
        elif link.publisher:
            if isinstance(message, Nack | Reject):
                self._scheduler.budget -= len(message.positions) / turns.RETURNS_PER_UNIT
            return self.parts.clients.hear(link, message, self.now_us)
        elif link.neighbour:
            slices = self.parts.neighbours.hear(link, message)
            return None if slices is None else guarded(link, slices, self._fail)
        else:
            self._handshakes.hear(link, message, self.now_us)
        return None
