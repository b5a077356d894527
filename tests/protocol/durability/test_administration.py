"""What operators see of queues and do with them, at the message store."""

from __future__ import annotations

import msgspec
import pytest

from palio.errors import PalioError
from palio.protocol.durability import keys
from palio.protocol.durability.queues import Full
from palio.protocol.durability.subscriptions import StoredSubscription
from palio.protocol.wire.control import Durable
from tests.protocol.durability.test_message_store import Host, delivered

X = ("A", "x")


def test_the_status_of_a_queue() -> None:
    host = Host()
    host.create("x", full=Full.END)
    host.publish([1, 2], X)
    host.turn()
    stored_us = host.now_us
    host.now_us += 500
    host.publish([3], X)
    host.turn()
    host.messages.attach("x", "c", 10)
    seen = host.messages.administration
    status = seen.status("x")
    assert status is not None
    assert (status.messages, status.stored_us, status.consumers) == (3, stored_us, ["c"])
    assert (status.full, status.is_paused) == (Full.END, False)
    each = status.bytes // 3
    assert each >= len(b"1body")
    host.turn()
    assert seen.credit("x", "c") == 7
    assert seen.credit("x", "d") == seen.credit("y", "c") == 0
    host.messages.acknowledge("c", [1, 2], host.now_us)
    status = seen.status("x")
    assert status is not None
    assert (status.messages, status.bytes, status.stored_us) == (1, each, host.now_us)
    assert seen.status("y") is None
    with pytest.raises(PalioError, match="no durable subscription 'y' here"):
        seen.pause("y", True)


def test_the_largest_queues() -> None:
    host = Host()
    for name in "xyz":
        host.create(name)
    for name, numbers in (("x", [1]), ("y", [2, 3, 4]), ("z", [5, 6])):
        host.publish(numbers, ("A", name))
    found = host.messages.administration.largest(2)
    assert [(one.name, one.messages) for one in found] == [("y", 3), ("z", 2)]


@pytest.mark.parametrize("most", [1, 3, 100])
def test_a_purge_in_steps_with_a_crash_after_it(most: int) -> None:
    host = Host()
    host.create("x")
    host.messages.attach("x", "c", 2)
    host.publish(range(1, 8), X)
    assert delivered(host.turn()) == [1, 2]
    seen = host.messages.administration
    last = seen.last_number("x")
    host.publish([8], X)  # later than the purge
    total = 0
    while count := seen.purge("x", last, most):
        total += count
    assert total == 7
    host.turn()
    host.restart()
    host.create("x")
    host.messages.attach("x", "c", 10)
    assert delivered(host.turn()) == [8]
    host.messages.acknowledge("c", [8], host.now_us)
    host.wait(10_000_000)
    host.wait(4000_000_000)
    assert host.messages.statistics().messages == 0, "nothing refers to the purged messages"


def test_a_purge_out_of_order() -> None:
    """What was acknowledged before in any order is neither purged nor counted again."""
    host = Host()
    host.create("x")
    host.messages.attach("x", "c", 5)
    host.publish(range(1, 8), X)
    host.turn()
    host.messages.acknowledge("c", [2, 4], host.now_us)
    before = host.messages.administration.status("x")
    assert before is not None
    assert host.messages.administration.purge("x", 6, 100) == 4
    status = host.messages.administration.status("x")
    assert status is not None
    assert (before.messages, status.messages, 5 * status.bytes) == (5, 1, before.bytes)
    host.messages.acknowledge("c", [1, 3, 5], host.now_us)
    assert delivered(host.turn()) == [7]


def test_what_is_stored_survives_and_older_records_are_read() -> None:
    host = Host()
    host.messages.create(
        "ann/x", Durable("", 0, 7), Full.BLOCK, lambda t: [True] * len(t), 0, "ann", "x"
    )
    host.turn()
    host.messages.administration.pause("ann/x", True)
    host.messages.administration.assign("ann/x", "bob")
    host.messages.administration.confirm_full("ann/x", Full.DROP)
    host.turn()
    host.restart()
    (stored,) = host.messages.subscriptions()
    assert (stored.owner, stored.called, stored.is_paused, stored.full) == (
        "bob", "x", True, Full.DROP,
    )  # fmt: skip
    # as the version before stored it
    old = ["A", "ann/y", ["", 0, 8], "drop", None]
    host.disk.put(keys.paired(keys.SUBSCRIPTIONS, "A", "ann/y"), msgspec.msgpack.encode(old))
    host.disk.commit()
    host.restart()
    found = {one.name: one for one in host.messages.subscriptions()}
    assert found["ann/y"] == StoredSubscription("A", "ann/y", Durable("", 0, 8), Full.DROP)


def test_an_act_comes_back_after_its_commit() -> None:
    host = Host()
    host.messages.administration.note_act("done")
    ticket = host.messages.seal()
    assert ticket is not None
    assert host.messages.take(0).acts == []
    host.disk.commit()
    host.messages.committed(ticket, 0)
    assert host.messages.take(0).acts == ["done"]
    assert host.messages.take(0).acts == []
