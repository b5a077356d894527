"""The attributes of topics for native clients."""

from __future__ import annotations

import pytest
from hypothesis import given

import palio
from palio.errors import InvalidValue
from palio.model.topics import topic_attributes
from tests.strategies import topics


@given(topics)
def test_they_are_those_of_mqtt_clients(topic: str) -> None:
    assert palio.topics.attributes(topic) == topic_attributes(topic)


@pytest.mark.parametrize(
    "topic", ["", "a/+", "#", "a\x00b", "/" * 128, "é" * 40_000, "\ud800" * 70_000, None, b"a"]
)
def test_what_is_no_topic(topic: str) -> None:
    with pytest.raises(InvalidValue, match="topic"):
        palio.topics.attributes(topic)
