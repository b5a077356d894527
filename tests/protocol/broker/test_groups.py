"""A live group is one subscription with several members, who have the same predicate."""

from __future__ import annotations

import pytest

from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import Credit, Refused, Subscribed, SubscribeRequest
from palio.protocol.wire.frames import MessageFrame
from tests.protocol.broker.test_scheduler import NOW, Host
from tests.protocol.exchange import Exchange


def test_members_with_another_predicate_are_refused_and_told_why() -> None:
    """With two predicates in one group, a message that both select would go to two members."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob, cy = (exchange.client("a", name) for name in ("ann", "bob", "cy"))
    ids = [
        ann.session.subscriptions.subscribe("x > 0", group="g"),
        bob.session.subscriptions.subscribe("x > 5", group="g"),
        cy.session.subscriptions.subscribe("x > 0", group="g"),
    ]
    exchange.run()
    (refused,) = bob.heard(Refused)
    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.CONFLICT
    assert "'g' has the predicate x > 0" in refused.reason
    for x in range(1, 11):
        bob.publish({"x": x}, durable=False)
    exchange.run()
    got = [one["x"] for who, id in ((ann, ids[0]), (cy, ids[2])) for one in who.got(id)]
    assert sorted(got) == list(range(1, 11))  # type: ignore[type-var]
    exchange.disconnect(ann)
    exchange.disconnect(cy)
    bob.session.subscriptions.subscribe("x > 5", group="g")  # the group is over: a new one begins
    exchange.run()
    assert len(bob.heard(Subscribed)) == 1
    assert len(list(broker.parts.subscriptions)) == 1


def test_a_member_that_is_refused_or_gone_is_not_counted() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.session.subscriptions.subscribe("x > 0", group="g", full="block")  # refused: not durable
    exchange.run()
    assert len(ann.heard(Refused)) == 1
    id = ann.session.subscriptions.subscribe("x > 1", group="g")
    exchange.run()
    ann.session.subscriptions.unsubscribe(id)
    exchange.run()
    bob.session.subscriptions.subscribe("x > 2", group="g")
    exchange.run()
    assert not bob.heard(Refused)


def member_of_many(host: Host, link: int, count: int) -> None:
    host.client(link)
    host.send(link, *(SubscribeRequest(i, "x = 5", group="g") for i in range(1, count + 1)))
    host.run()


def test_a_client_that_leaves_a_large_group_is_removed_in_slices_and_gets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host()
    host.client(3)
    member_of_many(host, 1, 400)
    host.client(2)
    host.send(2, SubscribeRequest(1, "x = 5", group="g", credit=2))
    host.run()
    host.heard[2].clear()
    removed: list[int] = []
    local = host.core.parts.subscriptions._local
    monkeypatch.setattr(
        local, "remove", lambda *key: removed.append(1) or type(local).remove(local, *key)
    )
    host.core.close(1, NOW)
    assert not removed
    for number in range(1, 6):
        host.publish(3, number)
    host.turn()
    assert len(removed) < 100
    got = [one.header.number for one in host.heard[2] if isinstance(one, MessageFrame)]  # type: ignore[union-attr]
    assert got == [1, 2], "all that its credit is for"
    host.send(2, Credit(1, 10))
    host.run()
    got = [one.header.number for one in host.heard[2] if isinstance(one, MessageFrame)]  # type: ignore[union-attr]
    assert got == [1, 2, 3, 4, 5], "none of them waited for a member that had left"
    assert len(removed) == 400
    assert len(host.core.parts.table) == 1


def test_a_group_whose_members_have_all_left_is_over_before_they_are_removed() -> None:
    host = Host()
    host.client(4)
    for link in (1, 2):
        member_of_many(host, link, 100)
    for link in (1, 2):
        host.core.close(link, NOW)
    host.send(4, SubscribeRequest(1, "x > 4", group="g"), SubscribeRequest(2, "x > 3", group="g"))
    host.run()
    host.publish(4, 1)
    host.run()
    assert [type(one).__name__ for one in host.heard[4]] == [
        "Subscribed",
        "Refused",
        "MessageFrame",
    ]
    assert len(host.core.parts.table) == 1
    host.core.close(4, NOW)
    host.run()
    assert len(host.core.parts.table) == 0
    assert len(host.core.parts.subscriptions._local) == 0


def test_leaving_groups_that_others_are_in_looks_at_none_of_them_at_once() -> None:
    host = Host()
    for link in (1, 2):
        host.client(link)
        for i in range(1, 101):
            host.send(link, SubscribeRequest(i, "x = 5", group=f"g{i}"))
            host.send(link, SubscribeRequest(100 + i, "x = 5", durable=f"d{i}", group="g"))
        host.run()
    host.turns = 0
    host.core.close(1, NOW)
    host.run()
    assert host.turns > 10
    host.publish(2, 1)
    host.publish(2, 2, durable=True)
    host.run()
    got = [one.header.subscriptions for one in host.heard[2] if isinstance(one, MessageFrame)]
    ids = [id for found in got for id in found]
    assert sorted(ids) == sorted([*range(1, 201), *range(1, 201)])
