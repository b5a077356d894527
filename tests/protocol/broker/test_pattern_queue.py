"""Messages for many patterns are processed a part in each turn, in order, and what waits is bounded."""

from __future__ import annotations

import json

import pytest

from palio.errors import RoutingError
from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Constraint
from palio.protocol.broker import pattern_queue
from palio.protocol.broker.effects import Output
from palio.protocol.broker.pattern_queue import EFFORT_PER_UNIT, PatternQueue
from palio.protocol.broker.router_port import RouterPort
from palio.protocol.broker.scheduler import SLICE_UNITS, TURN_UNITS, WorkList
from palio.protocol.broker.settings import SubscriptionBounds, WaitingBounds
from palio.protocol.interfaces import RemoteBroker, Watcher
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import (
    Occurred,
    Refused,
    Subscribed,
    SubscribeRequest,
    Unsubscribed,
    UnsubscribeRequest,
)
from palio.protocol.wire.frames import message_frame
from palio.protocol.wire.headers import PublishHeader
from palio.routing import Joined, Publish, Received, Restate, Role, Router
from palio.routing.patterns import Assembled, Compound, Sieved, Task, Watch, parse
from palio.routing.patterns.active_watch import ActiveWatch
from tests.protocol.broker.test_scheduler import NOW, Host

PAIR = "[x = 1] then [x = 2] within 1 hour"


def watching(count: int, **settings: object) -> Host:
    """A broker where client 1 watches a pattern so many times; client 2 publishes."""
    host = Host(**settings)  # type: ignore[arg-type]
    host.client(1)
    host.client(2)
    host.send(1, *(SubscribeRequest(i, pattern=PAIR) for i in range(1, count + 1)))
    host.run()
    assert sum(isinstance(one, Subscribed) for one in host.heard[1]) == count
    host.heard[1].clear()
    return host


def frames(*values: int, first: int = 1) -> bytes:
    return b"".join(
        message_frame(PublishHeader(i, NOW + i, False), json.dumps({"x": x}).encode(), b"")
        for i, x in enumerate(values, first)
    )


def occurred(host: Host) -> dict[int, list[list[int]]]:
    """By watch: the numbers of the messages in each occurrence."""
    found: dict[int, list[list[int]]] = {}
    for one in host.heard[1]:
        if isinstance(one, Occurred):
            found.setdefault(one.id, []).append([item.number for item in one.items])
    return found


