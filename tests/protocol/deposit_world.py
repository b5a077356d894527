"""A small world of deposits: brokers that crash, a network that loses, doubles and reorders.

Each step is drawn from a seed. What clients saw is compared with what was published: `finish` heals
everything, lets it come to rest, and says what is wrong.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.deposit import Deposit
from palio.protocol.durability.known import Matching, fact_decoder
from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.durability.queues import Full
from palio.protocol.durability.vault import PREFIX
from palio.protocol.frames import Carry, Limits, Publish, Target, letter_frame
from palio.protocol.runs import Publication, Run, scan
from palio.protocol.words import Durable, Got

from .memory_store import MemoryStore

SECOND_US = 1_000_000
Message = tuple[str, int]  # publisher, number


def run_of(letters: Sequence[Publication]) -> Run:
    """The letters as they come from a connection."""
    data = b"".join(letter_frame(Publish(n, t, True), text, body) for n, t, text, body in letters)
    run, end = scan(data, 0, Limits())
    assert run is not None
    assert end == len(data)
    return run


def selects(predicate: str, x: int) -> bool:
    divisor, rest = map(int, predicate.split(":"))
    return x % divisor == rest


def matching(predicate: str) -> Matching:
    return lambda texts: [selects(predicate, json.loads(text)["x"]) for text in texts]


@dataclass
class Subscription:
    """What is true of one version of a subscription, and what its clients saw."""

    home: str
    name: str
    durable: Durable
    full: Full
    seen: dict[int, Message] = field(default_factory=dict)
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
        self.deposit: Deposit | None = None
        self.ticket: int | None = None
        self.is_isolated = False
        self.held: dict[str, list[Publication]] = {}


@dataclass
class Publisher:
    name: str
    broker: str
    letters: dict[int, Publication] = field(default_factory=dict)
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
        self.packets: list[tuple[str, str, Carry | Got, bytes, bytes]] = []
        self.delivered = 0
        for broker in self.brokers.values():
            self.start(broker)

    def _any(self) -> str:
        return self.random.choice(list(self.brokers))

    def up(self) -> list[Broker]:
        return [broker for broker in self.brokers.values() if broker.deposit is not None]

    # ---- brokers

    def start(self, broker: Broker) -> None:
        deposit = Deposit(
            broker.store, broker.name, f"epoch-{broker.name}", self.now_us, broker.bounds
        )
        broker.deposit, broker.ticket, broker.held = deposit, None, {}
        for fact in deposit.subscriptions():
            test = matching(fact.durable.predicate)
            if fact.broker == broker.name:
                deposit.create(fact.name, fact.durable, fact.full, test, self.now_us)
            else:
                deposit.learn(fact.broker, fact.name, fact.durable, test, self.now_us)
        for publisher in self.publishers:
            if publisher.broker == broker.name:
                self.connect(publisher)
        self.topology()

    def crash(self, broker: Broker) -> None:
        if self.random.random() < 0.5:
            broker.store.end()  # the commit was done, but nobody heard of it
        broker.store.crash()
        broker.deposit = None
        for key, (subscription, _) in list(self.consumers.items()):
            if subscription.home == broker.name:
                del self.consumers[key]
        self.topology()

    def topology(self) -> None:
        for broker in self.up():
            others = {b.name for b in self.up() if not b.is_isolated and b is not broker}
            assert broker.deposit is not None
            broker.deposit.reachable(set() if broker.is_isolated else others, self.now_us)

    def commit(self, broker: Broker) -> None:
        """Begin a commit, or end the one that is under way."""
        assert broker.deposit is not None
        if broker.ticket is None:
            broker.ticket = broker.deposit.seal()
            if broker.ticket is not None:
                broker.store.begin()
        else:
            broker.store.end()
            broker.deposit.committed(broker.ticket, self.now_us)
            broker.ticket = None

    def tick(self, broker: Broker) -> None:
        assert broker.deposit is not None
        if broker.deposit.deadline_us <= self.now_us:
            broker.deposit.wake(self.now_us)

    # ---- messages

    def connect(self, publisher: Publisher) -> None:
        """A publisher learns what is stored (Welcome), and sends the rest again."""
        broker = self.brokers[publisher.broker]
        if broker.deposit is None:
            return
        broker.held.pop(publisher.name, None)
        last = broker.deposit.last_number(publisher.name)
        assert last >= publisher.acknowledged, f"{publisher.name}: an answer was wrong"
        publisher.acknowledged = last
        rest = [letter for n, letter in publisher.letters.items() if n > last]
        if self.random.random() < 0.5:  # some do not listen, and send more than they must
            rest = list(publisher.letters.values())[-len(rest) - 3 :]
        self.offer(broker, publisher, rest)

    def publish(self, publisher: Publisher, count: int) -> None:
        letters = []
        for _ in range(count):
            publisher.number += self.random.choice([1, 1, 1, 3])
            x = self.random.randrange(60)
            body = b"." * self.random.choice([0, 10, 500])
            letter = (publisher.number, self.now_us, b'{"x":%d}' % x, body)
            publisher.letters[publisher.number] = letter
            letters.append(letter)
        broker = self.brokers[publisher.broker]
        if broker.deposit is not None:
            self.offer(broker, publisher, letters)

    def offer(self, broker: Broker, publisher: Publisher, letters: list[Publication]) -> None:
        """As the core does: what is not taken waits, and everything after it."""
        held = broker.held.setdefault(publisher.name, [])
        held += letters
        assert broker.deposit is not None
        deposit = broker.deposit
        while held:
            batch = held[: self.random.choice([1, 5, 100])]
            facts = deposit.subscriptions()
            keys = [
                tuple(
                    (fact.broker, fact.name)
                    for fact in facts
                    if selects(fact.durable.predicate, json.loads(letter[2])["x"])
                )
                for letter in batch
            ]
            before = deposit.statistics().duplicates
            offered = run_of(batch) if self.random.random() < 0.5 else batch
            taken = deposit.publish(publisher.name, offered, keys, self.now_us)
            new = taken - (deposit.statistics().duplicates - before)
            for letter in batch[taken - new : taken]:
                publisher.stored[letter[0]] = self.now_us
            del held[:taken]
            if taken < len(batch):
                return

    def route(self, broker: Broker) -> None:
        """Take what may go out, and send it."""
        assert broker.deposit is not None
        out = broker.deposit.take(self.now_us)
        for name, number in out.published:
            publisher = next(p for p in self.publishers if p.name == name)
            publisher.acknowledged = max(publisher.acknowledged, number)
        for word in out.got:
            self.packets.append((broker.name, word.origin, word, b"", b""))
        for message, targets in out.carries:
            carry = Carry(
                broker.name,
                f"epoch-{broker.name}",
                targets,
                message.publisher,
                message.number,
                message.time,
            )
            for name in {target.broker: None for target in targets}:
                self.packets.append((broker.name, name, carry, message.attributes, message.body))
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
            for position, found in zip(delivery.positions, delivery.messages, strict=True):
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
        if broker.deposit is None or is_cut or self.random.random() < self.loss:
            return
        if isinstance(packet, Got):
            broker.deposit.got(packet, self.now_us)
            return
        for part in packet.targets:
            assert isinstance(part, Target)
            if part.broker == target:
                broker.deposit.arrive(packet, part, attributes, body, self.now_us)

    # ---- subscriptions

    def create(self, home: Broker, name: str, since_us: int, full: Full) -> None:
        assert home.deposit is not None
        self.version += 1
        divisor = self.random.choice([1, 2, 3, 5])
        durable = Durable(f"{divisor}:{self.random.randrange(divisor)}", since_us, self.version)
        subscription = Subscription(home.name, name, durable, full)
        subscription.learned[home.name] = self.now_us
        self.subscriptions[home.name, name, self.version] = subscription
        home.deposit.create(name, durable, full, matching(durable.predicate), self.now_us)

    def gossip(self, home: Broker, other: Broker) -> None:
        """A broker learns what another one says of its subscriptions. Only what is safe is said."""
        assert other.deposit is not None
        rows = [row for key, row in home.store.safe.items() if key.startswith(f"{PREFIX}k/")]
        found = [fact_decoder.decode(row) for row in rows]
        facts = {fact.name: fact for fact in found if fact.broker == home.name}
        known = {f.name: f for f in other.deposit.subscriptions() if f.broker == home.name}
        for name in known.keys() - facts.keys():
            other.deposit.unlearn(home.name, name, self.now_us)
        for name, fact in facts.items():
            durable = fact.durable
            if name not in known or known[name].durable.version < durable.version:
                key = (home.name, name, durable.version)
                self.subscriptions[key].learned[other.name] = self.now_us
            test = matching(durable.predicate)
            other.deposit.learn(home.name, name, durable, test, self.now_us)

    def live(self) -> list[Subscription]:
        found = []
        for broker in self.up():
            assert broker.deposit is not None
            for fact in broker.deposit.subscriptions():
                if fact.broker == broker.name:
                    key = (fact.broker, fact.name, fact.durable.version)
                    found.append(self.subscriptions[key])
        return found

    def attach(self, subscription: Subscription, credit: int) -> None:
        home = self.brokers[subscription.home].deposit
        assert home is not None
        self.next_consumer += 1
        held = [s for s, _ in self.consumers.values() if s is subscription]
        subscription.had_many = subscription.had_many or bool(held)
        self.consumers[self.next_consumer] = (subscription, [])
        home.attach(subscription.name, self.next_consumer, credit)

    def detach(self, consumer: int) -> None:
        subscription, _ = self.consumers.pop(consumer)
        home = self.brokers[subscription.home].deposit
        assert home is not None
        home.detach(consumer)

    def acknowledge(self, consumer: int, count: int) -> None:
        subscription, positions = self.consumers[consumer]
        self.random.shuffle(positions)
        done, positions[:] = positions[:count], positions[count:]
        home = self.brokers[subscription.home].deposit
        assert home is not None
        home.acknowledge(consumer, done, self.now_us)

    # ---- the end

    def finish(self) -> list[str]:
        """Heal everything and come to rest; what is wrong."""
        self.loss = 0.0
        for broker in self.brokers.values():
            broker.is_isolated = False
            if broker.deposit is None:
                self.start(broker)
        self.topology()
        for consumer, (subscription, _) in self.consumers.items():
            home = self.brokers[subscription.home].deposit
            assert home is not None
            home.pay(consumer, 50)
        for count in range(2000):
            self.now_us += SECOND_US // 4
            self._round()
            if count > 8 and self._is_done():
                break
        else:
            return [f"no rest: {[b.deposit.statistics() for b in self.up() if b.deposit]}"]
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
            assert broker.deposit is not None
            numbers = broker.deposit.statistics()
            if any(broker.held.values()) or any(numbers.queues.values()):
                return False
            if any(numbers.backlogs.values()) or broker.ticket is not None:
                return False
            if any(fact.cursor is not None for fact in broker.deposit.subscriptions()):
                return False
        return all(p.acknowledged == p.number for p in self.publishers)

    def check(self, subscription: Subscription) -> list[str]:
        """What clients of a subscription saw, against what was published."""
        s, durable = subscription, subscription.durable
        seen = list(s.seen.values())
        must, may = set(), set()
        for publisher in self.publishers:
            learned_us = s.learned.get(publisher.broker, self.now_us)
            for number, letter in publisher.letters.items():
                stored_us = publisher.stored[number]
                if not selects(durable.predicate, json.loads(letter[2])["x"]):
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
