"""Topics as attributes, and topic filters as filters over them, so that one is covered where the other is.

    topic "a/b"     topic = "a/b"   topic_1 = "a"   topic_2 = "b"   topic_levels = 2

    filter a/b      topic = 'a/b' and each level, and topic_levels = 2
           a/+      topic_1 = 'a' AND topic_levels = 2
           a/#      topic_1 = 'a' AND topic_levels >= 1         it matches a itself, too (4.7.1.2)
           #, +/b   also: topic_1 does not begin with $         (4.7.2)

A filter may have more in front and behind: `$share/GROUP/FILTER` for shared subscriptions, and
`FILTER?CONDITION` for a predicate over the attributes of the messages. A topic name may have a
question mark; in a filter the first one begins the condition.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from palio.model.operators import Op
from palio.model.predicate import Constraint, Filter
from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode

TOPIC, LEVELS = "topic", "topic_levels"
_OWN_NAME = re.compile(r"topic(_levels|_[0-9]+)?")
_SHARE = "$share/"


def is_topic_attribute(name: str) -> bool:
    """Whether this is the name of an attribute that a topic gives, for any topic."""
    return name.startswith(TOPIC) and _OWN_NAME.fullmatch(name) is not None


def check_topic(topic: str, levels_max: int) -> None:
    """Raise PacketError for what is not the name of a topic."""
    if not topic or "+" in topic or "#" in topic:
        raise PacketError(
            ReasonCode.INVALID_TOPIC_NAME, "a topic name is not empty and has no + and no #"
        )
    if topic.count("/") >= levels_max:
        raise PacketError(
            ReasonCode.INVALID_TOPIC_NAME,
            f"a topic has {levels_max} levels at most here, not {topic.count('/') + 1}",
        )


def topic_attributes(topic: str) -> dict[str, str | int]:
    """The attributes of a valid topic.

    >>> topic_attributes("a/b")
    {'topic': 'a/b', 'topic_levels': 2, 'topic_1': 'a', 'topic_2': 'b'}
    """
    levels = topic.split("/")
    found: dict[str, str | int] = {TOPIC: topic, LEVELS: len(levels)}
    for number, level in enumerate(levels, 1):
        found[f"topic_{number}"] = level
    return found


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
        return f"{text} AND ({self.condition})" if self.condition else text


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
    _check_filter(topic_filter, levels_max)
    return TopicFilter(topic_filter, group, condition.strip())


def _check_filter(topic_filter: str, levels_max: int) -> None:
    if not topic_filter:
        raise _invalid("a topic filter is not empty")
    levels = topic_filter.split("/")
    if len(levels) > levels_max:
        raise _invalid(f"a topic filter has {levels_max} levels at most here, not {len(levels)}")
    for place, level in enumerate(levels):
        if "#" in level and (level != "#" or place + 1 < len(levels)):
            raise _invalid("# stands alone in the last level of a topic filter")
        if "+" in level and level != "+":
            raise _invalid("+ stands alone in a level of a topic filter")


def _invalid(reason: str) -> PacketError:
    return PacketError(ReasonCode.INVALID_TOPIC_FILTER, reason)


def as_filter(topic_filter: str) -> Filter:
    """The filter that matches the attributes of exactly the topics that the topic filter matches.

    >>> as_filter("a/+")
    Filter(topic_1 = 'a' AND topic_levels = 2)
    """
    levels = topic_filter.split("/")
    is_open = levels[-1] == "#"
    if is_open:
        levels.pop()
    constraints = [
        Constraint(f"topic_{number}", Op.EQ, level)
        for number, level in enumerate(levels, 1)
        if level != "+"
    ]
    if len(constraints) == len(levels) and not is_open:
        constraints.insert(0, Constraint(TOPIC, Op.EQ, topic_filter))
    if topic_filter[0] in "+#":
        constraints.append(Constraint("topic_1", Op.NOT_PREFIX, "$"))
    least = max(1, len(levels))
    constraints.append(Constraint(LEVELS, Op.GE if is_open else Op.EQ, least))
    return Filter(tuple(constraints))
