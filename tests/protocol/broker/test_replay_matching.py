from __future__ import annotations

import pytest

from palio.errors import InvalidValue
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.protocol.broker.replay_matching import PART_UNITS, matching
from palio.protocol.durability.subscriptions import Verdict


def verdict(decide: Verdict) -> tuple[bool, list[int]]:
    """The verdict, and what each part of it has cost."""
    parts: list[int] = []
    while True:
        try:
            parts.append(next(decide))
        except StopIteration as end:
            return end.value, parts


@pytest.mark.parametrize(
    "text", [b"{}", b'{"x": 1}', b'{"x": 5, "y": "ab"}', b'{"x": 9, "y": "b"}', b'{"y": null}']
)
def test_it_decides_as_the_predicate_does(text: bytes) -> None:
    message = Message.from_json(text)
    for predicate in [
        parse("x = 1 OR (x > 4 AND y LIKE 'a%')"),
        parse("y IS NULL OR y LIKE '%b%'"),
        parse("x != 1 AND x != 5"),
        Predicate(()),
        parse("TRUE"),
    ]:
        assert verdict(matching(predicate)(text))[0] is predicate.matches(message)


def test_a_large_predicate_is_decided_in_parts() -> None:
    """One filter, and the product of two disjunctions."""
    conjunction = " AND ".join(f"x != {n}" for n in range(50 * PART_UNITS // 10))
    is_selected, parts = verdict(matching(parse(conjunction))(b'{"x": -1}'))
    assert is_selected
    assert len(parts) >= 5
    product = " AND ".join(f"a{n} = 1" for n in range(20)) + " AND (z = 1 OR z = 2 OR z = 3)"
    text = "{" + ", ".join(f'"a{n}": 1' for n in range(20)) + ', "z": 3}'
    is_selected, parts = verdict(matching(parse(product))(text.encode()))
    assert is_selected
    assert 63 <= sum(parts) <= 63 + len(text)


def test_searches_in_long_texts_cost_more() -> None:
    predicate = parse(" OR ".join(f"s LIKE '%q{n}%'" for n in range(100)))
    short = sum(verdict(matching(predicate)(b'{"s": "a"}'))[1])
    long = sum(verdict(matching(predicate)(b'{"s": "%s"}' % (b"a" * 60_000)))[1])
    assert long > 20 * short


def test_what_cannot_be_parsed_raises() -> None:
    with pytest.raises(InvalidValue):
        next(matching(parse("x = 1"))(b"{"))
