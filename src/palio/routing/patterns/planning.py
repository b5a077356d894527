"""Factoring and delegation: which router matches which part of a pattern (2000, 3.6).

    plan(pattern, providers) ──▶ PatternPlan
        delegations     sub-patterns, each to the one neighbour that provides all its parts
        subscriptions   the other parts: plain subscriptions at each neighbour that provides them
        parts           the same parts, each once, and those that nobody provides yet
        residual        what a monitor here matches, with Awaited(n) for the sub-pattern n;
                        None if the whole pattern is delegated

A peer provides a part if it has an advertisement that intersects the predicate of the part. A
sub-pattern of at least two messages is delegated if one neighbour, and no other peer, provides all
its parts:

    the task that this router has (for WHOLE: ASSEMBLE)
               the whole pattern: the neighbour gets every message that this router would get.
    ASSEMBLE   no step precedes it (it is in the first step of every `then` around it), and no other
               part of the pattern matches its messages. Its tight spans arrive as compounds.
    SIEVE      otherwise. The neighbour sends the messages of tight spans, and this router matches.

Why the matches are the same. Let S be the sub-pattern. (1) What the monitor of the whole pattern does
depends on S through its tight spans since the last match, and nothing else (automaton.py). (2) A
span from s on is tight whatever was forgotten before s: any span inside it starts no earlier. So
the tight spans since a match are those of an S that is never restarted and that start after that
match: the Assembler gives those, and the monitor drops a compound that began before.
(3) A compound arrives with its last message. For a `then` whose right side is S, the monitor would
need to know what had ended before S began, long before: hence "no step precedes it".
For `and`, `with`, `or` and the left side of `then` only the order of ends matters, which is kept. No other
part wants a message of S, so no message would be taken by two nodes in one step there and in two
steps here. (4) A Sieve lets through every message of every tight span of S: when it comes, it is
last in a span that is kept or given by a state of S, and a message that is neither then is in no
span later. With these messages, or more, S has the same tight spans: they are all there, and spans
of fewer messages are spans of all. (5) A run of steps inside a `then` is no node of its own, since
A then B then C is (A then B) then C; still a Sieve of B then C does: if c ends a tight span of
A then B then C and not of B then C, there is a c' between the latest b and c, and A then B then c'
lies inside. A run at the front is a node, and can be assembled. (6) A `within` around S bounds S
as well: what is longer can be in no match of the whole.

(7) A monitor of nothing but S, assembled elsewhere, is a monitor of S, by (2): its matches are the tight
spans that begin after the last match. And since an S that is never restarted has the tight spans of
all, whenever they began to ask, one Assembler or Sieve of S serves any number of them
(available.py).

A router that is given a task plans it again, with the same function: for an Assembler (2) to (6) hold
as they do for a Monitor, and a Sieve of sieved messages lets through what it would of all (4).

All this holds as long as nothing is late and no limit of keys is met, here and there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from palio.model.advertisement import Advertisement
from palio.model.covering import intersects
from palio.model.predicate import Predicate
from palio.routing.patterns.packets import Task
from palio.routing.patterns.pattern import (
    And,
    Awaited,
    Node,
    Or,
    Part,
    Pattern,
    Then,
    With,
    Within,
    bounded,
    children,
    core,
    leaves,
    overlap,
    single,
)
from palio.routing.publication import Peer


class Delegation(msgspec.Struct, frozen=True):
    """A sub-pattern, the neighbour that gets it, and its task there."""

    number: int
    peer: Peer
    task: Task
    pattern: Pattern


class PatternPlan(msgspec.Struct, frozen=True):
    """How a pattern is divided between this router and its neighbours."""

    delegations: tuple[Delegation, ...] = ()
    subscriptions: tuple[tuple[Peer, Predicate], ...] = ()
    residual: Pattern | None = None
    parts: tuple[Predicate, ...] = ()
    """The parts that are matched here, whether a peer provides them now or not."""

    @property
    def shape(self) -> tuple[object, ...]:
        """The plan without the `within` around its residual and its delegations: plans of equal shape
        can continue from each other's state."""
        delegations = tuple((d.peer, d.task, core(d.pattern)[0]) for d in self.delegations)
        return delegations, self.residual and core(self.residual)[0]


def plan(
    pattern: Pattern,
    providers: Mapping[Peer, Iterable[Advertisement]],
    routers: Collection[Peer] | None = None,
    task: Task = Task.WHOLE,
) -> PatternPlan:
    """How to match a pattern whose messages come from these peers.

    `providers` are all peers, including clients, with their advertisements; `routers` are those
    among them that can take a sub-pattern (None: all). `task` is what this router does with the
    pattern: WHOLE for a client, or the task that was delegated to it; `matcher(task, residual)`
    does it. The result depends on the arguments only.
    """
    offers = {peer: tuple(advertisements) for peer, advertisements in providers.items()}
    able = set(offers if routers is None else routers)
    planner = _Planner(pattern, offers, able)
    if (peer := planner.provider(pattern.node)) is not None and single(pattern.node) is None:
        return _delegated(peer, pattern, task)
    node = planner.place(pattern.node, None, task is not Task.SIEVE)  # a sieve gives messages only
    residual = Pattern(node, pattern.same)
    parts = tuple(dict.fromkeys(part.predicate for part in planner.plain))
    return PatternPlan(tuple(planner.delegations), planner.subscriptions(), residual, parts)


