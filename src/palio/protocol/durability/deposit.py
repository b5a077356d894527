"""The deposit: durable messages of one broker, from publishers and other brokers to clients.

    publish ──┐              ┌─▶ queues ──▶ deliveries          (subscriptions at home)
              ├──▶ journal ──┤
    arrive ───┘              └─▶ streams ─▶ carries ... Got     (homes elsewhere; only what
                                                                 was published here)
        seal ──▶ store: a batch, a record        the host commits
        committed ──▶ take: what may go out

Nothing goes out before the commit that holds it: answers to publishers, Got, carried messages,
deliveries, news of subscriptions. `seal` puts everything that happened since the last one (and
nothing else puts), so each commit is whole: messages, who gets them, and the last numbers of
publishers and streams. What happens while a commit is under way belongs to the next.

Everything is read back from the store on construction. Then the core says `create` and `learn`
again, for each of `subscriptions`: what is known already only gets its matching function back.

Nothing is lost and nothing doubled: a publisher's number is stored once; an origin judges each of
its messages once for each subscription (known.py) and numbers what goes to a broker; a home stores
each number of a stream once, in order; the client gets each entry of a queue until it acknowledges
it, under one position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence

import msgspec

from palio.errors import PalioError
from palio.protocol.answers import Matched
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.kept import Message, Pack, keep, last_number, weigh
from palio.protocol.durability.known import Fact, Known, Matching
from palio.protocol.durability.outgoing import Delivery, Ended, Key, Keys, Outgoing, Statistics
from palio.protocol.durability.placing import Placing, Ways
from palio.protocol.durability.publishers import Publisher
from palio.protocol.durability.queues import Full, Queue
from palio.protocol.durability.streams import Arrival, Inbound, Outbound
from palio.protocol.durability.vault import Sealed, Vault
from palio.protocol.frames import Carry, Target
from palio.protocol.runs import Publication, Run
from palio.protocol.store import Store
from palio.protocol.words import Durable, Got


class Deposit:
    """Durability of the broker `broker`. `epoch` was made with the store, and never changes."""

    def __init__(
        self, store: Store, broker: str, epoch: str, now_us: int, bounds: Bounds | None = None
    ) -> None:
        self.broker = broker
        self.epoch = epoch
        self._bounds = bounds or Bounds()
        self._vault = Vault(store, broker, self._bounds)
        self._journal = self._vault.journal
        self._now_us = now_us
        self._counts = Statistics()
        self._consumers: dict[Hashable, Queue] = {}
        self._reachable: frozenset[str] = frozenset()
        self._lazy_us: int | None = now_us + self._bounds.lazy_us
        self._is_settling = False
        self._sweep_us = now_us + self._bounds.sweep_us
        self._placing = Placing(self._vault)
        # news of subscriptions since the last seal
        self._created: list[Known] = []
        self._ended: list[Ended] = []
        # commits under way, and what goes out at the next take
        self._under_way: deque[tuple[Sealed, list[Known], list[Ended]]] = deque()
        self._ready: dict[Queue | Outbound, None] = {}
        self._answers: dict[str, int] = {}
        self._got: dict[Inbound, None] = {}
        self._safe_created: list[Known] = []
        self._safe_ended: list[Ended] = []
        # what was full when somebody wanted to put something there
        self._blocked: dict[Queue | Outbound | Journal, None] = {}
        self._stalled: dict[Inbound, None] = {}

    # ---- messages

    def last_number(self, publisher: str) -> int:
        """The last number that is safe: the publisher need not send it again."""
        return self._vault.publishers.safe(publisher)

    def taken_number(self, publisher: str) -> int:
        """The last number that was taken, and may not be safe yet."""
        return self._vault.publishers.row(publisher).number

    def publish(
        self,
        publisher: str,
        letters: Sequence[Publication] | Run,
        matches: Sequence[Keys] | Matched[Key],
        now_us: int,
    ) -> int:
        """Store new messages, each for the (broker, name) that it matches.

        Returns how many were dealt with. The rest waits for room: offer it again, with matches of
        then, when `Outgoing.has_room` is set; until then read no more from this publisher.
        """
        self._now_us = now_us
        row = self._vault.publishers.row(publisher)
        stored_us = self._journal.clock(now_us)
        messages = keep(publisher, stored_us, letters)
        before = row.number
        if self._store_all(row, messages, matches):
            taken = len(messages)
        else:
            taken = self._store_some(row, list(messages), matches)
        if row.number > before:
            self._vault.is_dirty = True
            self._vault.publishers.touch(row, now_us)
            self._vault.heard[publisher] = row
            self._loosen()
        if taken and row.safe == row.number:
            self._answers[publisher] = row.safe
        return taken

    def _store_all(
        self, row: Publisher, messages: list[Message] | Pack, matches: Sequence[Keys] | Matched[Key]
    ) -> bool:
        """Store messages together; False: some are here already, or there may be no room."""
        number = last_number(messages, row.number)
        if number is None:
            return False
        parts, sizes = self._placing.part(matches), weigh(messages)
        count, size = len(sizes), sum(sizes)
        if self._journal.bytes + size > self._bounds.journal_bytes:
            return False
        if not all(ways.fits(count, size) for ways in parts):
            return False
        self._store(messages, sizes, parts)
        row.number = number
        return True

    def _store_some(self, row: Publisher, messages: list[Message], matches: Iterable[Keys]) -> int:
        """Store messages one by one, as far as there is room for them; how many."""
        for taken, (message, keys) in enumerate(zip(messages, matches, strict=True)):
            if message.number <= row.number:
                self._counts.duplicates += 1
                continue
            ways = self._placing.find(keys)
            if ways.is_full or self._journal.bytes >= self._bounds.journal_bytes:
                self._block(ways)
                return taken
            self._store([message], weigh([message]), {ways: [0]})
            row.number = message.number
        return len(messages)

    def _store(
        self, messages: list[Message] | Pack, sizes: list[int], parts: dict[Ways, list[int]]
    ) -> None:
        self._counts.published += len(messages)
        for queue in self._placing.place(messages, sizes, parts):
            self._check(queue)

    def _block(self, ways: Ways) -> None:
        """Remember what is full, so that it is noticed when it has room."""
        self._blocked.update(dict.fromkeys(d for d in ways.destinations if d.is_full))
        if self._journal.bytes >= self._bounds.journal_bytes:
            self._blocked[self._journal] = None
            self._loosen()  # so that it is swept soon

    def _check(self, queue: Queue) -> None:
        """A queue that does not block got more: it may have dropped some, or be too long."""
        if queue.has_dropped:
            self._vault.urgent[queue] = None
        elif queue.full is Full.END and queue.is_over:
            self._counts.ended += 1
            known = self._vault.known[self.broker, queue.name]
            self._end(known, f"more than {self._bounds.queue} messages or their bytes waited")

    def arrive(
        self, carry: Carry, target: Target, attributes: bytes, body: bytes, now_us: int
    ) -> None:
        """A message from another broker; `target` is one of its targets that names this broker."""
        self._now_us = now_us
        key = (carry.origin, carry.epoch)
        inbound = self._vault.inbound.get(key)
        if inbound is None:
            inbound = self._vault.inbound[key] = Inbound(*key, self._bounds)
        expected = inbound.expected
        if not inbound.offer(target, Arrival(carry, target.names, attributes, body), now_us):
            self._counts.duplicates += 1
            self._got[inbound] = None
        if inbound.expected != expected:
            self._progress(inbound)
        if inbound.turn is not None:
            self._accept(inbound)

    def _accept(self, inbound: Inbound) -> None:
        """Store what comes next in a stream, as far as there is room for it."""
        self._stalled.pop(inbound, None)
        while (arrival := inbound.turn) is not None:
            queues = self._vault.queues
            found = [queues[name] for name in arrival.labels if name in queues]
            for queue in found:
                if queue.is_full:
                    self._stalled[inbound] = None
                    return
            inbound.accept()
            self._progress(inbound)
            self._counts.arrived += 1
            if found:
                self._store_arrival(arrival, found)

    def _store_arrival(self, arrival: Arrival, found: list[Queue]) -> None:
        message = arrival.message(self._journal.clock(self._now_us))
        for queue in self._placing.place([message], weigh([message]), {Ways(found, {}): [0]}):
            self._check(queue)

    def _progress(self, inbound: Inbound) -> None:
        self._vault.is_dirty = True
        self._vault.arrived[inbound] = None
        self._vault.loose_inbound[inbound] = None
        self._loosen()

    def got(self, word: Got, now_us: int) -> None:
        """Another broker has stored what was carried to it."""
        self._now_us = now_us
        stream = self._vault.streams.get(word.broker)
        is_ours = word.origin == self.broker and word.epoch == self.epoch
        if is_ours and stream is not None and stream.got(word.number, now_us):
            self._ready[stream] = None
            self._vault.loose[stream] = None
            self._loosen()

    # ---- subscriptions

    def subscriptions(self) -> list[Fact]:
        """All that are known, here and elsewhere: what messages must be matched against."""
        return [known.stored() for known in self._vault.known.values()]

    def learn(
        self, broker: str, name: str, durable: Durable, matching: Matching, now_us: int
    ) -> None:
        """There is a subscription at another broker: from now on messages must be matched with it.

        What was published here since its start time is put on its way. Saying it again does nothing.
        """
        if broker != self.broker:
            self._add(Fact(broker, name, durable, Full.BLOCK, None), matching, now_us)

    def unlearn(self, broker: str, name: str, now_us: int) -> None:
        """The subscription at another broker is gone."""
        self._now_us = now_us
        known = self._vault.known.get((broker, name))
        if known is not None and broker != self.broker:
            self._forget(known)

    def create(
        self, name: str, durable: Durable, full: Full, matching: Matching, now_us: int
    ) -> None:
        """Make a subscription here; others may learn of it when it comes out of `take`.

        It may have ended at once (`has`), when more waits for it than may.
        """
        if self._add(Fact(self.broker, name, durable, full, None), matching, now_us):
            known = self._vault.known.get((self.broker, name))
            if known is not None:
                self._created.append(known)

    def remove(self, name: str, now_us: int) -> None:
        """End a subscription here for good."""
        self._now_us = now_us
        known = self._vault.known.get((self.broker, name))
        if known is not None:
            self._end(known, "")

    def _add(self, fact: Fact, matching: Matching, now_us: int) -> bool:
        """False: it was known."""
        self._now_us = now_us
        key = (fact.broker, fact.name)
        known = self._vault.known.get(key)
        if known is not None and known.fact.durable.version >= fact.durable.version:
            known.matching = matching
            return False
        if known is not None and fact.broker == self.broker:
            self._end(known, "it was made anew")
        elif known is not None:
            self._forget(known)
        cursor = self._journal.since(fact.durable.since)
        known = self._vault.open(msgspec.structs.replace(fact, cursor=cursor))
        known.matching = matching
        self._placing.clear()
        if isinstance(known.destination, Outbound) and known.destination.subscriptions == 1:
            known.destination.reach(fact.broker in self._reachable)
        self._replay(known)
        return True

    def _replay(self, known: Known) -> None:
        """One step of a replay."""
        key, destination = known.key, known.destination
        known.replay(self._journal)
        self._counts.replayed += 1
        self._vault.facts[key] = known
        self._vault.pushed[destination] = None
        self._vault.is_dirty = True
        if known.cursor is None:
            del self._vault.replays[key]
            self._placing.clear()
        if isinstance(destination, Queue) and destination.full is not Full.BLOCK:
            self._check(destination)

    def _forget(self, known: Known) -> None:
        self._vault.forget(known)
        self._placing.clear()
        self._loosen()

    def _end(self, known: Known, reason: str) -> None:
        queue = known.destination
        assert isinstance(queue, Queue)
        consumers = queue.consumers
        for consumer in consumers:
            queue.detach(consumer)
            del self._consumers[consumer]
        self._forget(known)
        self._ready.pop(queue, None)
        self._counts.dropped += queue.dropped
        if known in self._created:
            self._created.remove(known)
        self._ended.append(Ended(queue.name, reason, consumers, known.fact.durable.version))

    def has(self, name: str) -> bool:
        """Is there such a subscription here?"""
        return (self.broker, name) in self._vault.known

    # ---- consumers

    def attach(self, name: str, consumer: Hashable, credit: int) -> int:
        """Let a client take part in a subscription here; all up to the result is acknowledged."""
        known = self._vault.known.get((self.broker, name))
        if known is None or not isinstance(known.destination, Queue):
            raise PalioError(f"there is no durable subscription {name!r} here: make it first")
        self.detach(consumer)
        queue = known.destination
        queue.attach(consumer, credit)
        self._consumers[consumer] = queue
        self._ready[queue] = None
        return queue.line.lowest() - 1

    def last_position(self, name: str) -> int:
        """Of the newest message in the queue of a subscription here."""
        queue = self._vault.known[self.broker, name].destination
        return queue.line.next - 1

    def detach(self, consumer: Hashable) -> None:
        """A client left; what it has not acknowledged goes to others, or waits."""
        queue = self._consumers.pop(consumer, None)
        if queue is not None:
            queue.detach(consumer)
            self._ready[queue] = None

    def acknowledge(self, consumer: Hashable, positions: Sequence[int], now_us: int) -> None:
        """A client has dealt with these positions of its subscription."""
        queue = self._consumers.get(consumer)
        if queue is None:
            return
        self._now_us = now_us
        count = queue.acknowledge(positions)
        self._ready[queue] = None
        if count:
            self._counts.acknowledged += count
            self._vault.loose[queue] = None
            self._loosen()

    def pay(self, consumer: Hashable, credit: int) -> None:
        """A client takes this many more messages at a time."""
        queue = self._consumers.get(consumer)
        if queue is not None:
            queue.pay(consumer, credit)
            self._ready[queue] = None

    # ---- commits

    def seal(self) -> int | None:
        """Put all that happened since the last time; a ticket to commit, or None: nothing did."""
        for inbound in list(self._stalled):
            self._accept(inbound)
        if not self._vault.is_dirty and not self._is_settling:
            return None
        sealed = self._vault.seal(self._now_us, self._is_settling)
        self._under_way.append((sealed, self._created, self._ended))
        self._created, self._ended = [], []
        if self._is_settling:
            self._is_settling = False
            self._lazy_us = None
        else:
            self._loosen()
        return sealed.ticket

    def committed(self, ticket: int, now_us: int) -> None:
        """The host has committed what was sealed with this ticket, and all before."""
        self._now_us = now_us
        while self._under_way and self._under_way[0][0].ticket <= ticket:
            sealed, created, ended = self._under_way.popleft()
            for owner, next in sealed.lines:
                owner.commit(next)
                self._ready[owner] = None
            for inbound, number in sealed.arrived:
                inbound.stored = number
                self._got[inbound] = None
            for row, number in sealed.publishers:
                row.safe = number
                self._answers[row.name] = number
            self._safe_created += created
            self._safe_ended += ended

    def take(self, now_us: int) -> Outgoing:
        """What may go out now."""
        self._now_us = now_us
        deliveries: list[Delivery] = []
        carries: dict[int, list[Target]] = {}
        for owner in self._ready:
            if isinstance(owner, Queue):
                self._deliver(owner, deliveries)
            else:
                for position, target in owner.send(now_us):
                    carries.setdefault(position, []).append(target)
        has_room = any(owner.has_room for owner in self._blocked)
        if has_room:  # something that was full
            self._blocked.clear()
        places = list(carries)  # in the order of the streams
        # one that was ended meanwhile, and perhaps made anew, is not the one that is safe
        created = [k.fact.name for k in self._safe_created if self._vault.known.get(k.key) is k]
        outgoing = Outgoing(
            list(self._answers.items()),
            [Got(i.origin, i.epoch, self.broker, i.stored) for i in self._got if i.stored],
            [
                (m, tuple(carries[at]))
                for at, m in zip(places, self._journal.read(places), strict=True)
            ],
            deliveries,
            created,
            self._safe_ended,
            has_room,
        )
        self._counts.carried += len(outgoing.carries)
        self._safe_created, self._safe_ended = [], []
        for done in (self._ready, self._answers, self._got):
            done.clear()
        return outgoing

    def _deliver(self, queue: Queue, deliveries: list[Delivery]) -> None:
        for consumer, again, numbers, positions in queue.deliver():
            at = 0
            for part in self._journal.pick(positions):
                chosen, at = numbers[at : at + len(part)], at + len(part)
                deliveries.append(Delivery(consumer, queue.name, again, chosen, part))
            self._counts.delivered += len(numbers)
            self._counts.redelivered += len(numbers) if again else 0

    # ---- time

    @property
    def deadline_us(self) -> int:
        """When to wake it."""
        if any(known.can_replay for known in self._vault.replays.values()):
            return self._now_us
        streams = self._vault.streams.values()
        times = [self._sweep_us, self._lazy_us, *(stream.deadline_us for stream in streams)]
        return min(time for time in times if time is not None)

    def wake(self, now_us: int) -> None:
        """Do what is due: replays, messages that were not answered, tidying up."""
        self._now_us = now_us
        for known in list(self._vault.replays.values()):
            if known.can_replay:
                self._replay(known)
        for stream in self._vault.streams.values():
            if stream.wake(now_us):
                self._counts.retries += 1
                self._ready[stream] = None
        if self._lazy_us is not None and now_us >= self._lazy_us:
            self._lazy_us = None  # the next seal does it, which may have to wait for a commit
            self._is_settling = True
        if now_us >= self._sweep_us:
            self._sweep_us = now_us + self._bounds.sweep_us
            self._is_settling = self._is_settling or self._vault.has_waste(now_us)

    def reachable(self, brokers: Iterable[str], now_us: int) -> None:
        """The topology changed, and these can be reached: what they did not answer goes again."""
        self._now_us = now_us
        self._reachable = frozenset(brokers)
        for broker, stream in self._vault.streams.items():
            stream.reach(broker in self._reachable)
            self._ready[stream] = None

    def _loosen(self) -> None:
        """Something is to be written, but not at once."""
        if self._lazy_us is None:
            self._lazy_us = self._now_us + self._bounds.lazy_us

    def statistics(self) -> Statistics:
        return self._vault.statistics(self._counts)
