"""Random patterns over few symbols, and random messages for them.

Hypothesis draws small cases, which shrink; `drawn` draws larger ones, which match more often.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import palio
from palio.errors import InvalidPattern
from palio.model.message import Message
from palio.routing.packets import Publish
from palio.routing.patterns.pattern import And, Node, Or, Part, Pattern, Then, With, Within

SYMBOLS = "abcd"


def symbols() -> SearchStrategy[Part]:
    """Mostly one symbol, so that parts of an `and` exclude each other, sometimes several."""
    chosen = st.one_of(
        st.sampled_from(SYMBOLS).map(lambda one: {one}),
        st.sampled_from(SYMBOLS).map(lambda one: {one}),
        st.sets(st.sampled_from(SYMBOLS), min_size=1, max_size=3),
    )
    return chosen.map(
        lambda some: Part(palio.parse(" OR ".join(f"t = '{c}'" for c in sorted(some))))
    )


def _joined(kind: type[Then | And | With | Or], nodes: list[Node]) -> Node:
    try:
        return kind(tuple(nodes))
    except InvalidPattern:  # an `and` whose parts share messages
        return Then(tuple(nodes))


def nodes() -> SearchStrategy[Node]:
    return st.recursive(
        symbols(),
        lambda inner: st.one_of(
            st.builds(
                _joined,
                st.sampled_from([Then, Then, And, With, Or]),
                st.lists(inner, min_size=2, max_size=3),
            ),
            st.builds(Within, inner, st.integers(1, 6)),
        ),
        max_leaves=5,
    )


def patterns() -> SearchStrategy[Pattern]:
    return st.builds(Pattern, nodes(), st.sampled_from([(), ("k",)]))


@st.composite
def published(draw: st.DrawFn, size_max: int = 10) -> list[Publish]:
    """Messages in their order; some have equal times, some lack the key."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(SYMBOLS), st.integers(0, 2), st.sampled_from([1, 1, 2, None])
            ),
            max_size=size_max,
        )
    )
    time, made = 100, []
    for number, (symbol, gap, key) in enumerate(rows):
        time += gap
        made.append(Publish(Message({"t": symbol, "k": key}), "p", number, time))
    return made


def drawn(rng: random.Random, symbols: str, parts: int) -> Node:
    """A pattern of so many parts; each has a symbol of its own, as long as there are enough."""
    some = rng.sample(symbols, len(symbols)) * parts
    return _tree(rng, [_part(rng, symbol, symbols) for symbol in some[:parts]])


def _part(rng: random.Random, symbol: str, symbols: str) -> Part:
    chosen = {symbol} if rng.random() < 0.85 else {symbol, rng.choice(symbols)}
    return Part(palio.parse(" OR ".join(f"t = '{c}'" for c in sorted(chosen))))


def _tree(rng: random.Random, parts: list[Part]) -> Node:
    if len(parts) == 1:
        return parts[0]
    cuts = sorted(rng.sample(range(1, len(parts)), rng.randint(1, min(2, len(parts) - 1))))
    pieces = [parts[i:j] for i, j in zip([0, *cuts], [*cuts, len(parts)], strict=True)]
    joined = _joined(
        rng.choice([Then, Then, Then, And, With, Or]), [_tree(rng, piece) for piece in pieces]
    )
    return Within(joined, rng.randint(5, 40)) if rng.random() < 0.3 else joined