def _delegated(peer: Peer, pattern: Pattern, task: Task) -> PatternPlan:
    """The plan for a pattern of which one neighbour provides all."""
    if task is not Task.WHOLE:
        return PatternPlan((Delegation(0, peer, task, pattern),), (), None)
    residual = bounded(Pattern(Awaited(0), pattern.same), core(pattern)[1])
    return PatternPlan((Delegation(0, peer, Task.ASSEMBLE, pattern),), (), residual)


def here(pattern: Pattern) -> PatternPlan:
    """The plan that delegates nothing."""
    parts = (leaf.predicate for leaf in leaves(pattern.node) if isinstance(leaf, Part))
    return PatternPlan(residual=pattern, parts=tuple(dict.fromkeys(parts)))


class _Planner:
    """Walks down a pattern and collects delegations and subscriptions."""

    def __init__(
        self, pattern: Pattern, offers: dict[Peer, tuple[Advertisement, ...]], able: set[Peer]
    ) -> None:
        self.pattern, self.able = pattern, able
        self.delegations: list[Delegation] = []
        self.plain: list[Part] = []
        self.sources: dict[Part, list[Peer]] = {}
        for leaf in leaves(pattern.node):
            if isinstance(leaf, Part) and leaf not in self.sources:
                self.sources[leaf] = [
                    peer
                    for peer, advertisements in offers.items()
                    if any(intersects(a, leaf.predicate) for a in advertisements)
                ]

    def provider(self, *nodes: Node) -> Peer | None:
        """The router that is the only provider of all parts of these nodes, if there is one."""
        providers: set[Peer] = set()
        for leaf in (leaf for node in nodes for leaf in leaves(node)):
            if not isinstance(leaf, Part) or len(self.sources[leaf]) != 1:
                return None
            providers.update(self.sources[leaf])
        return providers.pop() if len(providers) == 1 and providers <= self.able else None

    def subscriptions(self) -> tuple[tuple[Peer, Predicate], ...]:
        wanted = ((peer, part.predicate) for part in self.plain for peer in self.sources[part])
        return tuple(dict.fromkeys(wanted))

    def place(self, node: Node, micros: int | None, first: bool) -> Node:
        """The part of a node that is matched here. `micros`: the tightest `within` around it;
        `first`: no step precedes it."""
        if single(node) is None and (peer := self.provider(node)) is not None:
            placed = self._delegate(peer, node, micros, first)
            if placed is not None:
                return placed
        if isinstance(node, Part):
            self.plain.append(node)
        if isinstance(node, Within):
            inner = min(node.micros, micros or node.micros)
            return Within(self.place(node.node, inner, first), node.micros)
        if isinstance(node, Then):
            return self._then(node, micros, first)
        if isinstance(node, And | With):
            return type(node)(tuple(self.place(part, micros, first) for part in node.parts))
        if isinstance(node, Or):
            return Or(tuple(self.place(choice, micros, first) for choice in node.choices))
        return node

    def _then(self, node: Then, micros: int | None, first: bool) -> Node:
        """Contiguous steps from one provider are delegated together."""
        left: list[Node] = []
        for run, peer in self._runs(node.steps):
            in_front = first and not left
            if peer is None or len(run) == 1:
                left.extend(self.place(step, micros, in_front) for step in run)
            else:
                placed = self._delegate(peer, Then(run), micros, in_front)
                left.extend([placed] if isinstance(placed, Awaited) else run)
        return Then(tuple(left))

    def _runs(self, steps: tuple[Node, ...]) -> list[tuple[tuple[Node, ...], Peer | None]]:
        runs: list[tuple[tuple[Node, ...], Peer | None]] = []
        for step in steps:
            peer = self.provider(step)
            if runs and peer is not None and runs[-1][1] == peer:
                runs[-1] = ((*runs[-1][0], step), peer)
            else:
                runs.append(((step,), peer))
        return runs

    def _delegate(self, peer: Peer, node: Node, micros: int | None, first: bool) -> Node | None:
        """Delegate a node to a peer; returns what is matched here instead. None: it would save nothing."""
        alone = first and not self._wanted_elsewhere(node)
        if not alone and not _has_order(node):
            return None
        number = len(self.delegations)
        task = Task.ASSEMBLE if alone else Task.SIEVE
        delegated = bounded(Pattern(node, self.pattern.same), micros)
        self.delegations.append(Delegation(number, peer, task, delegated))
        return Awaited(number) if alone else node

    def _wanted_elsewhere(self, node: Node) -> bool:
        """Whether a part of the pattern outside this node may match a message of it."""
        others = Counter(leaves(self.pattern.node)) - Counter(leaves(node))
        return any(overlap(node, other) for other in others)


def _has_order(node: Node) -> bool:
    """Whether a sieve saves anything: without a `then` every message passes it."""
    return isinstance(node, Then) or any(map(_has_order, children(node)))
