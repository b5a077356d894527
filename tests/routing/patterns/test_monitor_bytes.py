"""What monitors and watches hold is bounded in bytes, and the count of bytes is right."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from palio.errors import InvalidPattern
from palio.model.message import Message
from palio.routing import Joined, Publish, Received, Router
from palio.routing.patterns import Monitor, Pattern, Watch, parse
from palio.routing.patterns.instances import INSTANCE_BYTES
from palio.routing.patterns.watching import PatternSettings
from tests.routing.patterns.pattern_strategies import patterns, published

LARGE = "x" * 10_000
PAIR = "[k > 0] then [k < 0] same g"


def large(number: int, time: int | None = None, k: int = 1) -> Publish:
    message = Message({"k": k, "g": abs(number), "s": LARGE})
    return Publish(message, "bob", number, number if time is None else time)


def recounted(monitor: Monitor) -> int:
    """What a monitor holds, from its state."""
    held = [m for *_, item in monitor._held for m in [item] if isinstance(m, Publish)]
    total = sum(m.message.memory_bytes for m in held)
    for instance in monitor._instances:
        spans = {id(m): m for span in instance.state.spans() for m in span.messages}
        total += INSTANCE_BYTES + sum(m.message.memory_bytes for m in spans.values())
    return total


def test_bytes_of_a_message() -> None:
    small, wide = Message({"x": 1}), Message({"x": 1, "s": LARGE})
    assert len(LARGE) < wide.memory_bytes - small.memory_bytes < len(LARGE) + 1000
    assert Message({"s": "é" * 100}).memory_bytes >= 200 + Message({"s": ""}).memory_bytes
    assert small.memory_bytes == Message({"x": 1}).memory_bytes


@settings(max_examples=100, deadline=None)
@given(patterns(), published())
def test_the_count_is_that_of_the_state(pattern: Pattern, messages: list[Publish]) -> None:
    for lateness in (0, 5):
        monitor = Monitor(pattern, lateness=lateness)
        for message in messages:
            monitor.feed(message)
            assert monitor.bytes_held == recounted(monitor)
        again = Monitor(pattern, lateness=lateness)
        again.restore(monitor.snapshot())
        assert again.bytes_held == recounted(again)
        monitor.expire(2**40)
        assert monitor.bytes_held == recounted(monitor)


def test_the_keys_that_were_quiet_for_longest_are_dropped() -> None:
    monitor = Monitor(PAIR, bytes_max=100_000)
    for number in range(1, 101):
        monitor.feed(large(number))
        assert monitor.bytes_held <= 100_000
    assert len(monitor) < 10
    assert monitor.counters.keys_dropped == 100 - len(monitor)
    assert monitor.feed(({"k": -1, "g": 1}, 200)) == []
    assert len(monitor.feed(({"k": -1, "g": 100}, 201))) == 1


def test_a_key_that_is_too_large_alone_is_dropped() -> None:
    monitor = Monitor(PAIR, bytes_max=5000)
    monitor.feed(large(1))
    assert (len(monitor), monitor.bytes_held, monitor.counters.keys_dropped) == (0, 0, 1)
    with pytest.raises(InvalidPattern, match="the limits are 1 or more"):
        Monitor(PAIR, bytes_max=0)


def test_what_is_held_is_processed_early() -> None:
    """The oldest goes first, and still has its match."""
    monitor = Monitor("[k > 0] then [k < 0]", lateness=1_000_000, bytes_max=100_000)
    order = list(range(1, 31))
    random.Random(3).shuffle(order)
    found = [c for i in order for c in monitor.feed(large(i, k=1 if i % 2 else -1))]
    assert monitor.bytes_held <= 100_000
    assert found
    assert monitor.counters.late > 0


def watching(**values: int) -> Router:
    router = Router("1", patterns=PatternSettings(**values))  # type: ignore[arg-type]
    for peer in ("ann", "bob"):
        router.step(Joined(peer))
    return router


def test_all_watches_together_are_bounded() -> None:
    """The one that holds most loses half; the small one loses nothing."""
    router = watching(watches_bytes=200_000)
    router.step(Received("ann", Watch(1, parse(PAIR))))
    router.step(Received("ann", Watch(2, parse("[g = 1] then [k < 0 AND g = 1]"))))
    for number in range(1, 101):
        router.step(Received("bob", large(number)))
        assert router.watches.bytes <= 200_000
    assert router.watches.bytes == sum(active.bytes for active in router.watches)
    wide, small = router.watches
    assert wide.keys_dropped > 50
    assert small.keys_dropped == 0
    assert router.watches.keys_dropped == wide.keys_dropped
    step = router.step(Received("bob", Publish(Message({"k": -1, "g": 1}), "bob", 200, 200)))
    assert [send.packet.id for send in step if isinstance(send.peer, str)] == [2]  # type: ignore[union-attr]
    router.step(Received("ann", Watch(1, parse("[g = 5] then [g = 6]"))))
    assert router.watches.bytes == sum(active.bytes for active in router.watches)
    assert router.watches.keys_dropped == wide.keys_dropped


def test_messages_of_one_time_are_not_remembered_for_ever() -> None:
    router = watching(watch_bytes=100_000)
    router.step(Received("ann", Watch(1, parse("[k > 0] then [k < 0]"))))
    for number in range(1, 2001):
        router.step(Received("bob", Publish(Message({"k": 1}), "bob", number, 5)))
    [active] = router.watches
    assert active.bytes <= 100_000
    assert len(active._seen) >= 30
