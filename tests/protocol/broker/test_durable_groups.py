"""Groups of durable subscriptions: each group has a queue of its own, and its members share it."""

from __future__ import annotations

import msgspec
import pytest

from palio.protocol.durability import keys
from palio.protocol.wire.codes import EndCode, RefusalCode
from palio.protocol.wire.control import Done, Subscribed, SubscriptionEnded
from palio.protocol.wire.queue_control import EndQueue, ForgetDurable, MoveQueue, PurgeQueue
from tests.protocol.broker.operators import (
    ask,
    enter,
    office,
    queues,
    refusal,
    restart,
    subscribe,
    subscriptions,
)
from tests.protocol.exchange import Client, Exchange

ALL = [1, 2, 3, 4]


def publish(client: Client, *values: int) -> None:
    for x in values:
        client.publish({"x": x})
    client.exchange.run()


def received(*clients: Client) -> list[int]:
    """What these got together, in order of the values."""
    found = [one.frame.attributes for client in clients for one in client.arrivals]
    return sorted(msgspec.json.decode(text)["x"] for text in found)


def waiting(root: Client) -> dict[str, int]:
    return {name: row.messages for name, row in queues(root).items()}


def test_each_group_gets_its_copy_and_its_members_share_it() -> None:
    exchange = office()
    one, two, three, alone = (enter(exchange, "ann", name) for name in ("1", "2", "3", "4"))
    for client, group in ((one, "g1"), (two, "g1"), (three, "g2"), (alone, "")):
        assert isinstance(subscribe(client, "work", group=group), Subscribed)
    publish(enter(exchange, "bob"), *ALL)
    assert received(one, two) == received(three) == received(alone) == ALL
    assert received(one)
    assert received(two)
    root = enter(exchange, "root")
    found = {name: (row.group, row.consumers) for name, row in queues(root).items()}
    assert found == {"ann/work:g1": ("g1", 2), "ann/work:g2": ("g2", 1), "ann/work": ("", 1)}
    rows = {(row.client, row.name, row.group) for row in subscriptions(root)}
    assert ("1", "ann/work:g1", "g1") in rows
    assert ("4", "ann/work", "") in rows


def test_best_effort_messages_go_to_one_member_of_each_group_too() -> None:
    exchange = office()
    clients = [enter(exchange, "ann", name) for name in ("1", "2", "3")]
    for client, group in zip(clients, ("g1", "g1", "g2"), strict=True):
        subscribe(client, "work", group=group)
    bob = enter(exchange, "bob")
    for x in ALL:
        bob.publish({"x": x}, durable=False)
    exchange.run()
    assert received(*clients[:2]) == received(clients[2]) == ALL


def test_queues_of_groups_fill_and_survive_a_restart_each_by_itself() -> None:
    exchange = office()
    one, two = enter(exchange, "ann", "1"), enter(exchange, "ann", "2")
    one.acks = False
    subscribe(one, "work", group="g1")
    subscribe(two, "work", group="g2")
    bob, root = enter(exchange, "bob"), enter(exchange, "root")
    publish(bob, 1, 2)
    assert waiting(root) == {"ann/work:g1": 2, "ann/work:g2": 0}
    exchange.disconnect(two)
    publish(bob, 3)
    exchange.advance(1_000_000)
    restart(exchange, root)
    assert waiting(root) == {"ann/work:g1": 3, "ann/work:g2": 1}
    assert [row.group for row in queues(root).values()] == ["g1", "g2"]
    again, late = enter(exchange, "ann", "1"), enter(exchange, "ann", "2")
    subscribe(again, "work", group="g1")
    subscribe(late, "work", group="g2")
    assert (received(again), received(late)) == ([1, 2, 3], [3])


def test_groups_have_their_home_at_one_broker_and_get_messages_of_others() -> None:
    exchange = Exchange()
    exchange.add("a", ["b"])
    exchange.add("b", ["a"])
    exchange.join("a", "b")
    one, two, far = (exchange.client(at, name) for at, name in (("a", "1"), ("a", "2"), ("b", "3")))
    subscribe(one, "work", group="g1")
    subscribe(two, "work", group="g2")
    publish(far, *ALL)
    assert received(one) == received(two) == ALL
    exchange.crash("b")  # it keeps what it knows of both
    exchange.start("b")
    exchange.join("a", "b")
    publish(exchange.client("b", "4"), 5)
    assert received(one) == received(two) == [*ALL, 5]


