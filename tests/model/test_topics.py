"""Topic filters as filters: they match as the specification says, and cover each other as they should."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given

from palio.model.covering import covers
from palio.model.topics import as_filter, is_topic_attribute, topic_attributes
from tests.strategies import topic_filters, topics


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


def test_names_of_topic_attributes() -> None:
    assert all(map(is_topic_attribute, ["topic", "topic_1", "topic_27", "topic_levels"]))
    assert not any(map(is_topic_attribute, ["topics", "topic_", "topic_x", "topic_levels2", "x"]))
