"""Topic filters of MQTT as predicates: they select what an MQTT subscription selects."""

from __future__ import annotations

import pytest
from hypothesis import given

import palio
from palio.dialects import mqtt, read
from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.topics import topic_attributes
from palio.protocol.mqtt.topics import parse_topic_filter
from tests.strategies import topic_filters, topics

CONDITIONS = (
    "",
    "x > 1",
    "x = 1 OR y = 2 OR z IS NULL",
    "NOT (x > 1 AND y < 2)",
    "topic_1 = 'a'",
    "x > 1 -- (",
    "x > 1 /* ) */",
)


@given(topic_filters(), topics)
def test_it_is_the_predicate_of_a_subscription(topic_filter: str, topic: str) -> None:
    for condition in CONDITIONS:
        text = f"{topic_filter}?{condition}"
        own, subscription = mqtt.read(text), palio.parse(parse_topic_filter(text, 128).predicate)
        for more in ({}, {"x": 2}, {"x": 1, "y": 3, "z": 0}):
            message = {**topic_attributes(topic), **more}
            assert own.matches(message) == subscription.matches(message)


def test_by_the_name_of_the_dialect() -> None:
    hot = read("site/+/temp?temp > 25", "mqtt")
    for topic, temp, is_hot in (
        ("site/8/temp", 30.5, True), ("site/8/temp", 21.5, False), ("site/temp", 30.5, False),
        ("site/8/temp/x", 30.5, False),
    ):  # fmt: skip
        assert hot.matches({**palio.topics.attributes(topic), "temp": temp}) is is_hot
    assert palio.covers(read("site/#", "mqtt"), hot)


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "not empty", 0),
        ("a+", "stands alone in a level", 0),
        ("a/#/b", "last level", 0),
        ("/" * 200, "128 levels", 0),
        ("é" * 40_000, "65,535 bytes", 0),
        ("a\x00", "null character", 0),
        ("$share/g/a", "no predicate", 0),
        ("a/+?x >", "", 7),
        ("a/+?x > 1) OR (TRUE", "", 9),
    ],
)
def test_what_is_no_topic_filter(text: str, reason: str, position: int) -> None:
    with pytest.raises(ParseError) as raised:
        mqtt.read(text)
    assert reason in str(raised.value)
    assert raised.value.position == position


def test_bounds() -> None:
    either = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(5))
    assert len(mqtt.read(f"a/+?{either}").filters) == 32
    with pytest.raises(LimitExceeded):
        mqtt.read(f"a/+?{either}", limit=31)
    either = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(10))
    assert len(mqtt.read(f"a/+?{either}").filters) == 1024
    with pytest.raises(LimitExceeded, match="100,000 together"):
        mqtt.read(f"{'a/' * 127}a?{either}")
    with pytest.raises(InvalidPredicate):
        mqtt.read(None)  # type: ignore[arg-type]
