"""Carried messages: headers stay within the limit, however many durable subscriptions a message is for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from palio.protocol.broker.carrying import targets_by_frame
from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.headers import CarryTarget
from tests.protocol.exchange import Client, Exchange

NAMES = [f"{i:03}-" + "n" * 196 for i in range(400)]


def pair() -> tuple[Exchange, Client, dict[int, int]]:
    """Brokers a and b, and a client at b with 400 durable subscriptions with long names; ids, and
    above which number each gets messages."""
    exchange = Exchange()
    exchange.add("a", ["b"])
    exchange.add("b", ["a"])
    exchange.join("a", "b")
    bob = exchange.client("b", "bob")
    ids = {
        bob.session.subscriptions.subscribe(f"x >= {i}", durable=name): i
        for i, name in enumerate(NAMES)
    }
    exchange.run()
    exchange.advance(2_000_000)
    return exchange, bob, ids


def check(exchange: Exchange, bob: Client, ids: dict[int, int], sent: list[int]) -> None:
    """Each subscription has what it wants once and in order; nothing is left, and the link stays."""
    got: dict[int, list[int]] = {id: [] for id in ids}
    for arrival in bob.arrivals:
        got[arrival.id].append(int(arrival.frame.attributes.split(b":")[1].strip(b" }")))
    assert got == {id: [x for x in sent if x >= least] for id, least in ids.items()}
    assert exchange.brokers["a"].is_linked("b")
    statistics = exchange.brokers["a"].parts.messages.statistics()
    assert statistics.backlogs.get("b", 0) == 0


def test_one_message_for_400_long_names() -> None:
    exchange, bob, ids = pair()
    ann = exchange.client("a", "ann")
    sent = [1000, 0, 399, 200, 1000]
    for x in sent:
        ann.publish({"x": x})
    exchange.run()
    exchange.advance(1_000_000)
    check(exchange, bob, ids, sent)
    assert exchange.brokers["a"].parts.messages.statistics().counters.retries == 0


@pytest.mark.parametrize("crashes", [False, True])
def test_it_is_sent_again_after_a_redial(crashes: bool) -> None:
    exchange, bob, ids = pair()
    exchange.part("a", "b")
    ann = exchange.client("a", "ann")
    sent = [1000, 3, 1001]
    for x in sent:
        ann.publish({"x": x})
    exchange.run()
    if crashes:
        exchange.disconnect(ann)
        exchange.crash("a")
        exchange.start("a")
    exchange.join("a", "b")
    for _ in range(2):  # again in the middle of it
        exchange.round()
        exchange.part("a", "b")
        exchange.join("a", "b")
    exchange.advance(3_000_000)
    check(exchange, bob, ids, sent)


@pytest.mark.parametrize(
    ("origin", "home"),
    [
        (Bounds(), Bounds(window=5)),
        (Bounds(), Bounds(window=1)),
        (Bounds(window=5), Bounds()),
        (Bounds(), Bounds(window_bytes=2000)),
        (Bounds(window_bytes=2000), Bounds(window_bytes=2000)),
    ],
)
def test_windows_may_differ(origin: Bounds, home: Bounds) -> None:
    """No message is sent twice: the origin sends no more than the home broker takes. Here that is less
    than was sent, because a queue is full meanwhile."""
    exchange = Exchange()
    exchange.add("a", ["b"], bounds=origin)
    exchange.add("b", ["a"], bounds=replace(home, queue=10))
    exchange.join("a", "b")
    bob = exchange.client("b", "bob")
    id = bob.session.subscriptions.subscribe("x >= 0", durable="all")
    exchange.run()
    exchange.advance(2_000_000)
    exchange.disconnect(bob)
    ann = exchange.client("a", "ann")
    for x in range(100):
        ann.publish({"x": x}, b"." * 300)
    exchange.run()
    exchange.connect(bob, "b")
    exchange.run()
    exchange.advance(100_000)
    assert bob.got(id) == [{"x": x} for x in range(100)]
    counters = exchange.brokers["a"].parts.messages.statistics().counters
    assert (counters.carried, counters.retries) == (100, 0)


def test_targets_are_put_into_frames_by_their_size() -> None:
    targets = [CarryTarget(f"b{i}", i, 1, ("l" * 1000,) * 10) for i in range(7)]
    frames = list(targets_by_frame(targets))
    assert [len(frame) for frame in frames] == [3, 3, 1]
    assert [target for frame in frames for target in frame] == targets
    assert list(targets_by_frame([])) == []
