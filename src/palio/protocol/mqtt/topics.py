"""Topics and topic filters in packets: what is wrong with them is a reason code. `palio.model.topics` has their
attributes and filters.

A filter may have more in front and behind: `$share/GROUP/FILTER` for shared subscriptions, and
`FILTER?CONDITION` for a predicate over the attributes of the messages. A topic name may have a
question mark; in a filter the first one begins the condition.
"""

from __future__ import annotations

from typing import NamedTuple

from palio.model.predicate import Filter
from palio.model.topics import as_filter, wrong_in_filter, wrong_in_topic
from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode

_SHARE = "$share/"


def check_topic(topic: str, levels_max: int) -> None:
    """Raise PacketError for what is not the name of a topic."""
    if wrong := wrong_in_topic(topic, levels_max):
        raise PacketError(ReasonCode.INVALID_TOPIC_NAME, wrong)


class TopicFilter(NamedTuple):
    """A topic filter of a SUBSCRIBE, taken apart."""

    topic_filter: str
    group: str
    """Of a shared subscription; empty: it is not shared."""
    condition: str
    """A predicate's text, or empty."""

    @property
    def filter(self) -> Filter:
        return as_filter(self.topic_filter)

    @property
    def predicate(self) -> str:
        """The text of the predicate that selects the messages."""
        text = str(self.filter)
        return f"{text} AND {enclosed(self.condition)}" if self.condition else text


def enclosed(condition: str) -> str:
    """A condition in parentheses; one that ends with a comment does not swallow what follows.

    >>> enclosed("x > 1"), enclosed("x > 1 -- hot")
    ('(x > 1)', '(x > 1 -- hot\\n)')
    """
    return f"({condition}\n)" if "--" in condition else f"({condition})"


def parse_topic_filter(text: str, levels_max: int) -> TopicFilter:
    """Take a topic filter apart; raises PacketError.

    >>> parse_topic_filter("$share/g/a/+?x > 1", 8)
    TopicFilter(topic_filter='a/+', group='g', condition='x > 1')
    """
    topic_filter, _, condition = text.partition("?")
    group = ""
    if topic_filter.startswith(_SHARE) or topic_filter == "$share":
        group, slash, topic_filter = topic_filter[len(_SHARE) :].partition("/")
        if not group or not slash or "+" in group or "#" in group:
            raise _invalid("a shared subscription is $share/GROUP/FILTER, without + and # in GROUP")
    if wrong := wrong_in_filter(topic_filter, levels_max):
        raise _invalid(wrong)
    return TopicFilter(topic_filter, group, condition.strip())


def _invalid(reason: str) -> PacketError:
    return PacketError(ReasonCode.INVALID_TOPIC_FILTER, reason)
