"""Monitors: they are fed with messages in time, and report the matches of a pattern.

    Publish, Assembled ──▶ in order ──▶ by key ──▶ automaton ──▶ answer
                           lateness     same       (automaton.py)
        Monitor      the whole pattern: a Compound for each match, after which matching restarts
        Assembler    a part of a larger pattern: a Compound for each tight match; it does not restart,
                     because only the monitor of the whole pattern knows when
        Sieve        a part of a larger pattern: the messages that can be in a tight match of it

There is no clock: time comes from the messages and from `expire`. Equal input gives equal output.
Dropped messages are counted. The state is bounded: for each key by the pattern, and all together by
`keys_max` keys and `bytes_max` bytes of messages; beyond that, the key that was touched least recently
is dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from palio.errors import InvalidFile, InvalidPattern, InvalidValue
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate
from palio.model.values import Value
from palio.routing.patterns.automaton import (
    LeafEvent,
    MatchSpan,
    Stamp,
    build,
    rebounded,
    span_of,
)
from palio.routing.patterns.instances import MatchInstance, MatchInstances, key_of, key_values
from palio.routing.patterns.language import parse
from palio.routing.patterns.packets import Assembled, Compound, Task
from palio.routing.patterns.pattern import Awaited, Pattern, leaves
from palio.routing.publication import Publish

KEYS_MAX = 100_000
HELD_MAX = 1_000_000
BYTES_MAX = 1 << 30
Fed: TypeAlias = Publish | Assembled | tuple[Mapping[str, object], int]
Out = TypeVar("Out")


class PatternCounters(msgspec.Struct):
    """How many messages were processed, by outcome."""

    fed: int = 0
    ignored: int = 0
    """No part matches them, or they lack an attribute of `same`."""
    late: int = 0
    """They arrived too late, and were dropped."""
    keys_dropped: int = 0
    """Keys that were dropped because there were more than `keys_max`, or `bytes_max` was reached."""
    matches: int = 0


class Matcher(ABC, Generic[Out]):
    """What the three kinds share: order, keys, limits, snapshots."""

    def __init__(
        self,
        pattern: Pattern | str,
        *,
        lateness: int | None = 0,
        keys_max: int = KEYS_MAX,
        held_max: int = HELD_MAX,
        bytes_max: int = BYTES_MAX,
        zone: str | None = None,
    ) -> None:
        """`zone`: the time zone of the pattern's text, UTC by default. `lateness`: microseconds for which messages are held, to bring them into order; 0: they
        come in order; None: they are held until `expire` releases them.
        `keys_max`: for how many values of `same` instances may be open at a time. `held_max`: how
        many messages may be held; beyond that, the oldest is processed early. `bytes_max`: about how many
        bytes of messages may be held (half of it) and be part of incomplete matches; beyond that, the
        same happens.
        """
        if (lateness or 0) < 0 or min(keys_max, held_max, bytes_max) < 1:
            raise InvalidPattern("lateness is 0 or more microseconds, the limits are 1 or more")
        self.pattern = parse(pattern, zone=zone)
        self.lateness, self.keys_max, self.held_max = lateness, keys_max, held_max
        self.bytes_max = bytes_max
        self.counters = PatternCounters()
        self._takes: list[Predicate | int] = []
        build(self.pattern.node, self._takes)
        self._awaits = any(isinstance(leaf, Awaited) for leaf in leaves(self.pattern.node))
        self._clock: int | None = None
        self._held: list[tuple[Stamp, int, Publish | Assembled]] = []
        self._held_bytes = 0
        self._instances = MatchInstances()

    def __len__(self) -> int:
        """The number of keys with incomplete matches."""
        return len(self._instances)

    @property
    def bytes_held(self) -> int:
        """About how many bytes it holds."""
        return self._held_bytes + self._instances.bytes

    def feed(self, item: Fed) -> list[Out]:
        """Take a message, (message, time in microseconds), or a compound that is awaited."""
        self.counters.fed += 1
        if isinstance(item, tuple):
            item = _published(*item, self.counters.fed)
        end = _end(item)
        if self._clock is not None and end[0] < self._clock - (self.lateness or 0):
            return self._late(item)
        if self.lateness is not None:
            self._clock = end[0] if self._clock is None else max(self._clock, end[0])
        if self.lateness == 0 and not self._held:
            return self._take(item)
        heappush(self._held, (end, self.counters.fed, item))
        self._held_bytes += _bytes(item)
        answers: list[Out] = []
        while len(self._held) > self.held_max or self._held_bytes > self.bytes_max // 2:
            early = (
                self._held[0][0][0] + (self.lateness or 0) + 1
            )  # what is older is late from now on
            self._clock = early if self._clock is None else max(self._clock, early)
            answers += self._release()
        answers += self._release()
        self._limit()
        return answers

    def shed(self, bytes_max: int) -> None:
        """Drop the keys that were touched least recently until no more bytes are held, or no key is
        left."""
        while self._instances and self.bytes_held > bytes_max:
            self._instances.drop_first()
            self.counters.keys_dropped += 1

    def expire(self, now: int) -> list[Out]:
        """Advance the time to `now`: messages older than `now - lateness` are late from now on."""
        self._clock = now if self._clock is None else max(self._clock, now)
        answers = self._release()
        self._drop_expired(self._clock - (self.lateness or 0))
        return answers

    def revise(self, pattern: Pattern, lateness: int) -> list[Out]:
        """Continue with another `within` around the whole pattern, and another lateness. What a
        narrower `within` has dropped does not come back; what was late stays late."""
        self.pattern = pattern
        for instance in self._instances:
            instance.state = rebounded(instance.state, pattern.node)
        if self._clock is not None:
            self._clock += max(0, lateness - (self.lateness or 0))
        self.lateness = lateness
        return self._release()

    @property
    def due(self) -> int | None:
        """The first time at which `expire` has something to do; None: never."""
        times = [self._held[0][0][0]] if self._held else []
        if self.pattern.micros is not None and self._instances:
            times.append(self._instances.first.touched + self.pattern.micros)
        return min(times) + (self.lateness or 0) + 1 if times else None

    @property
    def release_at(self) -> int | None:
        """The first time at which `expire` releases a held message; None: none is held."""
        return self._held[0][0][0] + (self.lateness or 0) + 1 if self._held else None

    @property
    def floor(self) -> int | None:
        """Messages older than this are late; None: no message is."""
        return None if self._clock is None else self._clock - (self.lateness or 0)

    @abstractmethod
    def _answer(
        self, instance: MatchInstance, event: LeafEvent, span: MatchSpan | None
    ) -> list[Out]:
        """The output after the automaton has processed an event."""

    def _late(self, item: Publish | Assembled) -> list[Out]:
        self.counters.late += 1
        return []

    def _release(self) -> list[Out]:
        answers: list[Out] = []
        if self._clock is None:
            return answers
        while self._held and self._held[0][0][0] < self._clock - (self.lateness or 0):
            item = heappop(self._held)[2]
            self._held_bytes -= _bytes(item)
            answers += self._take(item)
        return answers

    def _drop_expired(self, now: int) -> None:
        """Drop instances that can no longer be completed in time; the oldest are first."""
        micros = self.pattern.micros
        while micros is not None and self._instances:
            if self._instances.first.touched >= now - micros:
                break
            self._instances.drop_first()

    def _take(self, item: Publish | Assembled) -> list[Out]:
        event = self._event(item)
        self._drop_expired(event.span.end[0])
        message = event.span.messages[0].message
        values = key_values(message, self.pattern.same)
        if not event.leaves or values is None:
            self.counters.ignored += 1
            return []
        key = key_of(values)
        instance = self._instances.take(key) or self._begin(values)
        now = instance.touched = event.span.end[0]
        if isinstance(item, Assembled) and _is_void(event.span, instance.restarted):
            self._instances.put(key, instance)
            return []
        instance.state.forget(now, -(2**63))
        span = instance.state.feed(event)
        self.counters.matches += span is not None
        answers = self._answer(instance, event, span)
        if instance.restarted is not None or instance.state.spans():
            self._instances.put(key, instance)
            self._limit()
        return answers

    def _limit(self) -> None:
        if len(self._instances) > self.keys_max:
            self._instances.drop_first()
            self.counters.keys_dropped += 1
        if self.bytes_held > self.bytes_max:
            self.shed(self.bytes_max)

    def _event(self, item: Publish | Assembled) -> LeafEvent:
        if isinstance(item, Assembled):
            wanted = [take == item.id for take in self._takes]
            span = span_of(item.compound.messages)
        else:
            wanted = [isinstance(t, Predicate) and t.matches(item.message) for t in self._takes]
            span = span_of((item,))
        return LeafEvent(span, frozenset(i for i, wants in enumerate(wanted) if wants))

    def _begin(self, values: tuple[Value, ...]) -> MatchInstance:
        return MatchInstance(values, build(self.pattern.node, []))

    def _compound(self, span: MatchSpan) -> Compound:
        values = key_values(span.messages[0].message, self.pattern.same)
        assert values is not None, "a message without them is ignored"
        return Compound(span.messages, values)

    # ---- snapshots

    def snapshot(self) -> bytes:
        """The state and the counters, for `restore` of a matcher of the same pattern."""
        plain = {
            "pattern": str(self.pattern),
            "clock": self._clock,
            "counters": msgspec.to_builtins(self.counters),
            "held": [[order, _packed(item)] for _, order, item in sorted(self._held, key=_order)],
            "instances": [
                [
                    Message(dict(zip(self.pattern.same, i.values, strict=True))).to_json(),
                    i.touched,
                    i.restarted,
                    i.state.dump(),
                ]
                for i in self._instances
            ],
        }
        return msgspec.json.encode(plain)

    def restore(self, snapshot: bytes) -> None:
        """Replace the state by that of a snapshot."""
        try:
            plain = msgspec.json.decode(snapshot)
            if plain["pattern"] != str(self.pattern):
                raise InvalidFile(
                    f"the snapshot is one of the pattern {plain['pattern']}, not of {self.pattern}"
                )
            self._restore(plain)
        except (msgspec.MsgspecError, InvalidValue, LookupError, TypeError, ValueError) as error:
            raise InvalidFile(f"this is not a snapshot of a monitor: {error}") from None

    def _restore(self, plain: dict[str, Any]) -> None:
        self._clock = plain["clock"]
        self.counters = msgspec.convert(plain["counters"], PatternCounters)
        items = [(order, _unpacked(packed)) for order, packed in plain["held"]]
        self._held = [(_end(item), order, item) for order, item in items]
        heapify(self._held)
        self._held_bytes = sum(_bytes(item) for _, item in items)
        self._instances = MatchInstances()
        for text, touched, restarted, state in plain["instances"]:
            message = Message.from_json(text)
            values = key_values(message, self.pattern.same)
            if values is None:
                raise InvalidFile("an instance of the snapshot has no key")
            instance = self._begin(values)
            instance.touched = touched
            instance.restarted = None if restarted is None else tuple(restarted)
            instance.state.load(state)
            self._instances.put(key_of(instance.values), instance)


class Monitor(Matcher[Compound]):
    """Matches a whole pattern.

    >>> monitor = Monitor("[what = 'login'] then [what = 'alarm'] within 10 seconds same host")
    >>> monitor.feed(({"what": "login", "host": "a"}, 1_000_000))
    []
    >>> [found] = monitor.feed(({"what": "alarm", "host": "a"}, 3_000_000))
    >>> found.key, found.start, found.end
    (('a',), 1000000, 3000000)
    """

    def _answer(
        self, instance: MatchInstance, event: LeafEvent, span: MatchSpan | None
    ) -> list[Compound]:
        if span is None:
            return []
        instance.state = build(self.pattern.node, [])
        if self._awaits:
            instance.restarted = span.end
        return [self._compound(span)]


class Assembler(Matcher[Compound]):
    """Matches a part of a larger pattern, for the monitor of that one."""

    def _answer(
        self, instance: MatchInstance, event: LeafEvent, span: MatchSpan | None
    ) -> list[Compound]:
        return [] if span is None else [self._compound(span)]


class Sieve(Matcher[Publish]):
    """Lets through the messages that can be in a tight match of a part of a larger pattern.

    More messages than needed do no harm: late ones go to the monitor of the whole pattern as well.
    """

    def _answer(
        self, instance: MatchInstance, event: LeafEvent, span: MatchSpan | None
    ) -> list[Publish]:
        end = event.span.end
        holds = span is not None or any(other.end == end for other in instance.state.spans())
        return [event.span.messages[-1]] if holds else []

    def _late(self, item: Publish | Assembled) -> list[Publish]:
        self.counters.late += 1
        return [item] if isinstance(item, Publish) else []


def matcher(
    task: Task, pattern: Pattern, *, lateness: int | None = 0, bytes_max: int = BYTES_MAX
) -> Matcher[Any]:
    """The matcher that does a task for a pattern."""
    kinds: dict[Task, type[Matcher[Any]]] = {
        Task.WHOLE: Monitor,
        Task.ASSEMBLE: Assembler,
        Task.SIEVE: Sieve,
    }
    return kinds[task](pattern, lateness=lateness, bytes_max=bytes_max)


def _published(message: Mapping[str, object], time: object, number: int) -> Publish:
    if not isinstance(time, int) or isinstance(time, bool):
        raise InvalidValue(f"the time of a message is an int of microseconds, not {time!r}")
    return Publish(as_message(message), "", number, time)


def _is_void(span: MatchSpan, restarted: Stamp | None) -> bool:
    return restarted is not None and span.start <= restarted


def _order(held: tuple[Stamp, int, object]) -> tuple[Stamp, int]:
    return held[:2]


def _end(item: Publish | Assembled) -> Stamp:
    return span_of(item.compound.messages if isinstance(item, Assembled) else (item,)).end


def _bytes(item: Publish | Assembled) -> int:
    messages = item.compound.messages if isinstance(item, Assembled) else (item,)
    return sum(one.message.memory_bytes for one in messages)


def _packed(item: Publish | Assembled) -> list[Any]:
    messages = item.compound.messages if isinstance(item, Assembled) else (item,)
    rows = [[m.message.to_json(), m.publisher, m.number, m.time] for m in messages]
    return [item.id if isinstance(item, Assembled) else None, rows]


def _unpacked(packed: list[Any]) -> Publish | Assembled:
    number, rows = packed
    messages = tuple(Publish(Message.from_json(text), *rest) for text, *rest in rows)
    return messages[0] if number is None else Assembled(number, Compound(messages))
