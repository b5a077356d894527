"""Retained messages: the last one of each topic, for who subscribes later.

    PUBLISH, retain ─▶ prepare: written, with the message itself in one commit ─▶ Published ─▶ set
                                                                              └▶ Rejected  ─▶ revert

They are those that were published at this broker. The plan for the others: each broker has an internal
durable subscription to messages with an attribute that says they are retained, so that each holds all.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from hashlib import blake2b

import msgspec

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.protocol.durability.storage import Store, decoded
from palio.protocol.wire.message_headers import EXPIRES_US, headers_of

_OVERHEAD_BYTES = 200
_PREFIX = "mqtt/r/"


class RetainedMessage(msgspec.Struct, frozen=True, array_like=True):
    topic: str
    attributes: bytes
    payload: bytes
    """Its headers and its body; empty: forget what was retained."""

    @property
    def size(self) -> int:
        return 2 * len(self.attributes) + len(self.payload) + _OVERHEAD_BYTES

    def is_expired(self, now_us: int) -> bool:
        expires_us = headers_of(self.payload).get(EXPIRES_US)
        return isinstance(expires_us, int) and expires_us <= now_us


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(RetainedMessage)


def _key(topic: str) -> str:
    return _PREFIX + blake2b(topic.encode(), digest_size=16).hexdigest()


def _selects(predicate: Predicate, attributes: bytes) -> Generator[None, None, bool]:
    """Whether a predicate selects a message; an expression of each of its constraints may take a millisecond."""
    try:
        message = Message.from_json(attributes)
    except InvalidValue:  # no broker takes such a message
        return False
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
    """`count_max` and `bytes_max`: what does not fit is not retained."""

    def __init__(self, count_max: int, bytes_max: int, store: Store) -> None:
        self._count_max, self._bytes_max = count_max, bytes_max
        self._store = store
        self._messages: dict[str, RetainedMessage] = {}
        self._prepared: dict[str, list[RetainedMessage]] = {}
        """Of which nobody knows yet whether they will be; by topic, in order."""
        self.bytes = 0
        self.dropped = 0
        for key, value in store.scan(_PREFIX):
            self._add(decoded(_decoder, key, value))

    def __len__(self) -> int:
        return len(self._messages)

    def prepare(self, message: RetainedMessage) -> None:
        """Write a message that will be retained when the core has stored it."""
        self._prepared.setdefault(message.topic, []).append(message)
        self._write(message.topic)

    def revert(self, message: RetainedMessage) -> None:
        """It was rejected: what was retained before still is. That needs a commit."""
        self._decided(message)
        self._write(message.topic)

    def _decided(self, message: RetainedMessage) -> None:
        waiting = self._prepared.get(message.topic, [])
        self._prepared[message.topic] = [one for one in waiting if one is not message]
        if not self._prepared[message.topic]:
            del self._prepared[message.topic]

    def _write(self, topic: str) -> None:
        """Write what is retained when all that is prepared is stored."""
        prepared = [
            one for one in self._prepared.get(topic, ()) if not one.payload or self._has_room(one)
        ]
        last = prepared[-1] if prepared else self._messages.get(topic)
        if last is not None and last.payload:
            self._store.put(_key(topic), _encode(last))
        else:
            self._store.delete(_key(topic))

    def set(self, message: RetainedMessage) -> None:
        """The core has stored it."""
        self._decided(message)
        has_room = self._has_room(message)
        self._remove(message.topic)
        if message.payload and has_room:
            self._add(message)
        elif message.payload:
            self.dropped += 1
            self._write(message.topic)

    def _has_room(self, message: RetainedMessage) -> bool:
        before = self._messages.get(message.topic)
        count = len(self._messages) + (before is None)
        size = self.bytes + message.size - (before.size if before is not None else 0)
        return count <= self._count_max and size <= self._bytes_max

    def _add(self, message: RetainedMessage) -> None:
        self._messages[message.topic] = message
        self.bytes += message.size

    def _remove(self, topic: str) -> None:
        before = self._messages.pop(topic, None)
        if before is not None:
            self.bytes -= before.size

    def matching(
        self, predicate: Predicate, topic: str, now_us: int
    ) -> Iterator[RetainedMessage | None]:
        """Those that a predicate selects, and None for others, so that the caller can stop in between;
        `topic`: the only one that it can match, or empty."""
        if topic:
            found = [self._messages[topic]] if topic in self._messages else []
        else:
            found = list(self._messages.values())
        for retained in found:
            is_selected = yield from _selects(predicate, retained.attributes)
            if not is_selected:
                yield None
            elif self._messages.get(retained.topic) is retained:
                if retained.is_expired(now_us):
                    self._remove(retained.topic)
                    self._store.delete(_key(retained.topic))
                else:
                    yield retained
