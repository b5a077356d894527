"""What operators do with queues: each act with its answer, its log line, its consumers, and a restart."""

from __future__ import annotations

import pytest

from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.codes import EndCode, Full, RefusalCode
from palio.protocol.wire.control import (
    Done,
    Published,
    Subscribed,
    SubscriptionEnded,
    Unsubscribed,
)
from palio.protocol.wire.queue_control import (
    EndQueue,
    ListQueues,
    ListSubscriptions,
    MoveQueue,
    PauseQueue,
    Purged,
    PurgeQueue,
)
from tests.protocol.broker.operators import (
    access,
    ask,
    enter,
    office,
    queues,
    refusal,
    restart,
    subscribe,
)
from tests.protocol.exchange import Client, Exchange, network


def publish(client: Client, *values: int) -> list[int]:
    numbers = [client.publish({"x": value}) for value in values]
    client.exchange.run()
    client.exchange.now_us += 1  # later subscriptions do not replay these
    return numbers


def got(client: Client) -> list[object]:
    return [message["x"] for one in {a.id for a in client.arrivals} for message in client.got(one)]


def ends(client: Client) -> list[tuple[EndCode, str]]:
    found = client.heard(SubscriptionEnded)
    return [(one.code, one.reason) for one in found if isinstance(one, SubscriptionEnded)]


def lazy(exchange: Exchange, name: str = "lazy", **options: object) -> Client:
    """A client of ann that takes one message and acknowledges nothing."""
    ann = enter(exchange, "ann")
    ann.acks = False
    assert isinstance(subscribe(ann, name, credit=1, **options), Subscribed)
    return ann


# ---- grants and names


REQUESTS = [
    (PauseQueue, "ann/q", True),
    (PurgeQueue, "ann/q"),
    (EndQueue, "ann/q"),
    (MoveQueue, "ann/q", "bob"),
    (ListQueues,),
    (ListSubscriptions,),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: one[0].__name__)
def test_without_the_grant_admin_they_are_refused(request_: tuple[type, ...]) -> None:
    exchange = office()
    ann = enter(exchange, "ann")
    subscribe(ann, "q")
    code, reason = refusal(ask(ann, *request_))
    assert code is RefusalCode.DENIED
    assert "'ann' may not " in reason
    assert "ask for the grant `admin`" in reason


@pytest.mark.parametrize("request_", REQUESTS[:4], ids=lambda one: one[0].__name__)
def test_unknown_names_are_refused(request_: tuple[type, ...]) -> None:
    root = enter(office(), "root")
    code, reason = refusal(ask(root, *request_))
    assert code is RefusalCode.UNKNOWN
    assert "broker 'a' has no durable subscription 'ann/q'" in reason
    assert "`palio queues` lists" in reason


# ---- pausing


def test_a_paused_queue_delivers_nothing_until_it_is_resumed_also_after_a_restart() -> None:
    exchange = office()
    ann, root = enter(exchange, "ann"), enter(exchange, "root")
    subscribe(ann, "q")
    assert isinstance(ask(root, PauseQueue, "ann/q", True), Done)
    publish(root, 1, 2)
    assert got(ann) == []
    restart(exchange, ann, root)
    row = queues(root)["ann/q"]
    assert (row.is_paused, row.messages, row.consumers) == (True, 2, 1)
    publish(root, 3)
    assert got(ann) == []
    assert isinstance(ask(root, PauseQueue, "ann/q", False), Done)
    assert got(ann) == [1, 2, 3]
    restart(exchange, ann, root)
    assert not queues(root)["ann/q"].is_paused


def test_what_is_in_flight_may_be_acknowledged_while_a_queue_is_paused() -> None:
    exchange = office()
    root, ann = enter(exchange, "root"), lazy(exchange, "q")
    publish(root, 1, 2)
    ask(root, PauseQueue, "ann/q", True)
    (arrival,) = ann.arrivals
    ann.session.subscriptions.acknowledge(arrival.id, arrival.header.position)
    exchange.run()
    assert queues(root)["ann/q"].messages == 1
    assert len(ann.arrivals) == 1
    ann.acks = True
    ask(root, PauseQueue, "ann/q", False)
    assert got(ann) == [1, 2]


