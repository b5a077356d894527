"""Posets under any sequence of insertions and removals: they stay equal to the naive one."""

from __future__ import annotations

import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from palio import Filter, Message
from palio.routing.poset import SUBSCRIPTIONS, Poset
from tests.routing.naive_poset import NaivePoset, remembered
from tests.routing.test_poset import CLOSE, agree, sound
from tests.seeds import sizes
from tests.strategies import messages

NUMBERS = st.integers(0, 99)


class PosetMachine(RuleBasedStateMachine):
    """Filters come from a small pool, so that they leave and come back."""

    @initialize(pool=st.lists(CLOSE, min_size=4, max_size=12))
    def begin(self, pool: list[Filter]) -> None:
        self.pool = pool
        self.poset, self.naive = Poset(SUBSCRIPTIONS), NaivePoset[Filter](remembered())

    @rule(number=NUMBERS)
    def insert(self, number: int) -> None:
        item = self.pool[number % len(self.pool)]
        stands = self.poset.insert(item)
        if stands == item:
            self.naive.insert(item)
        else:
            assert item not in self.poset
            equal = self.naive.find(item)
            assert equal is None or equal == stands or not self.naive.stayed_transitive()

    @rule(first=CLOSE, rest=st.lists(CLOSE, max_size=2))
    def insert_joined(self, first: Filter, rest: list[Filter]) -> None:
        """A filter and longer ones, so that there are chains."""
        for parts in itertools.accumulate([first, *rest], lambda a, b: Filter((*a, *b))):
            if self.poset.insert(parts) == parts:
                self.naive.insert(parts)

    @precondition(lambda self: len(self.naive) > 0)
    @rule(number=NUMBERS)
    def remove(self, number: int) -> None:
        item = list(self.naive)[number % len(self.naive)]
        self.poset.remove(item)
        self.naive.remove(item)

    @rule(message=messages)
    def match(self, message: Message) -> None:
        assert self.poset.matching(message) == self.naive.matching(message)

    @invariant()
    def same(self) -> None:
        if hasattr(self, "pool"):
            agree(self.poset, self.naive, self.pool[:2])
            sound(self.poset)


@sizes(10, 200)
def test_the_poset_is_the_naive_one(size: int) -> None:
    run_state_machine_as_test(
        PosetMachine, settings=settings(max_examples=size, stateful_step_count=20, deadline=None)
    )
