"""What quenching tells a publisher covers what is wanted, and has nobody's constants."""

from __future__ import annotations

import pytest
from hypothesis import given

from palio.model.covering import covers
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.protocol.broker.access import EVERYTHING, Access, Identity, token_hash
from palio.protocol.broker.disclosure import Disclosure, disclosed, generalized
from palio.protocol.broker.quench import QUENCH_US
from tests.protocol.exchange import Exchange
from tests.strategies import filters, messages

LEVELS = (Disclosure.RANGES, Disclosure.NAMES)


@pytest.mark.parametrize("level", LEVELS)
@given(found=filters, message=messages)
def test_what_is_told_covers_what_is_wanted(
    level: Disclosure, found: Filter, message: Message
) -> None:
    told = generalized(found, level)
    assert told.matches(message) or not found.matches(message)
    assert covers(Predicate((told,)), Predicate((found,)))
    assert parse(str(told)) == Predicate((told,)) or not told.constraints


@pytest.mark.parametrize(
    ("predicate", "ranges"),
    [
        ("x = 437", "x >= 256 AND x <= 512"),
        ("x < 437", "x <= 512"),
        ("x > -3.5", "x >= -4.0"),
        ("x IN (3, 70)", "x >= 2 AND x <= 128"),
        ("x <= 9223372036854775807", "x IS NOT NULL"),
        ("x >= 9007199254740993", "x >= 9007199254740992"),
        ("x <= 9007199254740993", "x <= 18014398509481984"),
        ("x != 7", "x IS NOT NULL"),
        ("s LIKE 'secret%'", "typeof(s) = 'string'"),
        ("s IN ('secret', 'other')", "typeof(s) = 'string'"),
        ("s IS NULL AND x IS NOT NULL", "s IS NULL AND x IS NOT NULL"),
        ("b = TRUE", "typeof(b) = 'bool'"),
    ],
)
def test_ranges(predicate: str, ranges: str) -> None:
    (found,) = parse(predicate).filters
    assert str(generalized(found, Disclosure.RANGES)) == ranges


def test_who_may_see_what() -> None:
    wanted = list(parse("price < 437 OR dest = 'MXP'").filters)
    nobody = Identity("eve", publish=EVERYTHING)
    buyer = Identity("bob", subscribe=parse("dest IS NOT NULL"), publish=EVERYTHING)
    everybody = Identity("ann", subscribe=EVERYTHING, publish=EVERYTHING)
    for level in Disclosure:
        assert disclosed(wanted, everybody, level) == wanted
    assert disclosed(wanted, nobody, Disclosure.EXACT) == wanted
    assert disclosed(wanted, nobody, Disclosure.NOTHING) is None
    told = disclosed(wanted, buyer, Disclosure.RANGES)
    assert told is not None
    assert [str(found) for found in told] == ["price <= 512", "dest = 'MXP'"]


def test_a_publisher_without_a_grant_to_subscribe_does_not_learn_constants() -> None:
    exchange = Exchange()
    access = Access(
        tokens={token_hash("p"): Identity("p", publish=EVERYTHING)},
        anonymous=Identity("anybody", EVERYTHING, EVERYTHING),
    )
    exchange.add("a", access=access)
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob", token="p")
    ann.session.subscriptions.subscribe("account = 'DE89370400440532013000' AND amount > 4711")
    bob.session.quenching.switch(True)
    exchange.run()
    exchange.advance(2 * QUENCH_US)
    told = str(bob.session.quenching.wanted)
    assert "DE89" not in told
    assert "4711" not in told
    assert "amount >= 4096" in told
    assert not bob.session.quenching.wants(Message({"amount": 5000}))
    assert bob.session.quenching.wants(Message({"amount": 5000, "account": "?"}))
