"""The automaton of a pattern: for one key, the messages that can still be part of a match.

A match is represented by its span, from its first to its last message. A span that lies inside
another is better: it is complete sooner, starts later, and leaves more room on both sides. Whatever a
larger pattern can do with a span, it can do with a better one. So each state below returns only its
*tight* spans, those with no other inside:

    messages    a1  a2  b1  b2  a3  b3              a then b
    spans           └────┘       └───┘              tight: [a2 b1] [a3 b3]; not [a1 b1], [a2 b2]

    Leaf        each of its messages is a span
    Following   left then right: for a right span, the latest left span that ends before it
    Together    `and` of parts that share no messages, and `with`: the latest span of each
    Distinct    `and` of single messages: the latest choice of different ones
    Either      `or`: whatever its choices give, the leftmost of equals
    Near        `within`: the spans that are short enough

Invariants: each span that a state returns ends with the current message and starts later than the
one before, so an earlier span never contains a later one; and a span that starts at s depends only on
messages from s on. By the second, a state that has forgotten all before s returns the same spans from
s on as one that has not; planning.py relies on it.

    Following      kept   [p0 p1 p2 ...]   left spans that may be the latest before a right span:
                                           one for each start that `right` has open, and two more
    Together       latest [p, None, q]     the last span of each component, if not used as a start
    Distinct       chosen [m9 m7 m3]       at most one message for each part, the latest first

So the state is bounded by the pattern: with k parts a state has at most 2(k - 1) starts open, by
induction, so a `Following` keeps at most 2k spans, and all together keep at most 2k^2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.routing.patterns.pattern import And, Node, Or, Part, Then, With, Within, single
from palio.routing.publication import Publish

Stamp: TypeAlias = tuple[int, str, int]
"""Time, publisher and number of a message: the order of messages, wherever they are seen."""

_FOREVER = 2**63


class MatchSpan(NamedTuple):
    """The messages of a match, in order."""

    start: Stamp
    end: Stamp
    messages: tuple[Publish, ...]


class LeafEvent(NamedTuple):
    """A message, or a compound of a neighbour, and the leaves that match it."""

    span: MatchSpan
    leaves: frozenset[int]


def stamp(item: Publish) -> Stamp:
    return (item.time, item.publisher, item.number)


def span_of(messages: tuple[Publish, ...]) -> MatchSpan:
    """The span of messages that are in order."""
    return MatchSpan(stamp(messages[0]), stamp(messages[-1]), messages)


def _hull(spans: Iterable[MatchSpan]) -> MatchSpan:
    """The span of all these messages; one that several spans have, it has once."""
    messages = {stamp(m): m for span in spans for m in span.messages}
    return span_of(tuple(messages[mark] for mark in sorted(messages)))


class PatternState(Protocol):
    """The state of one node of the pattern, for one key."""

    def feed(self, event: LeafEvent) -> MatchSpan | None:
        """Process an event; returns the tight span that ends with it, if there is one."""

    def forget(self, now: int, floor: int) -> None:
        """Drop what started before `floor`, or is too long for a `within` at the time `now`."""

    def starts(self) -> list[int]:
        """The times at which incomplete spans may have started."""

    def spans(self) -> list[MatchSpan]:
        """All spans that are kept."""

    def dump(self) -> Any:
        """The state as plain values, for `load`."""

    def load(self, plain: Any) -> None: ...


class Leaf:
    def __init__(self, number: int) -> None:
        self.number = number

    def feed(self, event: LeafEvent) -> MatchSpan | None:
        return event.span if self.number in event.leaves else None

    def forget(self, now: int, floor: int) -> None:
        pass

    def starts(self) -> list[int]:
        return []

    def spans(self) -> list[MatchSpan]:
        return []

    def dump(self) -> None:
        return None

    def load(self, plain: None) -> None:
        pass


class Following:
    def __init__(self, left: PatternState, right: PatternState) -> None:
        self.left, self.right = left, right
        self.kept: list[MatchSpan] = []

    def feed(self, event: LeafEvent) -> MatchSpan | None:
        left, right = self.left.feed(event), self.right.feed(event)
        if left is None and right is None:
            return None
        span = None
        if right is not None and (at := self._before(right.start[0])) >= 0:
            span = _hull((self.kept[at], right))
            del self.kept[: at + 1]  # what starts there or earlier would not be tight
        if left is not None:
            self.kept.append(left)
        self._prune(event.span.end[0])
        return span

    def _before(self, time: int) -> int:
        """The latest left span that ends strictly before that time; -1 for none."""
        return bisect_left(self.kept, time, key=lambda span: span.end[0]) - 1

    def _prune(self, now: int) -> None:
        """A right span to come starts where one is open, or now, or later."""
        if len(self.kept) > 1:
            wanted = {self._before(time) for time in (*self.right.starts(), now, _FOREVER)}
            self.kept = [span for i, span in enumerate(self.kept) if i in wanted]

    def forget(self, now: int, floor: int) -> None:
        self.left.forget(now, floor)
        self.right.forget(now, floor)
        self.kept = [span for span in self.kept if span.start[0] >= floor]

    def starts(self) -> list[int]:
        return [span.start[0] for span in self.kept] + self.left.starts()

    def spans(self) -> list[MatchSpan]:
        return self.kept + self.left.spans() + self.right.spans()

    def dump(self) -> Any:
        return [self.left.dump(), self.right.dump(), list(map(_plain, self.kept))]

    def load(self, plain: Any) -> None:
        self.left.load(plain[0])
        self.right.load(plain[1])
        self.kept = list(map(_span, plain[2]))


class Together:
    def __init__(self, components: list[PatternState]) -> None:
        self.components = components
        self.latest: list[MatchSpan | None] = [None] * len(components)

    def feed(self, event: LeafEvent) -> MatchSpan | None:
        given = [component.feed(event) for component in self.components]
        self.latest = [new or old for new, old in zip(given, self.latest, strict=True)]
        chosen = [span for span in self.latest if span is not None]
        if not any(given) or len(chosen) < len(self.latest):
            return None
        hull = _hull(chosen)
        self.latest = [s if s and s.start > hull.start else None for s in self.latest]
        return hull

    def forget(self, now: int, floor: int) -> None:
        for component in self.components:
            component.forget(now, floor)
        self.latest = [s if s and s.start[0] >= floor else None for s in self.latest]

    def starts(self) -> list[int]:
        mine = [span.start[0] for span in self.latest if span is not None]
        return mine + [time for component in self.components for time in component.starts()]

    def spans(self) -> list[MatchSpan]:
        mine = [span for span in self.latest if span is not None]
        return mine + [span for component in self.components for span in component.spans()]

    def dump(self) -> Any:
        mine = [span and _plain(span) for span in self.latest]
        return [[component.dump() for component in self.components], mine]

    def load(self, plain: Any) -> None:
        for component, inner in zip(self.components, plain[0], strict=True):
            component.load(inner)
        self.latest = [known and _span(known) for known in plain[1]]


class Distinct:
    """Which messages to keep is a greedy choice, the latest first: a message stays when all that
    are chosen can still be given to different parts. The sets for which that is so are a matroid
    (transversal), so the greedy choice is the latest, and what it leaves out is never needed again.
    """

    def __init__(self, numbers: range) -> None:
        self.numbers = numbers
        self.chosen: list[tuple[MatchSpan, frozenset[int]]] = []  # the latest first

    def feed(self, event: LeafEvent) -> MatchSpan | None:
        fits = event.leaves.intersection(self.numbers)
        if not fits:
            return None
        taken: dict[int, frozenset[int]] = {}  # part -> what the message that it has fits
        candidates = [(event.span, fits), *self.chosen]
        self.chosen = [(span, fits) for span, fits in candidates if _give(fits, taken, set())]
        if len(self.chosen) < len(self.numbers):
            return None
        hull = _hull(span for span, _ in self.chosen)
        self.chosen.pop()  # a span from there on would not be tight
        return hull

    def forget(self, now: int, floor: int) -> None:
        self.chosen = [(span, fits) for span, fits in self.chosen if span.start[0] >= floor]

    def starts(self) -> list[int]:
        return [span.start[0] for span, _ in self.chosen]

    def spans(self) -> list[MatchSpan]:
        return [span for span, _ in self.chosen]

    def dump(self) -> Any:
        return [[_plain(span), sorted(fits)] for span, fits in self.chosen]

    def load(self, plain: Any) -> None:
        self.chosen = [(_span(span), frozenset(fits)) for span, fits in plain]


def _give(fits: frozenset[int], taken: dict[int, frozenset[int]], tried: set[int]) -> bool:
    """Give one more message a part that it fits, moving others if need be (augmenting path)."""
    for part in sorted(fits - tried):
        tried.add(part)
        if part not in taken or _give(taken[part], taken, tried):
            taken[part] = fits
            return True
    return False


class Either:
    def __init__(self, choices: list[PatternState]) -> None:
        self.choices = choices
        self.last: Stamp | None = None  # where the span given last begins

    def feed(self, event: LeafEvent) -> MatchSpan | None:
        given = [span for choice in self.choices if (span := choice.feed(event)) is not None]
        best = max(given, key=lambda span: span.start, default=None)  # the first of equals
        if best is None or (self.last is not None and best.start <= self.last):
            return None
        self.last = best.start
        return best

    def forget(self, now: int, floor: int) -> None:
        for choice in self.choices:
            choice.forget(now, floor)

    def starts(self) -> list[int]:
        return [time for choice in self.choices for time in choice.starts()]

    def spans(self) -> list[MatchSpan]:
        return [span for choice in self.choices for span in choice.spans()]

    def dump(self) -> Any:
        return [[choice.dump() for choice in self.choices], self.last]

    def load(self, plain: Any) -> None:
        for choice, inner in zip(self.choices, plain[0], strict=True):
            choice.load(inner)
        self.last = None if plain[1] is None else (plain[1][0], plain[1][1], plain[1][2])


class Near:
    def __init__(self, inner: PatternState, micros: int) -> None:
        self.inner, self.micros = inner, micros

    def feed(self, event: LeafEvent) -> MatchSpan | None:
        span = self.inner.feed(event)
        if span is None or span.end[0] - span.start[0] > self.micros:
            return None
        return span

    def forget(self, now: int, floor: int) -> None:
        self.inner.forget(now, max(floor, now - self.micros))

    def starts(self) -> list[int]:
        return self.inner.starts()

    def spans(self) -> list[MatchSpan]:
        return self.inner.spans()

    def dump(self) -> Any:
        return self.inner.dump()

    def load(self, plain: Any) -> None:
        self.inner.load(plain)


def build(node: Node, takes: list[Predicate | int]) -> PatternState:
    """The automaton of a node. What its leaves take is added to `takes`: a predicate, or the
    number of a compound that is awaited; the leaf's number is the place there."""
    if isinstance(node, Within):
        return Near(build(node.node, takes), node.micros)
    if isinstance(node, Then):
        state = build(node.steps[0], takes)
        for step in node.steps[1:]:
            state = Following(state, build(step, takes))
        return state
    if isinstance(node, And):
        return _together(node, takes)
    if isinstance(node, With):
        return Together([build(part, takes) for part in node.parts])
    if isinstance(node, Or):
        return Either([build(choice, takes) for choice in node.choices])
    takes.append(node.predicate if isinstance(node, Part) else node.number)
    return Leaf(len(takes) - 1)


