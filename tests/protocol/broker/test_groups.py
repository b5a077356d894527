"""A live group is one subscription with several members, who have the same predicate."""

from __future__ import annotations

from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import Refused, Subscribed
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
