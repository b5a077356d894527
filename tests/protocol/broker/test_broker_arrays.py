"""Arrays, bytes and decimals from a publisher to subscribers, over brokers; nothing fails for them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from palio import Message, Predicate, parse
from palio.model.predicate import Constraint
from palio.protocol.wire.control import Occurred
from palio.routing import interest_table
from palio.routing.interest_table import InterestTable
from tests.protocol.exchange import network

LINE = [("a", "b"), ("b", "c")]
SENT = {
    "tags": ["a", "b", None, [1, {"k": "é"}]],
    "price": Decimal("450.00"),
    "blob": b"\0\xff",
    "flight": {"carrier": "UA", "legs": [{"from": "MXP"}]},
}
TEXT = Message(SENT).to_json()


@pytest.mark.parametrize("routing", ["forwarding", "PSF", "DRP"])
def test_a_subscriber_gets_the_array_that_was_published(routing: str) -> None:
    exchange = network(LINE, routing=routing)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    subscribe = ann.session.subscriptions.subscribe
    wanted = {
        text: subscribe(text)
        for text in (
            "tags IS NOT NULL",
            "blob IS NOT NULL AND price = 450",
            "array_contains(tags, 'b')",
            "size(tags) = 4 AND flight.carrier = 'UA'",
            "flight.legs IS NOT NULL AND gone IS NULL",
        )
    }
    others = [
        subscribe(text)
        for text in (
            "tags IS NULL",
            "tags = 'a'",
            "tags != 'x'",
            "tags LIKE '%a%'",
            "array_contains(tags, 'z')",
            "blob = 'x' OR blob > 0",
            "typeof(tags) = 'string'",
        )
    ]
    exchange.run()
    for durable in (False, True):
        bob.session.publisher.publish(TEXT.encode(), b"", exchange.now_us, durable)
    exchange.run()
    got = {text: [arrival.frame.attributes for arrival in ann.arrivals if arrival.id == id]
           for text, id in wanted.items()}  # fmt: skip
    assert got == dict.fromkeys(wanted, [TEXT.encode()] * 2)
    assert not {arrival.id for arrival in ann.arrivals} & {*others}
    assert Message.from_json(ann.arrivals[0].frame.attributes) == Message(SENT)


def test_an_array_is_no_key_of_a_pattern() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    ann.session.subscriptions.subscribe(pattern="[x = 1] then [x = 2] same k")
    exchange.run()
    for x, k in ((1, '["q"]'), (2, '["q"]'), (1, '"q"'), (1, '{"$binary": ""}'), (2, '"q"')):
        exchange.now_us += 10
        text = f'{{"x": {x}, "k": {k}, "other": [{x}]}}'
        bob.session.publisher.publish(text.encode(), b"", exchange.now_us, False)
        exchange.run()
    (occurred,) = ann.heard(Occurred)
    parts = [Message.from_json(item.attributes) for item in occurred.items]  # type: ignore[attr-defined]
    assert parts == [Message({"x": x, "k": "q", "other": [x]}) for x in (1, 2)]


def test_tables_that_are_compiled_and_evaluated_agree() -> None:
    table = InterestTable()
    table.change("tags", dict.fromkeys(parse("tags IS NOT NULL"), True))
    asked = [Predicate.of(Constraint("tags", "=", f"t{i}")) for i in range(600)]
    found = [table.interfaces_of(Message(SENT))]
    for i, predicate in enumerate(asked):
        table.change(f"i{i}", dict.fromkeys(predicate, True))
    assert len(table) > interest_table.EVALUATED_MAX
    found.append(table.interfaces_of(Message(SENT)))
    assert list(map(list, found)) == [["tags"], ["tags"]]