def test_a_member_with_another_predicate_is_refused_and_another_group_is_not() -> None:
    exchange = office()
    one, two = enter(exchange, "ann", "1"), enter(exchange, "ann", "2")
    subscribe(one, "work", group="g1")
    ask_other = two.session.subscriptions.subscribe
    refused, separate = (ask_other("x > 2", durable="work", group=g) for g in ("g1", "g2"))
    exchange.run()
    answers = {m.id: m for m in two.control_messages if hasattr(m, "id")}
    code, reason = refusal(answers[refused])
    assert code is RefusalCode.CONFLICT
    assert "the group 'g1' of the durable subscription 'work' has the predicate x > 0" in reason
    assert "all members of a group have the same" in reason
    assert "give this subscription the group's predicate, or another group" in reason
    assert isinstance(answers[separate], Subscribed)
    assert not one.heard(SubscriptionEnded)
    publish(two, *ALL)
    assert (received(one), received(two)) == (ALL, [3, 4])


def test_the_newcomer_is_told_too() -> None:
    exchange = Exchange()
    exchange.add("a")
    for name, group, is_told in (
        ("ann", "", False),
        ("bob", "", True),
        ("cy", "g", False),
        ("dan", "g", False),
    ):
        client = exchange.client("a", name)
        client.session.subscriptions.subscribe("x > 0", durable="work", group=group)
        exchange.run()
        (answer,) = client.heard(Subscribed)
        assert isinstance(answer, Subscribed)
        assert answer.took_over is is_told, name
    ann = exchange.clients[min(exchange.clients)]
    (ended,) = ann.heard(SubscriptionEnded)
    assert isinstance(ended, SubscriptionEnded)
    assert ended.code == "taken_over"


def test_a_client_takes_over_the_queue_without_a_group_and_no_other() -> None:
    exchange = office()
    old, new, member = (enter(exchange, "ann", name) for name in ("old", "new", "member"))
    subscribe(old, "work")
    subscribe(member, "work", group="g1")
    subscribe(new, "work")
    assert [one.code for one in old.heard(SubscriptionEnded)] == [EndCode.TAKEN_OVER]  # type: ignore[attr-defined]
    assert not member.heard(SubscriptionEnded)
    publish(member, *ALL)
    assert (received(old), received(new), received(member)) == ([], ALL, ALL)


def test_one_group_is_forgotten_and_the_others_stay() -> None:
    exchange = office()
    one, two, alone = (enter(exchange, "ann", name) for name in ("1", "2", "3"))
    subscribe(one, "work", group="g1")
    id = two.session.subscriptions.subscribe("x > 0", durable="work", group="g2")
    subscribe(alone, "work")
    root = enter(exchange, "root")
    assert isinstance(ask(alone, ForgetDurable, "work", "g1"), Done)
    assert [end.code for end in one.heard(SubscriptionEnded)] == [EndCode.FORGOTTEN]  # type: ignore[attr-defined]
    assert sorted(queues(root)) == ["ann/work", "ann/work:g2"]
    code, reason = refusal(ask(alone, ForgetDurable, "work", "g1"))
    assert code is RefusalCode.UNKNOWN
    assert "no durable subscription 'ann/work:g1'" in reason
    two.session.subscriptions.unsubscribe(id, forget=True)
    exchange.run()
    assert sorted(queues(root)) == ["ann/work"]
    assert not alone.heard(SubscriptionEnded)


def test_operators_name_a_queue_by_its_group() -> None:
    exchange = office()
    one, two = enter(exchange, "ann", "1"), enter(exchange, "ann", "2")
    one.acks = two.acks = False
    subscribe(one, "work", group="g1")
    subscribe(two, "work", group="g2")
    root = enter(exchange, "root")
    publish(root, 1, 2)
    ask(root, PurgeQueue, "ann/work:g1")
    assert waiting(root) == {"ann/work:g1": 0, "ann/work:g2": 2}
    code, _ = refusal(ask(root, PurgeQueue, "ann/work"))
    assert code is RefusalCode.UNKNOWN
    assert isinstance(ask(root, MoveQueue, "ann/work:g2", "bob"), Done)
    assert waiting(root) == {"ann/work:g1": 0, "bob/work:g2": 2}
    assert not one.heard(SubscriptionEnded)
    heir = enter(exchange, "bob")
    subscribe(heir, "work", group="g2")
    assert received(heir) == [1, 2]
    subscribe(two, "work", group="g2")  # a new one, with another key
    ask(root, EndQueue, "bob/work:g2")
    assert sorted(queues(root)) == ["ann/work:g1", "ann/work:g2"]
    restart(exchange, root)
    assert sorted(queues(root)) == ["ann/work:g1", "ann/work:g2"]


