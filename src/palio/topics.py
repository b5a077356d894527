"""Topics for native clients: the attributes by which clients of MQTT select a message.

    client.publish({**palio.topics.attributes("site/7/temp"), "temp": 30.5})
    palio.dialects.mqtt.read("site/+/temp?temp > 25")      the predicate of a topic filter

`palio.model.topics` says how topics become attributes.
"""

from __future__ import annotations

from palio.errors import InvalidValue
from palio.model.topics import BYTES_MAX, LEVELS_MAX, topic_attributes, wrong_in_topic

__all__ = ["BYTES_MAX", "LEVELS_MAX", "attributes"]


def attributes(topic: str) -> dict[str, str | int]:
    """The attributes of a topic; raises InvalidValue for what is not the name of one.

    >>> attributes("site/7")
    {'topic': 'site/7', 'topic_levels': 2, 'topic_1': 'site', 'topic_2': '7'}
    """
    if not isinstance(topic, str):
        raise InvalidValue(f"a topic is a text, not {topic!r:.60}")
    wrong = wrong_in_topic(topic)
    if not wrong and "\x00" in topic:
        wrong = "a topic has no null character"
    if not wrong and len(topic.encode("utf-8", "replace")) > BYTES_MAX:
        wrong = f"a topic has {BYTES_MAX:,} bytes at most"
    if wrong:
        raise InvalidValue(f"the topic {topic!r:.60}: {wrong}")
    return topic_attributes(topic)
