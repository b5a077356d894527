"""Many durable messages at once are dealt with as one by one would be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palio.protocol.durability import journal
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.durability.queues import Full
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import Entry
from palio.protocol.wire.control import CarryAck, Durable
from palio.routing.matches import Grouped

from .memory_store import MemoryStore
from .store_world import batch_of

ANN = "ann/1"
Keys = tuple[DurableSubscription, ...]
KEYS = tuple(
    DurableSubscription(*key)
    for key in (("A", "x"), ("A", "y"), ("B", "u"), ("B", "v"), ("C", "w"), ("D", "unknown"))
)
MESSAGES = st.lists(
    st.tuples(st.sampled_from([-2, 0, 1, 1, 1, 1, 5]), st.sets(st.sampled_from(range(6)))),
    max_size=25,
)
FULL = st.sampled_from([Full.BLOCK, Full.DROP, Full.END])


@pytest.fixture(autouse=True, params=[1, 128])
def large_batch(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "LARGE_BATCH", request.param)
        yield


class Side:
    """A message store that takes batches of some size, and everything that came out of it."""

    def __init__(self, step: int, full: Full, bounds: Bounds) -> None:
        self.step, self.bounds = step, bounds
        self.store = MemoryStore()
        self.seen: list[object] = []
        self.start()
        for interface in KEYS[:-1]:
            broker, name = interface.broker, interface.name
            durable = Durable("", 0, 1)
            if broker == "A":
                self.messages.create(name, durable, full, lambda texts: [True] * len(texts), 0)
            else:
                self.messages.learn(broker, name, durable, lambda texts: [True] * len(texts), 0)
        self.turn()
        self.attach()

    def start(self) -> None:
        self.store.crash()
        self.messages = MessageStore(self.store, "A", "epoch", 0, self.bounds)
        self.messages.reachable({"B", "C"}, 0)

    def attach(self) -> None:
        names = [s.name for s in self.messages.subscriptions() if s.broker == "A"]
        for name in names:
            self.messages.attach(name, name, 7)

    def offer(self, entries: list[Entry], matches: list[Keys]) -> int:
        done = 0
        while done < len(entries):
            part = entries[done : done + self.step]
            found = Grouped.of(matches[done : done + self.step])
            taken = self.messages.publish(batch_of(part), found, 5)
            done += taken
            if taken < len(part):
                break
        return done

    def turn(self) -> None:
        ticket = self.messages.seal()
        if ticket is not None:
            self.store.commit()
            self.messages.committed(ticket, 5)
        self._note(self.messages.take(5))

    def _note(self, out: Outgoing) -> None:
        sent: dict[object, list[object]] = {}
        for one in out.deliveries:
            sent.setdefault(one.consumer, []).extend(
                (n, one.redelivered, m) for n, m in zip(one.positions, one.batch, strict=True)
            )
        carries = [(batch.entry(row), targets) for batch, row, targets in out.carries]
        self.seen.append((out.published, carries, sent, out.ended, out.has_room))

    def acknowledge(self, numbers: list[int]) -> None:
        for name in ("x", "y"):
            self.messages.acknowledge(name, numbers, 6)
        self.messages.acknowledged(CarryAck("A", "epoch", "B", len(numbers)), 6)

    def state(self) -> tuple[object, ...]:
        numbers = replace(self.messages.statistics(), bytes=0)  # on disk they are in other segments
        return self.seen, numbers, self.messages.last_number(ANN)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(MESSAGES, st.lists(st.integers(1, 30), max_size=9)), min_size=1, max_size=4),
    FULL,
    st.sampled_from([Bounds(), Bounds(queue=6, backlog=9), Bounds(queue_bytes=300, cache_bytes=1)]),
)
def test_a_batch_is_what_single_messages_are(
    turns: list[tuple[list[tuple[int, set[int]]], list[int]]],
    full: Full,
    bounds: Bounds,
) -> None:
    single, many = Side(1, full, bounds), Side(1000, full, bounds)
    number = 3
    for drawn, acknowledged in turns:
        entries: list[Entry] = []
        matches: list[Keys] = []
        for step, chosen in drawn:
            number = max(1, number + step)
            entries.append(Entry(ANN, number, 7, b"%d" % number, b"b" * (number % 50)))
            matches.append(tuple(KEYS[at] for at in sorted(chosen)))
        assert single.offer(entries, matches) == many.offer(entries, matches)
        for side in (single, many):
            side.turn()
            side.acknowledge(acknowledged)
            side.turn()
        assert single.state() == many.state()
    for side in (single, many):
        side.start()
        side.attach()
        side.turn()
    assert single.state()[0] == many.state()[0]
    assert single.messages.last_number(ANN) == many.messages.last_number(ANN)
