"""Topic filters as filters: they match as the specification says, and cover each other as they should."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.model.covering import covers
from palio.model.language import parse
from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode
from palio.protocol.mqtt.topics import (
    TopicFilter,
    as_filter,
    check_topic,
    is_topic_attribute,
    parse_topic_filter,
    topic_attributes,
)

_LEVELS = ["", "a", "b", "$s", "'", "\\"]
topics = st.lists(st.sampled_from(_LEVELS), min_size=1, max_size=3).map("/".join).filter(bool)


@st.composite
def topic_filters(draw: st.DrawFn) -> str:
    levels = draw(st.lists(st.sampled_from([*_LEVELS, "+", "+"]), max_size=3))
    if draw(st.booleans()) or not "/".join(levels):
        levels.append("#")
    return "/".join(levels)


def naive(topic_filter: str, topic: str) -> bool:
    """4.7, word by word."""
    if topic.startswith("$") and topic_filter[0] in "+#":
        return False
    wanted, levels = topic_filter.split("/"), topic.split("/")
    for place, one in enumerate(wanted):
        if one == "#":
            return True
        if place == len(levels):
            return False
        if one not in ("+", levels[place]):
            return False
        if place + 1 == len(levels) and wanted[place + 1 :] == ["#"]:
            return True
    return len(wanted) == len(levels)


@given(topic_filters(), topics)
def test_a_filter_matches_what_its_topic_filter_matches(topic_filter: str, topic: str) -> None:
    assert as_filter(topic_filter).matches(topic_attributes(topic)) == naive(topic_filter, topic)


@given(topic_filters())
def test_the_predicate_of_a_topic_filter_reads_back(topic_filter: str) -> None:
    text = TopicFilter(topic_filter, "", "").predicate
    assert [set(one) for one in parse(text).filters] == [set(as_filter(topic_filter))]


_ALL = ["/".join(t) for n in (1, 2, 3, 4) for t in product(["a", "b", "$s", "zz"], repeat=n)]


@given(topic_filters(), topic_filters())
def test_covering_is_that_of_the_topics(wide: str, narrow: str) -> None:
    is_covered = covers(as_filter(wide), as_filter(narrow))
    witnesses = [topic for topic in _ALL if naive(narrow, topic)]
    if is_covered:
        assert all(naive(wide, topic) for topic in witnesses)
    elif not any("'" in f or "\\" in f or "//" in f"/{f}/" for f in (wide, narrow)):
        assert not all(naive(wide, topic) for topic in witnesses)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [("#", "a/b"), ("a/#", "a"), ("a/#", "a/+"), ("a/+", "a/b"), ("+/b", "a/b"), ("+/#", "a/b/c")],
)
def test_wider_filters_cover_narrower_ones(wide: str, narrow: str) -> None:
    assert covers(as_filter(wide), as_filter(narrow))
    assert not covers(as_filter(narrow), as_filter(wide))


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


def test_names_of_topic_attributes() -> None:
    assert all(map(is_topic_attribute, ["topic", "topic_1", "topic_27", "topic_levels"]))
    assert not any(map(is_topic_attribute, ["topics", "topic_", "topic_x", "topic_levels2", "x"]))