def test_a_paused_queue_that_is_full_does_what_full_queues_do() -> None:
    exchange = office()
    ann, bob, root = (enter(exchange, name) for name in ("ann", "bob", "root"))
    subscribe(ann, "blocks")
    subscribe(bob, "drops", full="drop")
    for name in ("ann/blocks", "bob/drops"):
        ask(root, PauseQueue, name, True)
    publish(root, 1, 2, 3, 4, 5, 6)
    assert queues(root)["ann/blocks"].messages == 4
    for name in ("ann/blocks", "bob/drops"):
        ask(root, PauseQueue, name, False)
    assert got(ann) == [1, 2, 3, 4, 5, 6], "5 and 6 waited with their publisher"
    assert got(bob)[-2:] == [5, 6]


# ---- purging


def test_a_purge_lets_publishers_go_on() -> None:
    exchange = office()
    root, bob, ann = enter(exchange, "root"), enter(exchange, "bob"), lazy(exchange)
    numbers = publish(bob, *range(1, 9))
    assert max(one.number for one in bob.heard(Published)) == numbers[3]  # type: ignore[attr-defined]
    found = ask(root, PurgeQueue, "ann/lazy")
    assert isinstance(found, Purged)
    assert found.messages == 4
    assert max(one.number for one in bob.heard(Published)) == numbers[-1]  # type: ignore[attr-defined]
    assert queues(root)["ann/lazy"].messages == 4
    assert ends(ann) == []


def test_a_purge_survives_a_restart_and_what_comes_later_is_delivered() -> None:
    exchange = office()
    root, ann = enter(exchange, "root"), lazy(exchange)
    publish(root, 1, 2, 3)
    found = ask(root, PurgeQueue, "ann/lazy")
    assert isinstance(found, Purged)
    assert found.messages == 3
    restart(exchange, root)
    row = queues(root)["ann/lazy"]
    assert (row.messages, row.bytes, row.oldest_us) == (0, 0, 0)
    publish(root, 4)
    ann.acks = True
    before = len(ann.arrivals)
    exchange.connect(ann, "a")
    assert got(ann)[before:] == [4]
    assert queues(root)["ann/lazy"].messages == 0


def test_the_acknowledgement_of_a_purged_message_gives_its_credit_back() -> None:
    exchange = office()
    root, ann = enter(exchange, "root"), lazy(exchange)
    publish(root, 1, 2)
    ask(root, PurgeQueue, "ann/lazy")
    publish(root, 3)
    assert got(ann) == [1]
    ann.acks = True
    ann.session.subscriptions.acknowledge(ann.arrivals[0].id, ann.arrivals[0].header.position)
    exchange.run()
    assert got(ann) == [1, 3]


def test_a_large_purge_is_done_in_slices() -> None:
    exchange = office(bounds=Bounds())
    root, ann = enter(exchange, "root"), lazy(exchange)
    for begin in range(0, 12_000, 4000):
        publish(root, *range(begin + 1, begin + 4001))
    found = ask(root, PurgeQueue, "ann/lazy")
    assert isinstance(found, Purged)
    assert found.messages == 12_000
    assert queues(root)["ann/lazy"].messages == 0
    restart(exchange, root)
    assert queues(root)["ann/lazy"].messages == 0
    assert ends(ann) == []


# ---- ending


