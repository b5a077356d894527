"""Patterns by brute force: what docs/concepts/patterns.md says, with no state and no cleverness.

`matches` lists every match, `compounds` takes the first that is complete, again and again. Among
those that end together `tight` says which one it is. Messages are given in their order, and known
by their place in it.
"""

from __future__ import annotations

from itertools import product

from palio.routing.packets import Publish
from palio.routing.patterns.pattern import (
    And,
    Node,
    Or,
    Part,
    Pattern,
    Then,
    With,
    Within,
    single,
)

Match = frozenset[int]


def matches(node: Node, messages: list[Publish]) -> set[Match]:
    """Every set of messages that is a match."""
    if isinstance(node, Part):
        chosen = node.predicate
        return {frozenset([i]) for i, m in enumerate(messages) if chosen.matches(m.message)}
    if isinstance(node, Or):
        return set().union(*(matches(choice, messages) for choice in node.choices))
    if isinstance(node, Within):
        found = matches(node.node, messages)
        return {m for m in found if _last(m, messages) - _first(m, messages) <= node.micros}
    if isinstance(node, Then):
        whole = matches(node.steps[0], messages)
        for step in node.steps[1:]:
            whole = {
                a | b
                for a, b in product(whole, matches(step, messages))
                if _last(a, messages) < _first(b, messages)
            }
        return whole
    assert isinstance(node, And | With)
    whole = {frozenset[int]()}
    for part in node.parts:
        pairs = product(whole, matches(part, messages))
        whole = {a | b for a, b in pairs if isinstance(node, With) or not a & b}
    return whole


def tight(node: Node, messages: list[Publish]) -> dict[tuple[int, int], Match]:
    """The matches with no other inside, by first and last message; one of each."""
    if isinstance(node, Part):
        return {(min(m), max(m)): m for m in matches(node, messages)}
    if isinstance(node, Within):
        return {
            (s, e): m
            for (s, e), m in tight(node.node, messages).items()
            if messages[e].time - messages[s].time <= node.micros
        }
    if isinstance(node, Or):
        found: dict[tuple[int, int], Match] = {}
        for choice in node.choices:
            found = tight(choice, messages) | found  # the leftmost of equals
        return _innermost(found)
    if isinstance(node, Then):
        left = tight(node.steps[0], messages)
        for step in node.steps[1:]:
            right = tight(step, messages)
            left = _innermost(
                {
                    (min(a), max(b)): a | b
                    for a, b in product(left.values(), right.values())
                    if _last(a, messages) < _first(b, messages)
                }
            )
        return left
    assert isinstance(node, And | With)
    singles = tuple(part for part in node.parts if single(part) is not None)
    if isinstance(node, With):
        singles = ()  # no part must leave a message to another one
    found = {}
    components = [tight(part, messages) for part in node.parts if part not in singles]
    if len(singles) > 1:
        sets = matches(And(singles), messages)
        latest = sorted(sets, key=lambda m: sorted(m, reverse=True))
        components.append(_innermost({(min(m), max(m)): m for m in latest}))
    elif singles:
        components.append(tight(singles[0], messages))
    for end in range(len(messages)):
        ended = [
            max(((s, m) for (s, e), m in c.items() if e <= end), default=None) for c in components
        ]
        if all(ended):
            whole = frozenset[int]().union(*(best[1] for best in ended if best))
            if max(whole) == end:
                found[min(whole), end] = whole
    return _innermost(found)


def compounds(pattern: Pattern, messages: list[Publish]) -> list[list[Publish]]:
    """The messages of each match, match after match. Times must not fall."""
    groups: dict[tuple[object, ...], list[Publish]] = {}
    for m in messages:
        if all(name in m.message for name in pattern.same):
            groups.setdefault(tuple(m.message[name] for name in pattern.same), []).append(m)
    found = []
    for group in groups.values():
        rest = group
        while rest:
            every = matches(pattern.node, rest)
            if not every:
                break
            end = min(map(max, every))
            start = max(min(m) for m in every if max(m) == end)
            chosen = tight(pattern.node, rest)[start, end]
            assert chosen in every
            found.append([rest[i] for i in sorted(chosen)])
            rest = rest[end + 1 :]
    return sorted(found, key=lambda c: messages.index(c[-1]))


def _innermost(found: dict[tuple[int, int], Match]) -> dict[tuple[int, int], Match]:
    return {
        (s, e): m
        for (s, e), m in found.items()
        if not any(s <= t and f <= e and (s, e) != (t, f) for t, f in found)
    }


def _first(match: Match, messages: list[Publish]) -> int:
    return messages[min(match)].time


def _last(match: Match, messages: list[Publish]) -> int:
    return messages[max(match)].time
