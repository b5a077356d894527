"""Random patterns over few letters, and random messages for them."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import palio
from palio.errors import InvalidPattern
from palio.model.message import Message
from palio.routing.packets import Publish
from palio.routing.patterns.pattern import And, Node, Or, Part, Pattern, Then, Within

LETTERS = "abcd"


def letters() -> SearchStrategy[Part]:
    """Mostly one letter, so that parts of an `and` exclude each other, sometimes several."""
    chosen = st.one_of(
        st.sampled_from(LETTERS).map(lambda one: {one}),
        st.sampled_from(LETTERS).map(lambda one: {one}),
        st.sets(st.sampled_from(LETTERS), min_size=1, max_size=3),
    )
    return chosen.map(
        lambda some: Part(palio.parse(" OR ".join(f"t = '{c}'" for c in sorted(some))))
    )


def _joined(kind: type[Then | And | Or], nodes: list[Node]) -> Node:
    try:
        return kind(tuple(nodes))
    except InvalidPattern:  # an `and` whose parts share messages
        return Then(tuple(nodes))


def nodes() -> SearchStrategy[Node]:
    return st.recursive(
        letters(),
        lambda inner: st.one_of(
            st.builds(
                _joined,
                st.sampled_from([Then, Then, And, Or]),
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
                st.sampled_from(LETTERS), st.integers(0, 2), st.sampled_from([1, 1, 2, None])
            ),
            max_size=size_max,
        )
    )
    time, made = 100, []
    for number, (letter, gap, key) in enumerate(rows):
        time += gap
        made.append(Publish(Message({"t": letter, "k": key}), "p", number, time))
    return made