def test_an_ended_subscription_is_gone_its_consumers_are_told_and_publishers_go_on() -> None:
    exchange = office()
    root, bob, ann = enter(exchange, "root"), enter(exchange, "bob"), lazy(exchange)
    numbers = publish(bob, *range(1, 9))
    found = ask(root, EndQueue, "ann/lazy")
    assert isinstance(found, Purged)
    assert found.messages == 4
    exchange.run()
    assert ends(ann) == [(EndCode.OPERATOR, "operator root/root-1 has ended it for good")]
    assert max(one.number for one in bob.heard(Published)) == numbers[-1]  # type: ignore[attr-defined]
    assert queues(root) == {}
    restart(exchange, root)
    assert queues(root) == {}
    assert exchange.brokers["a"].snapshot().queues.count == 0
    again = enter(exchange, "ann")
    assert isinstance(subscribe(again, "lazy"), Subscribed), "the name is free"


def test_other_brokers_hear_of_the_end() -> None:
    exchange = network([("a", "b")])
    here, there = exchange.client("a", "here"), exchange.client("b", "there")
    subscribe(here, "q")
    exchange.disconnect(here)
    exchange.advance(1_000_000)
    assert len(exchange.brokers["b"].parts.messages.subscriptions()) == 1
    root = exchange.client("a", "root")
    ask(root, EndQueue, "anybody/q")
    exchange.advance(1_000_000)
    assert exchange.brokers["b"].parts.messages.subscriptions() == []
    publish(there, 1)
    assert exchange.brokers["b"].snapshot().streams.get("a", 0) == 0


# ---- moving


def test_a_moved_subscription_belongs_to_the_other_identity() -> None:
    exchange = office()
    root, ann, bob = enter(exchange, "root"), lazy(exchange), enter(exchange, "bob")
    publish(root, 1, 2, 3)
    assert isinstance(ask(root, MoveQueue, "ann/lazy", "bob"), Done)
    ((code, reason),) = ends(ann)
    assert code is EndCode.MOVED
    assert reason == "operator root/root-1 has given it to identity 'bob'"
    assert isinstance(subscribe(bob, "lazy"), Subscribed)
    assert got(bob) == [1, 2, 3]
    publish(root, 4)
    assert got(bob) == [1, 2, 3, 4]
    row = queues(root)["bob/lazy"]
    assert (row.identity, row.messages, row.consumers) == ("bob", 0, 1)
    assert list(queues(root)) == ["bob/lazy"]


def test_a_move_survives_a_restart_and_the_first_owner_may_use_the_name_again() -> None:
    exchange = office()
    root, ann = enter(exchange, "root"), lazy(exchange)
    publish(root, 1)
    ask(root, MoveQueue, "ann/lazy", "bob")
    restart(exchange, root)
    again = enter(exchange, "ann", "again")
    assert isinstance(subscribe(again, "lazy"), Subscribed)
    publish(root, 2)
    assert got(again) == [2]
    bob = enter(exchange, "bob")
    assert isinstance(subscribe(bob, "lazy"), Subscribed)
    assert got(bob) == [1, 2]
    assert sorted(queues(root)) == ["ann/lazy", "bob/lazy"]
    restart(exchange, root, again, bob)
    assert sorted(queues(root)) == ["ann/lazy", "bob/lazy"]
    publish(root, 3)
    assert (got(again), got(bob)) == ([2, 3], [1, 2, 3])
    assert ask(root, EndQueue, "ann/lazy")
    assert list(queues(root)) == ["bob/lazy"]
    assert got(ann) == [1]


def test_a_move_is_refused_where_it_makes_no_sense() -> None:
    exchange = office()
    root, ann, bob = enter(exchange, "root"), enter(exchange, "ann"), enter(exchange, "bob")
    subscribe(ann, "q")
    subscribe(bob, "q")
    code, reason = refusal(ask(root, MoveQueue, "ann/q", "bob"))
    assert (code, "there is a durable subscription 'bob/q' already" in reason) == (
        RefusalCode.CONFLICT, True,
    )  # fmt: skip
    code, reason = refusal(ask(root, MoveQueue, "ann/q", "zoe"))
    assert (code, "there is no identity 'zoe'" in reason) == (RefusalCode.UNKNOWN, True)
    code, reason = refusal(ask(root, MoveQueue, "ann/q", "cy"))  # the grant of cy is narrower
    assert (code, "'cy' may not subscribe to" in reason) == (RefusalCode.DENIED, True)
    code, reason = refusal(ask(root, MoveQueue, "ann/q", "ann"))
    assert code is RefusalCode.CONFLICT
    assert sorted(queues(root)) == ["ann/q", "bob/q"]
    assert not ends(ann)


