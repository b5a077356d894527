"""Delegated and local matching agree, and delegation saves messages."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Constraint
from palio.routing.packets import Publish
from palio.routing.patterns import (
    Assembled,
    Compound,
    Monitor,
    Part,
    Pattern,
    Task,
    matcher,
    parse,
    plan,
)
from palio.routing.patterns.pattern import leaves
from tests.routing.patterns.pattern_strategies import SYMBOLS, drawn, patterns, published
from tests.seeds import sizes

Providers = Mapping[str, Sequence[str]]
"""The neighbours behind which a symbol is published."""


def offers(providers: Providers) -> dict[str, list[Advertisement]]:
    made: dict[str, list[Advertisement]] = {}
    for symbol, peers in providers.items():
        for peer in peers:
            advertised = (Constraint("t", "=", symbol), Constraint("k", "any"))
            made.setdefault(peer, []).append(Advertisement(advertised))
    return dict(sorted(made.items()))


class Node:
    """A router with a task on a pattern. Behind its neighbours the symbols lie as the first of
    `layers` says; a neighbour that is given something does it with the rest of the layers."""

    def __init__(self, task: Task, pattern: Pattern, layers: Sequence[Providers]) -> None:
        self.providers = layers[0] if layers else {symbol: ["here"] for symbol in "abcdef"}
        self.plan = plan(pattern, offers(self.providers), None if layers else [], task)
        self.matcher = matcher(task, self.plan.residual) if self.plan.residual else None
        self.below = {d.number: Node(d.task, d.pattern, layers[1:]) for d in self.plan.delegations}
        self.crossed = 0  # messages and compounds that came here

    def feed(self, message: Publish) -> list[Any]:
        peers = self.providers[str(message.message["t"])]
        peer = peers[message.number % len(peers)]  # where it is published
        wanted = any(
            at == peer and predicate.matches(message.message)
            for at, predicate in self.plan.subscriptions
        )
        answers = []
        for d in self.plan.delegations:
            if d.peer != peer:
                continue
            for out in self.below[d.number].feed(message):
                if self.matcher is None or isinstance(out, Compound):
                    self.crossed += 1
                    assembled = Assembled(d.number, out)
                    answers += [out] if self.matcher is None else self.matcher.feed(assembled)
                else:
                    assert out == message
                    wanted = True
        if wanted and self.matcher is not None:
            self.crossed += 1
            answers += self.matcher.feed(message)
        return answers


def run(node: Node, messages: list[Publish]) -> list[Compound]:
    return [found for m in messages for found in node.feed(m)]


def local(pattern: Pattern, messages: list[Publish]) -> list[Compound]:
    monitor = Monitor(pattern)
    return [found for m in messages for found in monitor.feed(m)]


def places() -> st.SearchStrategy[Providers]:
    where = st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=2, unique=True)
    alone = st.sampled_from(["x", "y"]).map(lambda peer: [peer])
    return st.fixed_dictionaries({symbol: st.one_of(alone, alone, where) for symbol in SYMBOLS})


@settings(max_examples=600, deadline=None)
@given(patterns(), st.lists(places(), min_size=1, max_size=3), published(size_max=14))
def test_delegated_equals_local(
    pattern: Pattern, layers: list[Providers], messages: list[Publish]
) -> None:
    """At a router, at its neighbours, at theirs: the same compounds in the same order."""
    assert run(Node(Task.WHOLE, pattern, layers), messages) == local(pattern, messages)


@sizes(150, 1000)
def test_delegated_equals_local_on_larger_patterns(size: int) -> None:
    """Many times each task, in patterns that match; three routers deep."""
    rng, seen = random.Random(2000), Counter[Task]()
    for _ in range(size):
        pattern = Pattern(drawn(rng, "abcdef", rng.randint(2, 6)), rng.choice([(), ("k",)]))
        peers = {symbol: rng.choice("xxyz") for symbol in "abcdef"}
        providers = {c: [p] if rng.random() < 0.95 else ["x", "y"] for c, p in peers.items()}
        messages, time = [], 0
        for number in range(80):
            time += rng.randint(0, 2)
            message = Message({"t": rng.choice("abcdef"), "k": rng.randint(1, 2)})
            messages.append(Publish(message, "p", number, time))
        node = Node(Task.WHOLE, pattern, [providers, providers, providers])
        expected = local(pattern, messages)
        assert run(node, messages) == expected, pattern
        if expected:
            seen.update({d.task for d in node.plan.delegations})
    assert min(seen[task] for task in (Task.ASSEMBLE, Task.SIEVE)) > 0.07 * size, seen


TREES = [
    "[t = 'a'] then [t = 'b'] then [t = 'c']",
    "[t = 'c'] then [t = 'a'] then [t = 'b']",
    "[t = 'c'] then [t = 'a'] then [t = 'b'] then [t = 'c'] within 9 microseconds same k",
    "([t = 'a'] and [t = 'b']) then [t = 'c'] within 6 microseconds",
    "([t = 'a'] then [t = 'b'] within 3 microseconds) and [t = 'c'] same k",
    "([t = 'a'] then [t = 'b']) or ([t = 'c'] then [t = 'd'])",
    "[t = 'd'] then ([t = 'a'] and [t = 'a']) then [t = 'b'] then [t = 'c']",
    "([t = 'a'] then [t = 'b'] then [t = 'a']) or ([t IN ('a', 'c')] and [t = 'c'])",
    "([t = 'a'] then [t = 'b'] then [t = 'a']) and ([t = 'c'] then [t = 'd'])",
    "[t = 'a'] then [t = 'b'] then [t = 'b'] then [t IN ('a', 'c')]",
]
SPLIT = {"a": ["x"], "b": ["x"], "c": ["y"], "d": ["y"]}


@pytest.mark.parametrize("text", TREES)
def test_delegated_equals_local_on_long_runs(text: str) -> None:
    """Thousands of messages, with many matches, and less than all of them cross a link."""
    pattern, rng = parse(text), random.Random(text)
    crossed = wanted = found = 0
    for _ in range(20):
        messages, time = [], 0
        for number in range(200):
            time += rng.randint(0, 2)
            message = Message({"t": rng.choice("aabbbcdd"), "k": rng.randint(1, 2)})
            messages.append(Publish(message, "p", number, time))
        node = Node(Task.WHOLE, pattern, [SPLIT, SPLIT])
        expected = local(pattern, messages)
        assert run(node, messages) == expected
        crossed += node.crossed
        found += len(expected)
        wanted += sum(
            any(
                isinstance(p, Part) and p.predicate.matches(m.message) for p in leaves(pattern.node)
            )
            for m in messages
        )
    assert found > 10
    assert crossed < wanted


def test_tasks() -> None:
    """Front: assembled. After something, or when others want its messages: sieved."""

    def tasks(text: str) -> list[tuple[str, str, str]]:
        made = plan(parse(text), offers(SPLIT))
        return [(d.peer, str(d.task), str(d.pattern)) for d in made.delegations]

    assert tasks("[t = 'a'] then [t = 'b']") == [("x", "assemble", "[t = 'a'] then [t = 'b']")]
    assert tasks("[t = 'a'] then [t = 'b'] then [t = 'c'] within 1 second same k") == [
        ("x", "assemble", "[t = 'a'] then [t = 'b'] within 1 second same k")
    ]
    assert tasks("[t = 'c'] then [t = 'a'] then [t = 'b']") == [
        ("x", "sieve", "[t = 'a'] then [t = 'b']")
    ]
    assert tasks("[t = 'a'] then [t = 'b'] then [t = 'c'] then [t = 'a']") == [
        ("x", "sieve", "[t = 'a'] then [t = 'b']")
    ]
    assert tasks("([t = 'a'] then [t = 'b']) and ([t = 'c'] then [t = 'd'])") == [
        ("x", "assemble", "[t = 'a'] then [t = 'b']"),
        ("y", "assemble", "[t = 'c'] then [t = 'd']"),
    ]
    assert tasks("[t = 'a'] then [t = 'c'] then [t = 'b']") == []
    assert tasks("[t = 'c'] then ([t = 'a'] and [t = 'b'])") == []  # a sieve would pass all


def test_a_message_that_two_parts_want_is_seen_by_both_at_once() -> None:
    """b ends `a then b`, and alone it is the match that starts last; so it must not come twice."""
    pattern = parse("([t = 'a'] then [t = 'b']) or [t IN ('b', 'c')]")
    messages = [Publish(Message({"t": t, "k": 1}), "p", i, i) for i, t in enumerate("abacb")]
    node = Node(Task.WHOLE, pattern, [SPLIT])
    assert [d.task for d in node.plan.delegations] == [Task.SIEVE]
    assert run(node, messages) == local(pattern, messages)
    assert [len(c.messages) for c in local(pattern, messages)] == [1, 1, 1]


def test_plan_says_what_is_left() -> None:
    pattern = parse("[t = 'a'] then [t = 'b'] then [t = 'c'] within 1 second same k")
    made = plan(pattern, offers(SPLIT))
    assert str(made.residual) == "<0> then [t = 'c'] within 1 second same k"
    assert [(peer, str(p)) for peer, p in made.subscriptions] == [("y", "t = 'c'")]
    # A part from two neighbours is nobody's alone; a client is given nothing.
    both = plan(pattern, offers({**SPLIT, "b": ["x", "y"]}))
    assert (both.delegations, both.residual) == ((), pattern)
    assert [peer for peer, _ in both.subscriptions] == ["x", "x", "y", "y"]
    assert plan(pattern, offers(SPLIT), routers=["y"]).delegations == ()
    # What nobody advertises is waited for.
    assert plan(pattern, {}).subscriptions == ()


def test_traffic_is_less() -> None:
    """Of 1,000 messages, what crosses the link to x: the table of docs/concepts/patterns.md."""
    symbols = random.Random(7).choices("abc", [20, 70, 10], k=1000)
    messages = [Publish(Message({"t": t, "k": 1}), "p", i, i) for i, t in enumerate(symbols)]
    assert symbols.count("a") + symbols.count("b") == 893
    for text, task, crossed in [
        ("[t = 'a'] then [t = 'b'] then [t = 'c']", Task.ASSEMBLE, 164),
        ("([t = 'a'] and [t = 'b']) then [t = 'c']", Task.ASSEMBLE, 328),
        ("[t = 'c'] then [t = 'a'] then [t = 'b']", Task.SIEVE, 380),
        ("[t = 'a'] then [t = 'b'] within 1 microsecond", Task.ASSEMBLE, 149),
    ]:
        pattern = parse(text)
        node = Node(Task.WHOLE, pattern, [SPLIT])
        assert run(node, messages) == local(pattern, messages) != []
        assert [d.task for d in node.plan.delegations] == [task]
        from_y = symbols.count("c") if node.plan.subscriptions else 0
        assert node.crossed - from_y == crossed, text


@pytest.mark.parametrize("peer", [0, "", (), "east"], ids=repr)
def test_a_peer_may_be_any_hashable_value(peer: Any) -> None:
    """Peers that are false in a boolean context are delegated to as well."""
    (advertised,) = offers({"a": ["east"]}).values()
    whole = plan(parse("[t = 'a'] then [t = 'a']"), {peer: advertised})
    assert [delegation.peer for delegation in whole.delegations] == [peer]
    other = Advertisement((Constraint("t", "=", "b"), Constraint("k", "any")))
    pattern = parse("([t = 'a'] then [t = 'a']) then [t = 'b'] within 1 hour")
    part = plan(pattern, {peer: advertised, "west": [other]})
    assert [delegation.peer for delegation in part.delegations] == [peer]