class Taken:
    """Counts what watches take, and the effort of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = self.effort = 0
        take = ActiveWatch.take

        def counted(active: ActiveWatch, publication: object) -> list[object]:
            self.count += 1
            self.effort += active.effort + 20
            return take(active, publication)  # type: ignore[arg-type]

        monkeypatch.setattr(ActiveWatch, "take", counted)


def test_many_messages_for_many_watches_take_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    host, taken = watching(100), Taken(monkeypatch)
    host.core.receive(2, frames(*[1, 2] * 20), NOW)
    largest, turns = 0, 0
    while True:
        before = taken.effort
        has_more = host.turn()
        largest = max(largest, taken.effort - before)
        turns += 1
        if not has_more:
            break
    assert taken.count == 4000
    assert largest <= (TURN_UNITS + 2 * SLICE_UNITS) * EFFORT_PER_UNIT
    assert turns > 20
    expected = [[i, i + 1] for i in range(1, 41, 2)]
    assert occurred(host) == dict.fromkeys(range(1, 101), expected)
    assert host.core.snapshot().memory.pattern_waiting_bytes == 0


def test_a_few_messages_are_processed_in_the_turn_in_which_they_come() -> None:
    host = watching(3)
    host.core.receive(2, frames(1, 2), NOW)
    host.turn()
    assert occurred(host) == {id: [[1, 2]] for id in (1, 2, 3)}
    assert not host.turn()


def test_a_message_goes_only_to_the_watches_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    host = watching(1)
    host.send(1, *(SubscribeRequest(i, pattern=f"[w = {i}] then [w = 0]") for i in range(2, 300)))
    host.run()
    taken = Taken(monkeypatch)
    host.core.receive(2, frames(1, 2), NOW)
    host.run()
    assert taken.count == 2


def test_who_watches_later_gets_nothing_of_what_waits() -> None:
    host = watching(100)
    host.core.receive(2, frames(*[1] * 50), NOW)
    host.turn()
    assert host.core.parts.data_path.patterns.is_busy
    host.send(2, SubscribeRequest(1, pattern=PAIR))
    host.core.receive(2, frames(2, first=51), NOW)
    host.run()
    assert occurred(host) == {id: [[50, 51]] for id in range(1, 101)}
    assert not any(isinstance(one, Occurred) for one in host.heard[2])


def test_who_leaves_gets_nothing_of_what_waits_and_others_get_all() -> None:
    host = watching(100)
    host.core.receive(2, frames(*[1, 2] * 20), NOW)
    host.turn()
    host.send(1, UnsubscribeRequest(100))
    host.run()
    ended = [isinstance(one, Unsubscribed) for one in host.heard[1]].index(True)
    late = [one for one in host.heard[1][ended:] if isinstance(one, Occurred)]
    assert 100 not in {one.id for one in late}
    found = occurred(host)
    assert all(len(found[id]) == 20 for id in range(1, 100))


def test_a_client_that_is_gone_leaves_nothing_behind() -> None:
    host = watching(100)
    host.core.receive(2, frames(*[1, 2] * 20), NOW)
    host.turn()
    host.core.close(1, NOW)
    host.readers.pop(1)
    host.run()
    assert len(host.core.parts.port.router.watches) == 0
    assert not host.core.parts.data_path.patterns.is_busy


def test_what_waits_is_bounded_and_the_oldest_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_queue, "WAITING_BYTES_MAX", 4000)
    host = watching(200)
    for first in range(1, 1001, 10):
        host.core.receive(2, frames(*[1] * 9, 2, first=first), NOW)
        host.core.parts.data_path.flush()
        assert host.core.snapshot().memory.pattern_waiting_bytes <= 4000
    host.run()
    snapshot = host.core.snapshot()
    assert 500 < snapshot.live.pattern_dropped < 1000
    assert snapshot.memory.pattern_waiting_bytes == 0
    assert occurred(host)[1][-1] == [999, 1000]


def test_what_patterns_hold_is_bounded_and_shown() -> None:
    host = Host(waiting=WaitingBounds(watch_bytes=200_000))
    host.client(1)
    host.client(2)
    host.send(1, SubscribeRequest(1, pattern="[k > 0] then [k < 0] same k"))
    host.run()
    for i in range(1, 101):
        attributes = json.dumps({"k": i, "s": "x" * 10_000}).encode()
        host.core.receive(2, message_frame(PublishHeader(i, NOW + i, False), attributes, b""), NOW)
        host.run()
    snapshot = host.core.snapshot()
    assert 50_000 < snapshot.memory.pattern_bytes <= 200_000
    assert snapshot.live.pattern_keys_dropped > 80
    host.core.close(1, NOW)
    host.run()
    assert host.core.snapshot().memory.pattern_bytes == 0


def test_answers_of_neighbours_wait_in_order_and_wrong_ones_are_refused_at_once() -> None:
    """A neighbour assembles for 200 watches; one answer is more than a turn does at once."""
    router, rome = Router("1", advertisements=True), RemoteBroker("rome")
    port, work = RouterPort(router), WorkList()
    queue = PatternQueue(port, Output(), work, defers=True)
    port.step(Joined(rome, Role.NEIGHBOUR))
    port.step(Received(rome, Restate((), (Advertisement((Constraint("x", "in", [1, 2]),)),))))
    for id in range(200):
        port.step(Joined(Watcher(1, id)))
        port.step(Received(Watcher(1, id), Watch(id, parse("[x = 1] then [x = 2] then [x = 3]"))))
    [entry] = router.watches.available
    assert (entry.task, len(entry.uses)) == (Task.ASSEMBLE, 200)
    for number in (1, 3):
        pair = (message(number, x=1), message(number + 1, x=2))
        queue.hear("rome", Assembled(entry.id, Compound(pair)))
    queue.observe(None, MessageBatch.of([Entry("bob", 5, 5, b'{"x": 3}', b"")]))
    with pytest.raises(RoutingError, match="with Sieved"):
        queue.hear("rome", Sieved(entry.id, message(6, x=1)))
    assert queue.is_busy
    assert queue.bytes > 0
    assert port.occurrences == []
    [slices] = work.new
    assert sum(1 for _ in slices) > 5
    assert (queue.is_busy, queue.bytes) == (False, 0)
    found = [[m.number for m in one.compound.messages] for _, one in port.occurrences]
    assert found == [[3, 4, 5]] * 200


def message(number: int, **attributes: int) -> Publish:
    return Publish(Message(attributes), "bob", number, number)


def test_a_client_watches_a_limited_number_of_patterns() -> None:
    host = watching(3, subscriptions=SubscriptionBounds(watches_max=3))
    host.send(1, SubscribeRequest(4, pattern=PAIR), SubscribeRequest(5, "x = 1"))
    host.run()
    refused, subscribed = host.heard[1]
    assert isinstance(refused, Refused)
    assert (refused.code, refused.reason) == (
        RefusalCode.LIMIT,
        "a client may watch 3 patterns here",
    )
    assert isinstance(subscribed, Subscribed)
    host.send(1, UnsubscribeRequest(2), SubscribeRequest(4, pattern=PAIR))
    host.run()
    assert isinstance(host.heard[1][-1], Subscribed)