def test_messages_that_travel_during_a_move_arrive_once() -> None:
    exchange = network([("a", "b")], access=access())
    ann, root = enter(exchange, "ann"), enter(exchange, "root")
    ann.acks = False
    subscribe(ann, "q", credit=1)
    exchange.advance(1_000_000)
    there = exchange.client("b", "there", token="bob")
    exchange.part("a", "b")
    publish(there, 1, 2)  # they wait at b, for the name that the subscription had
    ask(root, MoveQueue, "ann/q", "bob")
    exchange.join("a", "b")
    publish(there, 3)
    bob = enter(exchange, "bob", "here")
    subscribe(bob, "q")
    exchange.advance(2_000_000)
    assert got(bob) == [1, 2, 3]


def test_an_old_owner_cannot_follow_a_moved_subscription() -> None:
    exchange = office()
    root, ann = enter(exchange, "root"), lazy(exchange)
    ask(root, MoveQueue, "ann/lazy", "bob")
    publish(root, 1)
    ann.acks = True
    subscribe(ann, "lazy")  # a new one of this name
    publish(root, 2)
    assert got(ann) == [2]
    assert queues(root)["bob/lazy"].messages == 2


# ---- commits and logs


def test_an_act_is_answered_and_logged_after_its_commit() -> None:
    exchange = office()
    root = enter(exchange, "root")
    subscribe(lazy(exchange), "q")
    core = exchange.brokers["a"]
    id = root.session.requests.ask(PauseQueue, "ann/lazy", True)
    core.receive(root.link, b"".join(root.session.take()), exchange.now_us)
    effects = core.take()
    assert effects.commit is not None
    assert (effects.writes, effects.notices) == ({}, [])
    exchange.stores["a"].begin()
    exchange.stores["a"].end()
    core.committed(effects.commit, exchange.now_us)
    effects = core.take()
    (notice,) = effects.notices
    assert notice.event == "queue paused"
    assert notice.fields == {"queue": "ann/lazy", "by": "root/root-1"}
    events = root.session.receive(b"".join(effects.writes[root.link]), exchange.now_us)
    assert events == [Done(id)]


def test_an_uncommitted_act_is_lost_with_a_crash() -> None:
    exchange = office()
    root, ann = enter(exchange, "root"), lazy(exchange)
    publish(root, 1, 2)
    for kind, *fields in ((PurgeQueue, "ann/lazy"), (EndQueue, "ann/lazy"),
                          (MoveQueue, "ann/lazy", "bob"), (PauseQueue, "ann/lazy", True)):  # fmt: skip
        root.session.requests.ask(kind, *fields)
        core = exchange.brokers["a"]
        core.receive(root.link, b"".join(root.session.take()), exchange.now_us)
        core.take()
        root.session.requests._in_flight.clear()
        restart(exchange, root)
        row = queues(root)["ann/lazy"]
        assert (row.messages, row.is_paused) == (2, False)
    assert not ann.heard(Unsubscribed)


def test_a_successor_in_the_moment_of_an_end() -> None:
    exchange = office()
    root, ann = enter(exchange, "root"), lazy(exchange)
    publish(root, 1)
    core = exchange.brokers["a"]
    root.session.requests.ask(EndQueue, "ann/lazy")
    core.receive(root.link, b"".join(root.session.take()), exchange.now_us)
    successor = enter(exchange, "ann", "successor")
    assert isinstance(subscribe(successor, "lazy"), Subscribed)
    publish(root, 2)
    assert got(successor) == [2]
    assert [code for code, _ in ends(ann)] == [EndCode.OPERATOR]
    assert queues(root)["ann/lazy"].full is Full.BLOCK
