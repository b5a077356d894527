"""Topic filters in packets: taken apart, refused by reason codes, and texts that read back."""

from __future__ import annotations

import pytest
from hypothesis import given

from palio.model.language import parse
from palio.model.topics import as_filter
from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode
from palio.protocol.mqtt.topics import TopicFilter, check_topic, parse_topic_filter
from tests.strategies import topic_filters


@given(topic_filters())
def test_the_predicate_of_a_topic_filter_reads_back(topic_filter: str) -> None:
    text = TopicFilter(topic_filter, "", "").predicate
    assert [set(one) for one in parse(text).filters] == [set(as_filter(topic_filter))]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a/+", ("a/+", "", "")),
        ("$share/g/a/#", ("a/#", "g", "")),
        ("a/+?temp > 25", ("a/+", "", "temp > 25")),
        ("$share/g/#? x = 'a?b' ", ("#", "g", "x = 'a?b'")),
        ("$SYS/#", ("$SYS/#", "", "")),
    ],
)
def test_topic_filters_are_taken_apart(text: str, parts: tuple[str, str, str]) -> None:
    assert parse_topic_filter(text, 8) == parts


@pytest.mark.parametrize(
    "text",
    ["", "a#", "#/a", "a+/b", "a/#/b", "$share", "$share/", "$share/g", "$share/g/", "$share/+/a", "?x=1", "/" * 8],
)  # fmt: skip
def test_what_is_not_a_topic_filter(text: str) -> None:
    with pytest.raises(PacketError) as raised:
        parse_topic_filter(text, 8)
    assert raised.value.code is ReasonCode.INVALID_TOPIC_FILTER


@pytest.mark.parametrize("topic", ["", "a/+", "#", "a/b#", "/" * 8])
def test_what_is_not_a_topic(topic: str) -> None:
    with pytest.raises(PacketError) as raised:
        check_topic(topic, 8)
    assert raised.value.code is ReasonCode.INVALID_TOPIC_NAME
