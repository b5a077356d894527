"""A replay spends a bounded number of units at a time, and still gives each message once, in order."""

from __future__ import annotations

from collections.abc import Iterator

from palio.protocol.durability.queues import Full
from palio.protocol.durability.replay import REPLAY_UNITS
from palio.protocol.durability.subscriptions import Matching, Verdict
from palio.protocol.wire.control import Durable

from .test_message_store import Host, delivered

SLACK = 2000
"""What one part of a verdict, and a page, may cost beyond the units that are left."""


class Meter:
    """Counts what verdicts cost; each takes `units`, in parts."""

    def __init__(self, units: int) -> None:
        self.units = units
        self.spent = 0

    def matching(self) -> Matching:
        def decide(text: bytes) -> Verdict:
            for _ in range(self.units // 1000):
                self.spent += 1000
                yield 1000
            return int(text) % 2 == 1

        return decide


def wakes(host: Host, meter: Meter) -> Iterator[int]:
    """What each wake costs, until no replay can continue."""
    while host.messages.deadline_us <= host.now_us:
        meter.spent = 0
        host.messages.wake(host.now_us)
        yield meter.spent


def create(host: Host, name: str, meter: Meter) -> None:
    durable = Durable("", 0, 1)
    host.messages.create(name, durable, Full.BLOCK, meter.matching(), host.now_us)


def test_a_step_stops_within_a_segment() -> None:
    host = Host()
    host.publish(range(1, 101))
    host.turn()
    meter = Meter(3000)
    create(host, "x", meter)
    assert meter.spent <= REPLAY_UNITS + SLACK
    costs = list(wakes(host, meter))
    assert len(costs) >= 100 * 3000 // REPLAY_UNITS - 1
    assert max(costs) <= REPLAY_UNITS + SLACK
    host.messages.attach("x", "c", 1000)
    assert delivered(host.turn()) == list(range(1, 101, 2))


def test_a_step_stops_within_a_message() -> None:
    host = Host()
    host.publish([1, 2, 3])
    host.turn()
    meter = Meter(10 * REPLAY_UNITS)
    create(host, "x", meter)
    costs = list(wakes(host, meter))
    assert len(costs) >= 29
    assert max(costs) <= REPLAY_UNITS + SLACK
    host.messages.attach("x", "c", 1000)
    assert delivered(host.turn()) == [1, 3]


def test_many_replays_share_the_units_and_take_turns() -> None:
    host = Host()
    host.publish(range(1, 21))
    host.turn()
    meter = Meter(4000)
    for name in "abcdefgh":
        create(host, name, meter)
    assert meter.spent <= REPLAY_UNITS + SLACK
    ends: dict[str, int] = {}
    for at, spent in enumerate(wakes(host, meter)):
        assert spent <= REPLAY_UNITS + SLACK
        for stored in host.messages.subscriptions():
            if stored.cursor is None:
                ends.setdefault(stored.name, at)
    assert len(ends) == 8
    assert min(ends.values()) >= max(ends.values()) // 2, "the last one did not wait for all others"
    for name in "abcdefgh":
        host.messages.attach(name, name, 1000)
    assert sorted(delivered(host.turn())) == sorted(list(range(1, 21, 2)) * 8)


def test_a_subscription_without_a_past_needs_no_units() -> None:
    host = Host()
    host.publish(range(1, 101))
    host.turn()
    create(host, "slow", Meter(10 * REPLAY_UNITS))
    host.now_us += 1
    host.messages.create("new", Durable("", host.now_us, 2), Full.BLOCK, Meter(0).matching(), 0)
    cursors = {stored.name: stored.cursor for stored in host.messages.subscriptions()}
    assert cursors["slow"] == 1
    assert cursors["new"] is None


def test_a_replay_that_stopped_within_a_message_goes_on_after_a_crash() -> None:
    host = Host()
    host.publish([1, 2, 3, 4, 5])
    host.turn()
    meter = Meter(3 * REPLAY_UNITS)
    create(host, "x", meter)
    for _ in range(4):
        host.messages.wake(host.now_us)
    host.turn()
    host.messages.wake(host.now_us)  # not committed
    host.restart()
    create(host, "x", meter)
    for _ in wakes(host, meter):
        host.turn()
    host.messages.attach("x", "c", 1000)
    assert delivered(host.turn()) == [1, 3, 5]


def test_no_commit_says_that_a_replay_has_not_advanced() -> None:
    host = Host()
    host.publish([1])
    host.turn()
    create(host, "x", Meter(10 * REPLAY_UNITS))
    host.turn()
    host.messages.wake(host.now_us)
    assert host.messages.seal() is None
