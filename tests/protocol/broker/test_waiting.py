"""Live messages that wait: every bound in bytes, who loses messages, and that nothing is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.protocol.broker.settings import WaitingBounds
from palio.protocol.broker.subscriber import Credits, Subscriber, WaitingMessage
from palio.protocol.broker.waiting import PLACE_BYTES, Overflow, WaitingMessages
from palio.protocol.wire.batch import Entry
from palio.protocol.wire.codes import EndCode
from palio.protocol.wire.control import SubscriptionEnded
from tests.protocol.exchange import Exchange

CREDITS = Credits()
LARGE = 1 << 40


def subscriber(identity: str = "ann", *, ends: bool = False, id: int = 1) -> Subscriber:
    return Subscriber(1, id, identity, CREDITS, ends)


def message(number: int, size: int = 1000) -> WaitingMessage:
    found = WaitingMessage(Entry("p", number, 0, b"{}", bytes(size)))
    assert found.size >= size
    return found


def bounds(queue: int = LARGE, identity: int = LARGE, total: int = LARGE) -> WaitingBounds:
    return WaitingBounds(queue, identity, total)


def numbers(waiting: WaitingMessages, one: Subscriber) -> list[int]:
    """Of all that waits for it, which it gets now."""
    found = []
    while one.waiting:
        entry = waiting.take(one)._entry
        assert entry is not None
        found.append(entry.number)
    return found


def test_a_message_for_many_subscriptions_counts_once() -> None:
    waiting = WaitingMessages(10, bounds())
    many = [subscriber(identity) for identity in ("ann", "ann", "bob")]
    one = message(1, 100_000)
    for each in many:
        waiting.add(each, one)
    assert waiting.bytes == one.size + 3 * PLACE_BYTES
    bodies = [each.waiting[0].pieces(each.id)[-1] for each in many]
    assert bodies[0] is bodies[1] is bodies[2], "it is in memory once"
    for each in many:
        assert waiting.take(each) is one
    assert waiting.bytes == 0


def test_bytes_for_one_subscription_drop_its_oldest() -> None:
    waiting = WaitingMessages(1000, bounds(queue=5_500))
    slow, other = subscriber(), subscriber()
    for number in range(8):
        one = message(number)
        waiting.add(slow, one)
        if number < 2:
            waiting.add(other, one)
    assert numbers(waiting, slow) == [3, 4, 5, 6, 7]
    assert numbers(waiting, other) == [0, 1]
    assert waiting.dropped == {Overflow.BYTES: 3}
    assert waiting.bytes == 0


def test_bytes_for_an_identity_drop_the_oldest_of_all_its_subscriptions() -> None:
    waiting = WaitingMessages(1000, bounds(identity=7_000))
    first, second, other = subscriber(), subscriber(), subscriber("bob")
    for number in range(10):
        one = message(number)
        for each in [first, other] if number % 2 else [first, second, other]:
            waiting.add(each, one)
    assert numbers(waiting, other) == [5, 6, 7, 8, 9]
    assert numbers(waiting, first) == [5, 6, 7, 8, 9]
    assert numbers(waiting, second) == [6, 8]
    assert set(waiting.dropped) == {Overflow.IDENTITY}
    assert waiting.bytes == 0


def test_too_many_bytes_in_all_are_taken_from_those_that_hold_most() -> None:
    waiting = WaitingMessages(1000, bounds(total=50_000))
    modest = [subscriber(f"modest-{i}") for i in range(5)]
    greedy = subscriber("greedy")
    for each in modest:
        waiting.add(each, message(0))
    for number in range(1, 200):
        waiting.add(greedy, message(number))
        assert waiting.bytes <= 50_000
    for each in modest:
        assert numbers(waiting, each) == [0]
    kept = numbers(waiting, greedy)
    assert kept == list(range(200 - len(kept), 200))
    assert len(kept) > 30
    assert set(waiting.dropped) == {Overflow.TOTAL}


@pytest.mark.parametrize("bound", [Overflow.BYTES, Overflow.IDENTITY, Overflow.TOTAL])
def test_a_subscription_that_must_not_miss_messages_ends(bound: Overflow) -> None:
    sizes = {Overflow.BYTES: (3_500,), Overflow.IDENTITY: (LARGE, 3_500)}
    waiting = WaitingMessages(1000, bounds(*sizes.get(bound, (LARGE, LARGE, 3_500))))
    strict = subscriber(ends=True)
    for number in range(4):
        if not strict.is_over:
            waiting.add(strict, message(number))
    ((ended, reason),) = waiting.overflowed
    assert ended is strict
    assert strict.is_over
    assert "more than 3,500 bytes waited for" in reason
    assert (len(strict.waiting), waiting.bytes, waiting.dropped.total()) == (0, 0, 0)


@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 5), min_size=1), st.integers(0, 3000), st.booleans()),
        max_size=60,
    )
)
def test_bounds_hold_and_nothing_leaks(steps: list[tuple[set[int], int, bool]]) -> None:
    limits = bounds(4_000, 6_000, 9_000)
    waiting = WaitingMessages(5, limits)
    many = [subscriber(("ann", "bob", "cy")[i % 3], ends=i == 5, id=i) for i in range(6)]
    for number, (chosen, size, is_read) in enumerate(steps):
        one = message(number, size)
        for i in sorted(chosen):
            if not many[i].is_over:
                waiting.add(many[i], one)
        if is_read and many[0].waiting:
            waiting.take(many[0])
        held = {each for each in many if each.waiting}
        for each in many:
            assert len(each.waiting) <= 5
            assert each.waiting_bytes == sum(x.size for x in each.waiting) <= 4_000
        distinct = {x for each in held for x in each.waiting}
        places = sum(len(each.waiting) for each in held)
        assert waiting.bytes == sum(x.size for x in distinct) + places * PLACE_BYTES <= 9_000
        for account in waiting._accounts.values():
            assert account.bytes <= 6_000
            assert account.messages
    for each in many:
        waiting.clear(each)
    assert waiting.bytes == 0
    assert waiting._accounts == {}


def test_large_messages_for_slow_clients_of_a_broker() -> None:
    """As in the attack: slow subscriptions, and messages that are large, not many."""
    exchange = Exchange()
    broker = exchange.add("a", waiting=WaitingBounds(500_000, 800_000, 2_000_000))
    slow = [exchange.client("a", name) for name in ("ann", "bob", "cy", "di")]
    ids = [client.session.subscriptions.subscribe("x >= 0") for client in slow]
    strict = slow[0].session.subscriptions.subscribe("x >= 0", full="end")
    eve = exchange.client("a", "eve")
    exchange.run()
    for client in slow:
        broker.congest(client.link, True, exchange.now_us)
    for x in range(40):
        eve.publish({"x": x}, bytes(100_000), durable=False)
        exchange.run()
        assert broker.snapshot().memory.waiting_bytes <= 800_000
    snapshot = broker.snapshot()
    assert snapshot.overflows["bytes"] == 4 * 36
    assert snapshot.live.delivery_dropped == sum(snapshot.overflows.values())
    for client in slow:
        broker.congest(client.link, False, exchange.now_us)
    exchange.run()
    for client, id in zip(slow, ids, strict=True):
        assert [found["x"] for found in client.got(id)] == [36, 37, 38, 39]
    (ended,) = slow[0].heard(SubscriptionEnded)
    assert isinstance(ended, SubscriptionEnded)
    assert (ended.id, ended.code) == (strict, EndCode.FULL)
    assert ended.reason == "more than 500,000 bytes waited for this subscription"
    assert broker.snapshot().memory.waiting_bytes == 0
