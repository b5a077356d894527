"""A small world of message stores: brokers that crash, a network that loses, doubles and reorders.

Each step is drawn from a seed. What clients saw is compared with what was published: `finish` heals
everything, lets it come to rest, and says what is wrong.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.durability.queues import Full
from palio.protocol.durability.replay import REPLAY_UNITS
from palio.protocol.durability.subscriptions import Matching, Verdict, subscription_decoder
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.control import CarryAck, Durable
from palio.protocol.wire.encode import NO_ROUTE, forward_frames
from palio.protocol.wire.frames import Limits, read_frames
from palio.protocol.wire.headers import CarryHeader, CarryTarget
from palio.routing.matches import Grouped

from .memory_store import MemoryStore

SECOND_US = 1_000_000
MessageId = tuple[str, int]  # publisher, number


def batch_of(entries: Sequence[Entry]) -> MessageBatch:
    """The messages as they come from a connection: bytes of frames lie between them."""
    batch = MessageBatch.of(entries, durable=True)
    (received,) = read_frames(forward_frames(batch, {NO_ROUTE: range(len(batch))}).data, Limits())
    return received


def selects(predicate: str, x: int) -> bool:
    divisor, rest = map(int, predicate.split(":"))
    return x % divisor == rest


def matching(predicate: str) -> Matching:
    """Some messages take several steps of a replay."""

    def decide(text: bytes) -> Verdict:
        x = json.loads(text)["x"]
        yield from [REPLAY_UNITS] * (x % 4)
        return selects(predicate, x)

    return decide


@dataclass
class Subscription:
    """What is true of one version of a subscription, and what its clients saw."""

    home: str
    name: str
    durable: Durable
    full: Full
    seen: dict[int, MessageId] = field(default_factory=dict)
    """By position: the first time only, as a client library does."""
    learned: dict[str, int] = field(default_factory=dict)
    """When each origin learned of it, the last time that it was new there."""
    had_many: bool = False
    """More than one consumer: there is no order to check."""


class Broker:
    def __init__(self, name: str, bounds: Bounds) -> None:
        self.name = name
        self.bounds = bounds
        self.store = MemoryStore()
        self.messages: MessageStore | None = None
        self.ticket: int | None = None
        self.is_isolated = False
        self.held: dict[str, list[Entry]] = {}


@dataclass
class Publisher:
    name: str
    broker: str
    entries: dict[int, Entry] = field(default_factory=dict)
    number: int = 0
    acknowledged: int = 0
    stored: dict[int, int] = field(default_factory=dict)


class World:
    def __init__(self, seed: int, bounds: Bounds, brokers: int = 3, loss: float = 0.2) -> None:
        self.random = random.Random(seed)
        self.bounds = bounds
        self.loss = loss
        self.now_us = 10_000 * SECOND_US
        self.version = 0
        self.brokers = {name: Broker(name, bounds) for name in "ABCDEFG"[:brokers]}
        self.publishers = [Publisher(f"p{i}", self._any()) for i in range(2 * brokers)]
        self.subscriptions: dict[tuple[str, str, int], Subscription] = {}
        self.consumers: dict[int, tuple[Subscription, list[int]]] = {}
        self.next_consumer = 0
        self.packets: list[tuple[str, str, CarryHeader | CarryAck, bytes, bytes]] = []
        self.delivered = 0
        for broker in self.brokers.values():
            self.start(broker)

    def _any(self) -> str:
        return self.random.choice(list(self.brokers))

    def up(self) -> list[Broker]:
        return [broker for broker in self.brokers.values() if broker.messages is not None]

    # ---- brokers

    def start(self, broker: Broker) -> None:
        messages = MessageStore(
            broker.store, broker.name, f"epoch-{broker.name}", self.now_us, broker.bounds
        )
        broker.messages, broker.ticket, broker.held = messages, None, {}
        for stored in messages.subscriptions():
            test = matching(stored.durable.predicate)
            if stored.broker == broker.name:
                messages.create(stored.name, stored.durable, stored.full, test, self.now_us)
            else:
                messages.learn(stored.broker, stored.name, stored.durable, test, self.now_us)
        for publisher in self.publishers:
            if publisher.broker == broker.name:
                self.connect(publisher)
        self.topology()

    def crash(self, broker: Broker) -> None:
        broker.store.crash(is_done=self.random.random() < 0.5)
        broker.messages = None
        for key, (subscription, _) in list(self.consumers.items()):
            if subscription.home == broker.name:
                del self.consumers[key]
        self.topology()

    def topology(self) -> None:
        for broker in self.up():
            others = {b.name for b in self.up() if not b.is_isolated and b is not broker}
            assert broker.messages is not None
            broker.messages.reachable(set() if broker.is_isolated else others, self.now_us)

    def commit(self, broker: Broker) -> None:
        """Begin a commit, or end the one that is under way."""
        assert broker.messages is not None
        if broker.ticket is None:
            broker.ticket = broker.messages.seal()
            if broker.ticket is not None:
                broker.store.begin()
        else:
            broker.store.end()
            broker.messages.committed(broker.ticket, self.now_us)
            broker.ticket = None

    def tick(self, broker: Broker) -> None:
        assert broker.messages is not None
        if broker.messages.deadline_us <= self.now_us:
            broker.messages.wake(self.now_us)

    # ---- messages

    def connect(self, publisher: Publisher) -> None:
        """A publisher learns what is stored (Welcome), and sends the rest again."""
        broker = self.brokers[publisher.broker]
        if broker.messages is None:
            return
        broker.held.pop(publisher.name, None)
        last = broker.messages.last_number(publisher.name)
        assert last >= publisher.acknowledged, f"{publisher.name}: an answer was wrong"
        publisher.acknowledged = last
        rest = [entry for n, entry in publisher.entries.items() if n > last]
        if self.random.random() < 0.5:  # some do not listen, and send more than they must
            rest = list(publisher.entries.values())[-len(rest) - 3 :]
        self.offer(broker, publisher, rest)

    def publish(self, publisher: Publisher, count: int) -> None:
        entries = []
        for _ in range(count):
            publisher.number += self.random.choice([1, 1, 1, 3])
            x = self.random.randrange(60)
            body = b"." * self.random.choice([0, 10, 500])
            entry = Entry(publisher.name, publisher.number, self.now_us, b'{"x":%d}' % x, body)
            publisher.entries[publisher.number] = entry
            entries.append(entry)
        broker = self.brokers[publisher.broker]
        if broker.messages is not None:
            self.offer(broker, publisher, entries)

    def offer(self, broker: Broker, publisher: Publisher, entries: list[Entry]) -> None:
        """As the core does: what is not taken waits, and everything after it."""
        held = broker.held.setdefault(publisher.name, [])
        held += entries
        assert broker.messages is not None
        messages = broker.messages
        while held:
            batch = held[: self.random.choice([1, 5, 100])]
            known = messages.subscriptions()
            matches = [
                tuple(
                    DurableSubscription(stored.broker, stored.name)
                    for stored in known
                    if selects(stored.durable.predicate, json.loads(entry.attributes)["x"])
                )
                for entry in batch
            ]
            before = messages.statistics().counters.duplicates
            taken = messages.publish(batch_of(batch), Grouped.of(matches), self.now_us)
            new = taken - (messages.statistics().counters.duplicates - before)
            for entry in batch[taken - new : taken]:
                publisher.stored[entry.number] = self.now_us
            del held[:taken]
            if taken < len(batch):
                return

    def route(self, broker: Broker) -> None:
        """Take what may go out, and send it."""
        assert broker.messages is not None
        out = broker.messages.take(self.now_us)
        for name, number in out.published:
            publisher = next(p for p in self.publishers if p.name == name)
            publisher.acknowledged = max(publisher.acknowledged, number)
        for ack in out.acks:
            self.packets.append((broker.name, ack.origin, ack, b"", b""))
        for batch, row, targets in out.carries:
            publisher_name, number, time, attributes, body, _ = batch.entry(row)
            header = CarryHeader(
                broker.name, f"epoch-{broker.name}", targets, publisher_name, number, time
            )
            for name in {target.broker: None for target in targets}:
                self.packets.append((broker.name, name, header, attributes, body))
        self._hand_out(broker, out)
        if out.has_room:
            for publisher in self.publishers:
                if broker.held.get(publisher.name):
                    self.offer(broker, publisher, [])

    def _hand_out(self, broker: Broker, out: Outgoing) -> None:
        for ended in out.ended:
            for consumer in ended.consumers:
                assert isinstance(consumer, int)
                self.consumers.pop(consumer, None)
        for delivery in out.deliveries:
            assert isinstance(delivery.consumer, int)
            subscription, unacknowledged = self.consumers[delivery.consumer]
            assert delivery.name == subscription.name
            for position, found in zip(delivery.positions, delivery.batch, strict=True):
                message = (found.publisher, found.number)
                unacknowledged.append(position)
                self.delivered += 1
                before = subscription.seen.setdefault(position, message)
                assert before == message, f"position {position} was used for two messages"

    def transmit(self) -> None:
        """One packet arrives, or is lost, or arrives and stays."""
        if not self.packets:
            return
        at = self.random.randrange(min(len(self.packets), 30))
        source, target, packet, attributes, body = self.packets[at]
        if self.random.random() > 0.1:
            del self.packets[at]
        broker = self.brokers[target]
        is_cut = broker.is_isolated or self.brokers[source].is_isolated
        if broker.messages is None or is_cut or self.random.random() < self.loss:
            return
        if isinstance(packet, CarryAck):
            broker.messages.acknowledged(packet, self.now_us)
            return
        for part in packet.targets:
            assert isinstance(part, CarryTarget)
            if part.broker == target:
                broker.messages.arrive(packet, part, attributes, body, self.now_us)

    # ---- subscriptions

    def create(self, home: Broker, name: str, since_us: int, full: Full) -> None:
        assert home.messages is not None
        self.version += 1
        divisor = self.random.choice([1, 2, 3, 5])
        durable = Durable(f"{divisor}:{self.random.randrange(divisor)}", since_us, self.version)
        subscription = Subscription(home.name, name, durable, full)
        subscription.learned[home.name] = self.now_us
        self.subscriptions[home.name, name, self.version] = subscription
        home.messages.create(name, durable, full, matching(durable.predicate), self.now_us)

    def gossip(self, home: Broker, other: Broker) -> None:
        """A broker learns what another one says of its subscriptions. Only what is safe is said."""
        assert other.messages is not None
        rows = [row for key, row in home.store.safe.items() if key.startswith(keys.SUBSCRIPTIONS)]
        found = [subscription_decoder.decode(row) for row in rows]
        said = {stored.name: stored for stored in found if stored.broker == home.name}
        known = {s.name: s for s in other.messages.subscriptions() if s.broker == home.name}
        for name in known.keys() - said.keys():
            other.messages.unlearn(home.name, name, self.now_us)
        for name, stored in said.items():
            durable = stored.durable
            if name not in known or known[name].durable.version < durable.version:
                key = (home.name, name, durable.version)
                self.subscriptions[key].learned[other.name] = self.now_us
            test = matching(durable.predicate)
            other.messages.learn(home.name, name, durable, test, self.now_us)

    def live(self) -> list[Subscription]:
        found = []
        for broker in self.up():
            assert broker.messages is not None
            for stored in broker.messages.subscriptions():
                if stored.broker == broker.name:
                    key = (stored.broker, stored.name, stored.durable.version)
                    found.append(self.subscriptions[key])
        return found

    def attach(self, subscription: Subscription, credit: int) -> None:
        home = self.brokers[subscription.home].messages
        assert home is not None
        self.next_consumer += 1
        held = [s for s, _ in self.consumers.values() if s is subscription]
        subscription.had_many = subscription.had_many or bool(held)
        self.consumers[self.next_consumer] = (subscription, [])
        home.attach(subscription.name, self.next_consumer, credit)

    def detach(self, consumer: int) -> None:
        subscription, _ = self.consumers.pop(consumer)
        home = self.brokers[subscription.home].messages
        assert home is not None
        home.detach(consumer)

    def acknowledge(self, consumer: int, count: int) -> None:
        subscription, positions = self.consumers[consumer]
        self.random.shuffle(positions)
        done, positions[:] = positions[:count], positions[count:]
        home = self.brokers[subscription.home].messages
        assert home is not None
        home.acknowledge(consumer, done, self.now_us)

    # ---- the end

    def finish(self) -> list[str]:
        """Heal everything and come to rest; what is wrong."""
        self.loss = 0.0
        for broker in self.brokers.values():
            broker.is_isolated = False
            if broker.messages is None:
                self.start(broker)
        self.topology()
        for consumer, (subscription, _) in self.consumers.items():
            home = self.brokers[subscription.home].messages
            assert home is not None
            home.grant_credit(consumer, 50)
        for count in range(2000):
            self.now_us += SECOND_US // 4
            self._round()
            if count > 8 and self._is_done():
                break
        else:
            return [f"no rest: {[b.messages.statistics() for b in self.up() if b.messages]}"]
        return [wrong for subscription in self.live() for wrong in self.check(subscription)]

    def _round(self) -> None:
        for subscription in self.live():
            if not any(s is subscription for s, _ in self.consumers.values()):
                self.attach(subscription, 50)
        for broker in self.up():
            for other in self.up():
                if other is not broker:
                    self.gossip(broker, other)
            self.tick(broker)
            self.commit(broker)
            self.route(broker)
        while self.packets:
            self.transmit()
        for consumer, (_, positions) in list(self.consumers.items()):
            self.acknowledge(consumer, len(positions))

    def _is_done(self) -> bool:
        for broker in self.up():
            assert broker.messages is not None
            numbers = broker.messages.statistics()
            if any(broker.held.values()) or any(numbers.queues.values()):
                return False
            if any(numbers.backlogs.values()) or broker.ticket is not None:
                return False
            if any(stored.cursor is not None for stored in broker.messages.subscriptions()):
                return False
        return all(p.acknowledged == p.number for p in self.publishers)

    def check(self, subscription: Subscription) -> list[str]:
        """What clients of a subscription saw, against what was published."""
        s, durable = subscription, subscription.durable
        seen = list(s.seen.values())
        must, may = set(), set()
        for publisher in self.publishers:
            learned_us = s.learned.get(publisher.broker, self.now_us)
            for number, entry in publisher.entries.items():
                stored_us = publisher.stored[number]
                if not selects(durable.predicate, json.loads(entry.attributes)["x"]):
                    continue
                if stored_us < durable.since:
                    continue
                may.add((publisher.name, number))
                if stored_us + self.bounds.retention_us > learned_us and s.full is Full.BLOCK:
                    must.add((publisher.name, number))
        who = f"{s.home}/{s.name} v{durable.version} ({durable.predicate} since {durable.since})"
        wrong = []
        if len(seen) != len(set(seen)):
            wrong.append(f"{who}: a message came twice, under two positions")
        if not set(seen) <= may:
            wrong.append(f"{who}: not wanted: {sorted(set(seen) - may)[:5]}")
        if not must <= set(seen):
            wrong.append(f"{who}: lost: {sorted(must - set(seen))[:5]} of {len(must)}")
        if not s.had_many:
            last: dict[str, int] = defaultdict(int)
            for name, number in seen:
                if number <= last[name]:
                    wrong.append(f"{who}: {name} {number} came after {last[name]}")
                last[name] = number
        return wrong