def test_metrics_tell_groups_apart() -> None:
    exchange = office()
    for group in ("g1", "g2"):
        subscribe(enter(exchange, "ann", group), "work", group=group)
    largest = exchange.brokers["a"].snapshot().queues.largest
    assert sorted(largest) == ["ann/work:g1", "ann/work:g2"]


@pytest.mark.parametrize("first", [("a:b", ""), ("a", "b")])
def test_two_queues_that_would_be_shown_alike_are_refused(first: tuple[str, str]) -> None:
    exchange = office()
    ann = enter(exchange, "ann")
    (second,) = {("a:b", ""), ("a", "b")} - {first}
    assert isinstance(subscribe(ann, first[0], group=first[1]), Subscribed)
    code, reason = refusal(subscribe(ann, second[0], group=second[1]))
    assert code is RefusalCode.CONFLICT
    assert "'ann/a:b'" in reason
    assert "choose another name" in reason


# ---- stores of versions that did not store groups


def make_old(exchange: Exchange) -> None:
    """Store the subscriptions as older versions did: without a group."""
    store = exchange.stores["a"]
    for key, value in list(store.scan(keys.SUBSCRIPTIONS)):
        store.put(key, msgspec.msgpack.encode(msgspec.msgpack.decode(value)[:8]))
    store.begin()
    store.end()


def old_office() -> tuple[Exchange, Client]:
    """The queue ann/work of an older version, which holds three messages; and an operator."""
    exchange = office()
    ann, root = enter(exchange, "ann"), enter(exchange, "root")
    subscribe(ann, "work")
    exchange.disconnect(ann)
    publish(root, 1, 2, 3)
    make_old(exchange)
    exchange.advance(1)
    restart(exchange, root)
    assert waiting(root) == {"ann/work": 3}
    return exchange, root


@pytest.mark.parametrize(("group", "shown"), [("g1", "ann/work:g1"), ("", "ann/work")])
def test_the_first_group_that_asks_gets_a_queue_of_an_older_version(group: str, shown: str) -> None:
    exchange, root = old_office()
    one, two = enter(exchange, "ann", "1"), enter(exchange, "ann", "2")
    one.acks = False
    subscribe(one, "work", group=group)
    subscribe(two, "work", group="g2")
    assert (received(one), received(two)) == ([1, 2, 3], [])
    assert waiting(root) == {shown: 3, "ann/work:g2": 0}
    publish(root, 4)
    assert (received(one), received(two)) == ([1, 2, 3, 4], [4])
    exchange.advance(1)
    restart(exchange, root)
    assert waiting(root)[shown] == 4
    late, member = enter(exchange, "ann", "2"), enter(exchange, "ann", "1")
    subscribe(late, "work", group="g3")
    subscribe(member, "work", group=group)
    assert (received(late), received(member)) == ([], [1, 2, 3, 4])


def test_a_queue_of_an_older_version_has_its_predicate_and_is_forgotten_by_its_name() -> None:
    exchange, root = old_office()
    ann = enter(exchange, "ann")
    id = ann.session.subscriptions.subscribe("x > 2", durable="work", group="g1")
    exchange.run()
    refused = [m for m in ann.control_messages if getattr(m, "id", None) == id]
    code, reason = refusal(refused[0])
    assert code is RefusalCode.CONFLICT
    assert reason.startswith(
        "the durable subscription 'work' has the predicate x > 0; unsubscribe it"
    )
    assert waiting(root) == {"ann/work": 3}, "it belongs to nobody yet"
    assert isinstance(ask(ann, ForgetDurable, "work"), Done)
    assert waiting(root) == {}


def test_a_queue_of_an_older_version_does_not_take_the_name_of_another() -> None:
    exchange, root = old_office()
    ann = enter(exchange, "ann")
    subscribe(ann, "work:g1")
    code, reason = refusal(subscribe(ann, "work", group="g1"))
    assert code is RefusalCode.CONFLICT
    assert "operators would see two queues 'ann/work:g1'" in reason
    assert waiting(root) == {"ann/work": 3, "ann/work:g1": 0}


def test_a_queue_of_an_older_version_moves_before_anybody_asks_for_it() -> None:
    exchange, root = old_office()
    assert isinstance(ask(root, MoveQueue, "ann/work", "bob"), Done)
    restart(exchange, root)
    bob = enter(exchange, "bob")
    subscribe(bob, "work", group="g1")
    assert received(bob) == [1, 2, 3]
    assert sorted(queues(root)) == ["bob/work:g1"]
