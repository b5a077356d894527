"""The incomplete matches of a monitor, by key, and what they hold.

    key ──▶ MatchInstance: the automaton's state, and about how many bytes its messages take

The key that was touched last is last, so the first is the one to drop. A message that several keys, or
several monitors, hold counts for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from palio.model.message import Message
from palio.model.values import NUMBERS, Value, kind_of, type_of
from palio.routing.patterns.automaton import PatternState, Stamp

INSTANCE_BYTES = 1000
"""What a key takes beside its messages."""
Key: TypeAlias = tuple[tuple[str, object], ...]


class MatchInstance:
    """The incomplete matches of one key."""

    __slots__ = ("bytes", "restarted", "state", "touched", "values")

    def __init__(self, values: tuple[Value, ...], state: PatternState) -> None:
        self.values, self.state = values, state
        self.touched = 0
        self.restarted: Stamp | None = None  # compounds that start before it are dropped
        self.bytes = 0

    def measure(self) -> None:
        """Count the bytes that it holds now."""
        held = {id(m): m for span in self.state.spans() for m in span.messages}
        self.bytes = INSTANCE_BYTES + sum(m.message.memory_bytes for m in held.values())


class MatchInstances:
    def __init__(self) -> None:
        self._by_key: dict[Key, MatchInstance] = {}
        self.bytes = 0
        """Of all of them, about."""

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[MatchInstance]:
        """The one touched last is last."""
        return iter(self._by_key.values())

    @property
    def first(self) -> MatchInstance:
        """The one that was touched least recently."""
        return next(iter(self._by_key.values()))

    def take(self, key: Key) -> MatchInstance | None:
        """Take out the instance of a key."""
        found = self._by_key.pop(key, None)
        if found is not None:
            self.bytes -= found.bytes
        return found

    def put(self, key: Key, instance: MatchInstance) -> None:
        """Put in the instance of a key that has none, as the one touched last."""
        instance.measure()
        self.bytes += instance.bytes
        self._by_key[key] = instance

    def drop_first(self) -> None:
        self.take(next(iter(self._by_key)))


def key_values(message: Message, names: Iterable[str]) -> tuple[Value, ...] | None:
    """What the message has of these names; None when one is not there, or is no value: nothing
    equals an array."""
    found = [message.get(name) for name in names]
    if any(kind_of(value) is None for value in found):
        return None
    return tuple(found)  # type: ignore[arg-type]


def key_of(values: tuple[Value, ...]) -> Key:
    """Equal as in SQL: 1 is 1.0 and not TRUE, NaN is NaN."""
    return tuple(
        (
            "number" if type_of(value) in NUMBERS else str(type_of(value)),
            value if value == value else "NaN",
        )
        for value in values
    )
