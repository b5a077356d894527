"""Topics as attributes, and topic filters as filters over them, so that one is covered where the other is.

    topic "a/b"     topic = "a/b"   topic_1 = "a"   topic_2 = "b"   topic_levels = 2

    filter a/b      topic = 'a/b' and each level, and topic_levels = 2
           a/+      topic_1 = 'a' AND topic_levels = 2
           a/#      topic_1 = 'a' AND topic_levels >= 1         it matches a itself, too (4.7.1.2)
           #, +/b   also: topic_1 does not begin with $         (4.7.2)

The sections are those of MQTT 5. What `wrong_in_...` finds in a text is a sentence, or empty.
"""

from __future__ import annotations

import re
from typing import Final

from palio.model.operators import Op
from palio.model.predicate import Constraint, Filter

TOPIC: Final = "topic"
LEVELS: Final = "topic_levels"
BYTES_MAX = 65_535
"""Of a topic and of a topic filter (MQTT 5, 4.7.3)."""
LEVELS_MAX = 128
"""Of a topic and of a topic filter, where nobody says otherwise."""
_NOT_IN_LEVELS = re.compile(r"[/+#\x00]")
_OWN_NAME = re.compile(r"topic(_levels|_[0-9]+)?")


def is_topic_attribute(name: str) -> bool:
    """Whether this is the name of an attribute that a topic gives, for any topic."""
    return name.startswith(TOPIC) and _OWN_NAME.fullmatch(name) is not None


def wrong_in_topic(topic: str, levels_max: int = LEVELS_MAX) -> str:
    """
    >>> wrong_in_topic("a/+")
    'a topic name is not empty and has no + and no #'
    """
    if not topic or "+" in topic or "#" in topic:
        return "a topic name is not empty and has no + and no #"
    if topic.count("/") >= levels_max:
        return f"a topic has {levels_max} levels at most here, not {topic.count('/') + 1}"
    return ""


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


def reply_topic(identity: str, own: str) -> str:
    """Where replies to a client go: its identity, and a part of its own. A grant of the identity may name
    them all, `topic LIKE 'replies/ann/%'`.

    >>> reply_topic("desk/7", "c0ffee")
    'replies/desk-7/c0ffee'
    """
    return f"replies/{_NOT_IN_LEVELS.sub('-', identity)}/{own}"


def wrong_in_filter(topic_filter: str, levels_max: int = LEVELS_MAX) -> str:
    """
    >>> wrong_in_filter("a/#/b")
    '# stands alone in the last level of a topic filter'
    """
    if not topic_filter:
        return "a topic filter is not empty"
    count = topic_filter.count("/") + 1
    if count > levels_max:
        return f"a topic filter has {levels_max} levels at most here, not {count}"
    for place, level in enumerate(topic_filter.split("/"), 1):
        if "#" in level and (level != "#" or place < count):
            return "# stands alone in the last level of a topic filter"
        if "+" in level and level != "+":
            return "+ stands alone in a level of a topic filter"
    return ""


def as_filter(topic_filter: str) -> Filter:
    """The filter that matches the attributes of exactly the topics that a valid topic filter matches.

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
