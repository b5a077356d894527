"""The store's promises, one by one; all of them at once are in test_message_store_machine.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from palio.errors import PalioError
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.keys import UnknownFormat
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.durability.queues import Full
from palio.protocol.durability.subscriptions import Verdict
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.control import CarryAck, Durable
from palio.protocol.wire.headers import CarryHeader, CarryTarget
from palio.routing.matches import Grouped

from .memory_store import MemoryStore

ANN = "ann/1"
DAY_US = 24 * 3600 * 1_000_000


def all_match(text: bytes) -> Verdict:
    yield 1
    return True


def odd(text: bytes) -> Verdict:
    yield 1
    return int(text) % 2 == 1


class Host:
    """A message store and its disk; time is what a test says."""

    def __init__(self, broker: str = "A", **bounds: Any) -> None:
        self.broker = broker
        self.bounds = Bounds(**bounds)
        self.disk = MemoryStore()
        self.now_us = 1000
        self.restart()

    def restart(self) -> None:
        self.disk.crash()
        self.messages = MessageStore(
            self.disk, self.broker, f"epoch-{self.broker}", self.now_us, self.bounds
        )

    def turn(self) -> Outgoing:
        """Commit, and take what may go out."""
        ticket = self.messages.seal()
        if ticket is not None:
            self.disk.commit()
            self.messages.committed(ticket, self.now_us)
        return self.messages.take(self.now_us)

    def wait(self, us: int) -> Outgoing:
        self.now_us += us
        self.messages.wake(self.now_us)
        return self.turn()

    def told_window(self, broker: str) -> None:
        """Another broker takes as many messages as this one."""
        self.messages.acknowledged(CarryAck(self.broker, f"epoch-{self.broker}", broker, 0), 0)

    def create(self, name: str, since: int = 0, full: Full = Full.BLOCK, version: int = 1) -> None:
        self.messages.create(name, Durable("", since, version), full, all_match, self.now_us)

    def publish(self, numbers: Sequence[int], *keys: tuple[str, str]) -> int:
        return self.offer([Entry(ANN, n, 0, b"%d" % n, b"body") for n in numbers], *keys)

    def offer(self, entries: Sequence[Entry], *keys: tuple[str, str]) -> int:
        batch = MessageBatch.of(entries, durable=True)
        matches = Grouped.of([tuple(DurableSubscription(*key) for key in keys)] * len(batch))
        return self.messages.publish(batch, matches, self.now_us)


def stored(number: int) -> CarryAck:
    """What A says to B."""
    return CarryAck("B", "epoch-B", "A", number, Bounds().window, Bounds().window_bytes)


def delivered(out: Outgoing) -> list[int]:
    return [n for delivery in out.deliveries for n in delivery.batch.numbers()]


def test_nothing_goes_out_before_its_commit() -> None:
    host = Host()
    host.create("x")
    assert host.messages.take(0).created == []
    assert host.turn().created == ["x"]
    host.messages.attach("x", "c", 10)
    host.publish([1], ("A", "x"))
    assert host.messages.take(0) == Outgoing()
    first = host.messages.seal()
    assert first is not None
    host.publish([2], ("A", "x"))
    host.messages.committed(first, 0)
    out = host.messages.take(0)
    assert (out.published, delivered(out)) == ([(ANN, 1)], [1]), "2 belongs to the next commit"
    out = host.turn()
    assert (out.published, delivered(out)) == ([(ANN, 2)], [2])
    assert host.messages.seal() is None


def test_a_number_is_stored_once() -> None:
    host = Host()
    host.create("x")
    host.messages.attach("x", "c", 10)
    host.publish([1, 2], ("A", "x"))
    assert host.messages.last_number(ANN) == 0, "a crash could still lose them"
    assert host.publish([1, 2, 5], ("A", "x")) == 3
    out = host.turn()
    assert (out.published, delivered(out)) == ([(ANN, 5)], [1, 2, 5])
    host.publish([5], ("A", "x"))
    assert host.messages.seal() is None
    assert host.messages.take(0).published == [(ANN, 5)], "the answer was lost, so once more"
    host.restart()
    assert host.messages.last_number(ANN) == 5
    assert host.messages.statistics().publishers == 1


def test_silent_publishers_are_forgotten() -> None:
    host = Host(publisher_us=DAY_US)
    host.publish([7])
    host.turn()
    host.wait(DAY_US - 10)
    host.restart()
    assert host.messages.last_number(ANN) == 7
    host.wait(DAY_US)
    host.wait(DAY_US)
    host.restart()
    assert host.messages.last_number(ANN) == 0


def test_old_epochs_of_an_origin_are_forgotten() -> None:
    host = Host(publisher_us=DAY_US)
    target = CarryTarget("A", 1, 1, ("1@x",))
    for epoch in ("old", "new"):
        host.messages.arrive(
            CarryHeader("B", epoch, (target,), ANN, 1, 0), target, b"", b"", host.now_us
        )
        host.wait(2 * DAY_US)
    host.wait(2 * DAY_US)
    assert [key.rpartition(":")[2] for key in host.disk.safe if "/i/" in key] == ["new"]


def test_a_message_for_several_brokers_is_one_carry() -> None:
    host = Host()
    for broker, name in (("B", "x"), ("B", "y"), ("C", "z")):
        host.messages.learn(broker, name, Durable("", 0, 3), all_match, 0)
    host.messages.reachable(["B", "C"], 0)
    host.publish([1], ("B", "x"), ("C", "z"), ("B", "y"), ("D", "unknown"))
    ((batch, row, targets),) = host.turn().carries
    assert batch.number(row) == 1
    assert targets == (CarryTarget("B", 1, 1, ("3@x", "3@y")), CarryTarget("C", 1, 1, ("3@z",)))


def test_an_acknowledgement_frees_what_was_carried() -> None:
    host = Host(retention_us=0)
    host.messages.learn("B", "x", Durable("", 0, 1), all_match, 0)
    host.messages.reachable(["B"], 0)
    host.publish([1], ("B", "x"))
    host.turn()
    for ack in (
        CarryAck("A", "other", "B", 1),
        CarryAck("Z", "epoch-A", "B", 1),
        CarryAck("A", "epoch-A", "C", 1),
    ):
        host.messages.acknowledged(ack, 0)
    assert host.messages.statistics().backlogs == {"B": 1}
    host.messages.acknowledged(CarryAck("A", "epoch-A", "B", 1), 0)
    assert host.messages.statistics().backlogs == {"B": 0}
    host.wait(DAY_US)
    assert host.messages.statistics().messages == 0
    host.restart()
    host.messages.reachable(["B"], 0)
    host.publish([2], ("B", "x"))
    assert host.turn().carries[0][2] == (CarryTarget("B", 2, 2, ("1@x",)),), "numbers go on"


def carried(
    number: int, first: int = 1, name: str = "1@x"
) -> tuple[CarryHeader, CarryTarget, bytes, bytes]:
    target = CarryTarget("A", number, first, (name,))
    return CarryHeader("B", "epoch-B", (target,), ANN, number, 0), target, b"1", b"body"


def test_what_arrives_is_answered_after_it_is_stored_and_again_when_it_comes_again() -> None:
    host = Host()
    host.create("x")
    host.turn()
    host.messages.attach("x", "c", 10)
    host.messages.arrive(*carried(2), 0)
    assert host.turn().acks == []
    host.messages.arrive(*carried(1), 0)
    assert host.messages.take(0).acks == []
    out = host.turn()
    assert (out.acks, delivered(out)) == ([stored(2)], [1, 2])
    host.restart()
    host.messages.arrive(*carried(1), 0)
    assert host.turn().acks == [stored(2)]


def test_a_doubled_message_is_not_answered_with_more_than_is_safe() -> None:
    host = Host()
    host.create("x")
    host.messages.arrive(*carried(1), 0)
    host.turn()
    host.messages.arrive(*carried(2), 0)
    host.messages.seal()
    host.messages.arrive(*carried(2), 0)
    assert host.messages.take(0).acks == [stored(1)]


def test_a_stream_that_gave_up_numbers_has_no_gap_after_a_crash() -> None:
    host = Host()
    host.messages.learn("B", "x", Durable("", host.now_us, 1), all_match, host.now_us)
    host.publish([1], ("B", "x"))
    host.turn()
    host.publish([2], ("B", "x"))
    host.messages.unlearn("B", "x", host.now_us)
    host.now_us += 1
    host.messages.learn("B", "x", Durable("", host.now_us, 2), all_match, host.now_us)
    host.publish([3], ("B", "x"))
    host.turn()
    host.restart()
    host.messages.reachable(["B"], 0)
    ((batch, row, targets),) = host.turn().carries
    assert (batch.number(row), targets) == (3, (CarryTarget("B", 3, 3, ("2@x",)),))


def test_what_was_dropped_does_not_come_back_after_a_crash() -> None:
    host = Host(queue=2)
    host.create("x", full=Full.DROP)
    host.publish([1, 2], ("A", "x"))
    host.turn()
    host.publish([3], ("A", "x"))
    host.turn()
    host.restart()
    host.messages.attach("x", "c", 10)
    assert delivered(host.turn()) == [2, 3]
    assert host.messages.statistics().bytes > 0


def test_a_subscription_that_has_the_name_of_another_gets_nothing_of_it() -> None:
    host = Host()
    host.create("x")
    host.turn()
    host.messages.remove("x", 0)
    host.create("x", version=2)
    out = host.turn()
    assert [(e.name, e.reason) for e in out.ended] == [("x", "")]
    assert out.created == ["x"]
    host.messages.attach("x", "c", 10)
    host.messages.arrive(*carried(1), 0)
    out = host.turn()
    assert (out.acks, out.deliveries) == ([stored(1)], [])


def test_a_full_queue_lets_a_stream_wait_until_it_has_room() -> None:
    host = Host(queue=2)
    host.create("x")
    host.turn()
    for number in (1, 2, 3):
        host.messages.arrive(*carried(number), 0)
    assert host.turn().acks == [stored(2)]
    host.messages.attach("x", "c", 10)
    assert delivered(host.turn()) == [1, 2]
    host.messages.acknowledge("c", [1, 2], 0)
    out = host.turn()
    assert (out.acks, delivered(out)) == ([stored(3)], [3])


def test_publishers_wait_for_a_full_queue_but_not_for_others() -> None:
    host = Host(queue=2)
    host.create("x")
    host.create("y")
    assert host.publish([1, 2, 3, 4], ("A", "x")) == 2
    assert host.offer([Entry("bob/1", 1, 0, b"1", b"")], ("A", "y")) == 1
    assert not host.turn().has_room
    host.messages.attach("x", "c", 10)
    host.turn()
    host.messages.acknowledge("c", [1], 0)
    assert host.turn().has_room
    assert not host.turn().has_room, "said once"
    assert host.publish([3, 4], ("A", "x")) == 1


def test_publishers_wait_for_a_full_stream() -> None:
    host = Host(backlog=2)
    host.messages.learn("B", "x", Durable("", 0, 1), all_match, 0)
    assert host.publish([1, 2, 3], ("B", "x")) == 2
    host.turn()
    host.messages.unlearn("B", "x", 0)
    assert host.turn().has_room, "nobody wants it any more"


def test_publishers_wait_for_a_full_journal() -> None:
    host = Host(journal_bytes=1500, retention_us=10)
    assert host.offer([Entry(ANN, n, 0, b"", b"." * 1000) for n in (1, 2, 3)]) == 2
    assert not host.turn().has_room
    assert host.wait(DAY_US).has_room


def test_drop_and_end() -> None:
    host = Host(queue=2)
    host.create("x", full=Full.DROP)
    host.create("y", full=Full.END)
    host.turn()
    host.messages.attach("y", "c", 1)
    assert host.publish([1, 2, 3], ("A", "x"), ("A", "y")) == 3
    assert host.messages.take(0).ended == []
    (ended,) = host.turn().ended
    assert (ended.name, ended.consumers) == ("y", ["c"])
    assert "more than 2" in ended.reason
    host.restart()
    assert [stored.name for stored in host.messages.subscriptions()] == ["x"]
    host.messages.attach("x", "c", 10)
    assert delivered(host.turn()) == [2, 3]
    with pytest.raises(PalioError, match="no durable subscription 'y'"):
        host.messages.attach("y", "c", 10)


def test_what_comes_after_dropped_messages_waits_for_the_commit() -> None:
    """A crash before the commit undoes the drop: the consumer would get the old after the new."""
    host = Host(queue=2)
    host.create("x", full=Full.DROP)
    host.turn()
    host.publish([1, 2], ("A", "x"))
    host.turn()
    host.publish([3], ("A", "x"))
    ticket = host.messages.seal()
    assert ticket is not None
    host.messages.attach("x", "c", 10)
    assert delivered(host.messages.take(0)) == []
    host.disk.commit()
    host.messages.committed(ticket, host.now_us)
    assert delivered(host.messages.take(0)) == [2, 3]


def test_what_comes_after_purged_messages_waits_for_the_commit() -> None:
    host = Host()
    host.create("x")
    host.turn()
    host.publish([1, 2, 3], ("A", "x"))
    host.turn()
    assert host.messages.administration.purge("x", 2, 10) == 2
    host.messages.attach("x", "c", 10)
    assert delivered(host.messages.take(0)) == []
    ticket = host.messages.seal()
    assert ticket is not None
    assert delivered(host.messages.take(0)) == []
    host.disk.commit()
    host.messages.committed(ticket, host.now_us)
    assert delivered(host.messages.take(0)) == [3]


def test_a_queue_that_is_always_too_full_delivers_after_each_commit() -> None:
    host = Host(queue=2)
    host.create("x", full=Full.DROP)
    host.turn()
    host.messages.attach("x", "c", 1)
    host.publish([1, 2, 3], ("A", "x"))
    for n in range(4, 24, 4):
        ticket = host.messages.seal()
        assert ticket is not None
        host.publish(range(n, n + 4), ("A", "x"))
        host.disk.commit()
        host.messages.committed(ticket, host.now_us)
        (got,) = host.messages.take(0).deliveries
        assert list(got.batch.numbers()) == [n - 2]
        host.messages.acknowledge("c", got.positions, host.now_us)


def test_since_replays_what_was_published_here_and_only_once() -> None:
    host = Host()
    for n in range(1, 7):
        host.now_us = 1000 * n
        host.publish([n])
        host.turn()
    host.messages.learn("B", "x", Durable("", 3000, 1), odd, host.now_us)
    host.messages.reachable(["B"], 0)
    host.told_window("B")
    assert [batch.number(row) for batch, row, _ in host.turn().carries] == [3, 5]
    host.restart()
    host.messages.learn("B", "x", Durable("", 3000, 1), odd, host.now_us)
    host.publish([7], ("B", "x"))
    host.turn()
    assert host.messages.statistics().backlogs == {"B": 3}
    host.create("y", since=5000)
    host.messages.attach("y", "c", 10)
    assert delivered(host.turn()) == [5, 6, 7]


def test_a_subscription_from_the_future_begins_before_it_was_learned() -> None:
    """The clock of its home broker is an hour ahead: what was stored since it began is not lost."""
    host = Host()
    for seconds in (10, 20, 30):
        host.now_us = 1_000_000 * seconds
        host.publish([seconds // 10])
        host.turn()
    host.now_us += 100_000  # the link state took so long, and message 3 was stored meanwhile
    ahead_us = host.now_us + 3_600_000_000
    host.messages.learn("B", "x", Durable("", ahead_us, 1), odd, host.now_us)
    host.messages.reachable(["B"], 0)
    assert [batch.number(row) for batch, row, _ in host.turn().carries] == [3]


def test_a_replay_waits_for_room_and_goes_on_after_a_restart() -> None:
    host = Host(queue=2, retention_us=10_000, sweep_us=1)
    host.publish([1, 2, 3])
    host.turn()
    host.create("x")
    host.turn()
    host.publish([4], ("A", "x"))
    host.wait(DAY_US)
    assert host.messages.statistics().queues == {"x": 2}
    seen: list[int] = []
    for _ in range(8):
        host.restart()
        host.create("x")  # the core says it again, with its matching function
        host.messages.attach("x", "c", 10)
        out = host.wait(1_000_000)
        seen += delivered(out)
        host.messages.acknowledge(
            "c", [n for delivery in out.deliveries for n in delivery.positions], 0
        )
        host.wait(1_000_000)
    assert seen == [1, 2, 3, 4]
    host.wait(DAY_US)
    assert host.messages.statistics().messages == 0


def test_acknowledgements_are_lazy_and_then_safe() -> None:
    host = Host()
    host.create("x")
    host.publish([1, 2, 3], ("A", "x"))
    host.turn()
    host.messages.attach("x", "c", 10)
    host.turn()
    host.messages.acknowledge("c", [3, 1], host.now_us)
    assert host.messages.seal() is None, "no commit for it alone, not yet"
    assert host.messages.deadline_us <= host.now_us + host.bounds.lazy_us
    host.wait(host.bounds.lazy_us)
    host.restart()
    assert host.messages.attach("x", "c", 10) == 1
    out = host.turn()
    assert [(d.positions, d.redelivered) for d in out.deliveries] == [([2], True)]


def test_a_seal_puts_a_segment_and_a_record_whatever_the_number_of_messages_and_queues() -> None:
    host = Host()
    names = [f"s{i}" for i in range(50)]
    for name in names:
        host.create(name)
    host.turn()
    before = host.disk.puts
    host.publish(range(1, 1001), *(("A", name) for name in names))
    host.turn()
    assert host.disk.puts - before == 3


def test_a_new_store_says_its_format() -> None:
    host = Host()
    assert not host.disk.safe
    host.publish([1])
    host.turn()
    assert host.disk.safe["store/format"] == b"3"
    host.restart()
    assert host.messages.last_number(ANN) == 1


@pytest.mark.parametrize(
    ("key", "value", "found", "remedy"),
    [
        ("deposit/p/ann/1", b"", "1", "written by an older version.*empty folder.*older version"),
        (
            "store/format",
            b"2",
            "2",
            "an older version, whose messages have no headers.*empty folder",
        ),
        ("store/format", b"4", "4", "written by a newer version"),
    ],
)
def test_a_store_of_another_version_is_an_error(
    key: str, value: bytes, found: str, remedy: str
) -> None:
    disk = MemoryStore()
    disk.put(key, value)
    with pytest.raises(UnknownFormat, match=remedy) as error:
        MessageStore(disk, "A", "epoch", 0)
    assert error.value.found == found


def test_no_consumer_is_left_when_a_subscription_ends() -> None:
    host = Host()
    host.create("x")
    host.messages.attach("x", "c", 1)
    host.messages.remove("x", 0)
    assert host.messages.statistics().consumers == 0
    host.messages.grant_credit("c", 1)
    host.messages.acknowledge("c", [1], 0)
    host.messages.detach("c")


def test_numbers_of_an_empty_queue_and_stream_go_on_after_a_restart() -> None:
    host = Host()
    host.create("x")
    host.messages.learn("B", "y", Durable("", 0, 1), all_match, 0)
    host.publish([1, 2], ("A", "x"), ("B", "y"))
    host.turn()
    host.messages.attach("x", "c", 10)
    host.turn()
    host.messages.acknowledge("c", [1, 2], 0)
    host.messages.acknowledged(CarryAck("A", "epoch-A", "B", 2), 0)
    host.wait(DAY_US)
    host.restart()
    assert host.messages.last_position("x") == 2
    assert host.messages.attach("x", "c", 10) == 2
    host.messages.reachable(["B"], 0)
    host.publish([3], ("A", "x"), ("B", "y"))
    out = host.turn()
    assert [delivery.positions for delivery in out.deliveries] == [[3]]
    assert out.carries[0][2] == (CarryTarget("B", 3, 3, ("1@y",)),)


def test_a_stream_goes_in_its_own_order() -> None:
    """A replay gives old messages new numbers: not the journal's order, which others wait for."""
    host = Host(broker="a")
    host.publish([1, 2, 3, 4])
    host.turn()
    host.messages.learn("b", "new", Durable("", 2000, 1), all_match, 1000)
    host.publish([5], ("b", "new"))
    host.messages.learn("b", "old", Durable("", 0, 2), all_match, 1000)
    host.messages.reachable(["b"], 1000)
    host.told_window("b")
    numbers = [target.number for _, _, targets in host.turn().carries for target in targets]
    assert len(numbers) > 4
    assert numbers[0] == 1
