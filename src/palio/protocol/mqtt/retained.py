"""Retained messages: the last value of each topic, which the core holds (durability/last_values.py).

    PUBLISH, retain ─▶ a durable message with `retain: ["topic"]` ─▶ the core, at all brokers of the network
    SUBSCRIBE ───────▶ those that the predicate of the topic filter selects, one after the other

So a native client that publishes with `retain="topic"` retains a message for MQTT clients, and gets theirs
with `last=True`. A message for which there is no room is delivered, and not retained.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.protocol.durability.last_values import LastValue, LastValues
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.last_values import key_of, retaining
from palio.protocol.wire.message_headers import RETAIN, Headers, packed

_HEADERS = retaining("topic")
_FORGETTING = retaining("topic", forget=True)
_NAMES = str(_HEADERS[RETAIN])
_STAMP_BYTES = 512
"""More than what the core adds to the headers, and the name of the publisher."""


def _selects(predicate: Predicate, message: Message) -> Generator[None, None, bool]:
    """Whether a predicate selects a message; an expression of each of its constraints may take a millisecond."""
    for f in predicate:
        for c in f:
            if not Filter((c,)).matches(message):
                break
            if c.name[:1] == "=":
                yield
        else:
            return True
        yield
    return False


class RetainedMessages:
    def __init__(self, values: LastValues, limits: Limits) -> None:
        self._values = values
        self._headers_max = limits.headers - _STAMP_BYTES
        self.dropped = 0
        """Messages for which there was no room."""

    def headers(self, topic: str, attributes: bytes, payload: bytes, own: Headers) -> Headers:
        """The headers with which a message is retained; `own` if there is no room. An empty payload:
        what was retained is forgotten."""
        if not self._values.is_on:
            self.dropped += bool(payload)
            return own
        if not payload:
            return {**own, **_FORGETTING}
        try:
            block = packed({**own, **_HEADERS}, self._headers_max)
        except InvalidValue:  # there is no room for more headers
            self.dropped += 1
            return own
        size = len(attributes) + len(block) + len(payload) + _STAMP_BYTES
        if not self._values.has_room(_key(topic), size):
            self.dropped += 1
            return own
        return {**own, **_HEADERS}

    def matching(self, predicate: Predicate, topic: str, now_us: int) -> Iterator[LastValue | None]:
        """Those that a predicate selects, and None for others, so that the caller can stop in between;
        `topic`: the only one that it can match, or empty."""
        if topic:
            one = self._values.find(_key(topic), now_us)
            found = [] if one is None else [one]
        else:
            found = list(self._values)
        for value in found:
            message = _by_topic(value)
            is_selected = message is not None and (yield from _selects(predicate, message))
            is_there = is_selected and self._values.find(value.key, now_us) is value
            yield value if is_there else None


def _key(topic: str) -> bytes:
    return key_of(_NAMES, {"topic": topic})


def _by_topic(value: LastValue) -> Message | None:
    """The attributes of a last value, if its key is its topic."""
    try:
        message = Message.from_json(value.attributes)
        return message if key_of(_NAMES, message) == value.key else None
    except InvalidValue:
        return None
