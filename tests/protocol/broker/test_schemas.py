"""Messages that a schema is asked about: refused with its name, counted, and nothing else is touched."""

from __future__ import annotations

import json

import pytest

from palio import Message, parse
from palio.protocol.broker.schemas import REASON_CHARACTERS, MessageSchema
from palio.protocol.broker.snapshot import SchemaCounters
from palio.protocol.wire.control import Rejected
from palio.protocol.wire.frames import message_frame
from palio.protocol.wire.headers import PublishHeader
from tests.protocol.exchange import ANYBODY, Client, Exchange


def needs_id(message: Message) -> str | None:
    return None if "id" in message else 'it has no attribute "id"'


def no_x(message: Message) -> str | None:
    return "x" * 5000 if "x" in message else None


ORDERS = MessageSchema(parse("kind = 'order'"), needs_id)
SCHEMAS = {"orders": ORDERS, "all": MessageSchema(parse("TRUE"), no_x)}


def scene(
    *, defers: bool = False, **schemas: MessageSchema
) -> tuple[Exchange, Client, Client, list[int]]:
    exchange = Exchange(defers=defers)
    exchange.add("a", ["b"], schemas=schemas)
    exchange.add("b", ["a"])
    exchange.join("a", "b")
    exchange.run()
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    ids = [one.session.subscriptions.subscribe("TRUE") for one in (ann, bob)]
    exchange.run()
    return exchange, ann, bob, ids


@pytest.mark.parametrize("durable", [False, True])
def test_a_message_that_is_not_valid(durable: bool) -> None:
    exchange, ann, bob, ids = scene(**SCHEMAS)
    number = ann.publish({"kind": "order"}, durable=durable)
    for message in ({"kind": "order", "id": 1}, {"kind": "offer"}, {"x": 1}):
        ann.publish(message, durable=durable)
    exchange.run()
    exchange.run()
    first, second = ann.heard(Rejected)
    assert isinstance(first, Rejected)
    assert first.number == number
    assert first.reason == (
        "the message is not valid by the schema 'orders': it has no attribute \"id\""
    )
    assert isinstance(second, Rejected)
    assert "schema 'all'" in second.reason
    assert len(second.reason) < REASON_CHARACTERS + 100
    for client, id in ((ann, ids[0]), (bob, ids[1])):
        assert sorted(map(str, client.got(id))) == [
            "{'kind': 'offer'}", "{'kind': 'order', 'id': 1}",
        ]  # fmt: skip
    counted = exchange.brokers["a"].snapshot()
    assert counted.table.schemas == {"orders": SchemaCounters(2, 1), "all": SchemaCounters(3, 1)}
    assert counted.live.rejected == 2


def test_messages_of_other_brokers_are_not_asked_about() -> None:
    exchange, ann, bob, ids = scene(**SCHEMAS)
    bob.publish({"kind": "order"}, durable=False)
    exchange.run()
    assert ann.got(ids[0]) == [{"kind": "order"}]
    assert exchange.brokers["a"].snapshot().table.schemas["orders"] == SchemaCounters(0, 0)


@pytest.mark.parametrize("text", [
    b'{"kind": "order"}', b'{"kind": "or\\u0064er"}', b'{"\\u006bind": "order"}', b'{"kind":"order","id":null}',
    b'{"id": null, "kind": "order"}', b'{"kind": "order", "Id": 1}', b'{"kind": "order", "id": {"a": 1}}',
])  # fmt: skip
@pytest.mark.parametrize("many", [1, 90])
@pytest.mark.parametrize("defers", [False, True])
def test_ways_around_a_schema(text: bytes, many: int, defers: bool) -> None:
    exchange, ann, _, ids = scene(defers=defers, orders=ORDERS)
    frames = [message_frame(PublishHeader(i, 5, False), text, b"") for i in range(1, many + 1)]
    exchange.brokers["a"].receive(ann.link, b"".join(frames), exchange.now_us)
    exchange.run()
    assert len(ann.heard(Rejected)) == many
    assert ann.got(ids[0]) == []


def test_a_large_batch_is_checked_in_parts_and_in_order() -> None:
    checked: list[object] = []

    def check(message: Message) -> str | None:
        checked.append(message["n"])
        return None

    exchange, ann, _, _ = scene(defers=True, numbers=MessageSchema(parse("n >= 0"), check))
    frames = [
        message_frame(PublishHeader(i, 5, False), json.dumps({"n": i}).encode(), b"")
        for i in range(1, 2001)
    ]
    broker = exchange.brokers["a"]
    broker.receive(ann.link, b"".join(frames), exchange.now_us)
    turns = []
    while broker.take().has_more:
        turns.append(len(checked))
    assert len(turns) >= 4
    assert turns[0] <= 800
    assert checked == list(range(1, 2001))


def test_schemas_are_replaced() -> None:
    exchange, ann, _, ids = scene(orders=ORDERS)
    broker = exchange.brokers["a"]
    ann.publish({"kind": "order"}, durable=False)
    exchange.run()
    broker.reload_access(ANYBODY, exchange.now_us, {"orders": ORDERS, "all": SCHEMAS["all"]})
    assert broker.snapshot().table.schemas["orders"] == SchemaCounters(1, 1)  # the same goes on
    broker.reload_access(ANYBODY, exchange.now_us, {})
    ann.publish({"kind": "order"}, durable=False)
    exchange.run()
    assert ann.got(ids[0]) == [{"kind": "order"}]
    assert broker.snapshot().table.schemas == {}