def _together(node: And, takes: list[Predicate | int]) -> PatternState:
    """Parts of one message are assigned together, since a message may fit several; others are separate."""
    singles = [predicate for part in node.parts if (predicate := single(part)) is not None]
    components: list[PatternState] = []
    if len(singles) > 1:
        components.append(Distinct(range(len(takes), len(takes) + len(singles))))
        takes.extend(singles)
    elif singles:
        takes.extend(singles)
        components.append(Leaf(len(takes) - 1))
    components.extend(build(part, takes) for part in node.parts if single(part) is None)
    return components[0] if len(components) == 1 else Together(components)


def rebounded(state: PatternState, node: Node) -> PatternState:
    """The state of a node that differs from its own in the `within` around all of it."""
    while isinstance(state, Near):
        state = state.inner
    bounds = []
    while isinstance(node, Within):
        bounds.append(node.micros)
        node = node.node
    for micros in reversed(bounds):
        state = Near(state, micros)
    return state


def _plain(span: MatchSpan) -> list[list[Any]]:
    return [[m.message.to_json(), m.publisher, m.number, m.time] for m in span.messages]


def _span(plain: list[list[Any]]) -> MatchSpan:
    messages = (Publish(Message.from_json(text), *rest) for text, *rest in plain)
    return span_of(tuple(messages))
