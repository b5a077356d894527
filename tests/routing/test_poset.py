"""The poset equals the naive one, finds what pairwise scans find, and skips what it may skip."""

from __future__ import annotations

import cProfile
import itertools
import math
import random
from collections.abc import Iterable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import Advertisement, Constraint, Filter, Message, covers
from palio.errors import InvalidValue
from palio.lab.data.workloads import disjunction_2006
from palio.model.message import as_message
from palio.routing.poset import ADVERTISEMENTS, SUBSCRIPTIONS, Order, Poset
from tests.model import brute
from tests.routing.naive_poset import NaivePoset, remembered
from tests.strategies import constraints_on, filters_of, messages

T = TypeVar("T", Filter, Advertisement)

POOLS = [
    brute.number_constraints(name) + brute.string_constraints(name) + brute.other_constraints(name)
    for name in "xyz"
]
NAMES = st.sampled_from("xyz")
CLOSE = filters_of(
    st.one_of(st.sampled_from([c for pool in POOLS for c in pool]), constraints_on(NAMES)),
    max_size=3,
)
"""Filters that often cover each other."""


def f(text: str) -> Filter:
    (found,) = palio.parse(text).filters
    return found


def subscriptions(*texts: str) -> Poset[Filter]:
    poset = Poset(SUBSCRIPTIONS)
    for text in texts:
        poset.insert(f(text))
    return poset


def agree(poset: Poset[T], naive: NaivePoset[T], strangers: Iterable[T] = ()) -> None:
    """Both hold the same; relations are the same, where covering is seen to be transitive."""
    assert list(poset) == list(naive)
    assert len(poset) == len(naive)
    for item in [*naive, *strangers]:
        assert poset.covering(item) == naive.covering(item), item
        assert poset.covered(item) == naive.covered(item), item
        assert poset.find(item) == naive.find(item), item
    if naive.stayed_transitive():
        assert poset.roots() == naive.roots()
        for item in naive:
            assert poset.predecessors(item) == naive.predecessors(item), item
            assert poset.successors(item) == naive.successors(item), item


def sound(poset: Poset[T]) -> None:
    """Edges are there from both ends, and from the roots they lead to everything."""
    for item in poset:
        assert all(item in poset.successors(upper) for upper in poset.predecessors(item))
        assert all(item in poset.predecessors(lower) for lower in poset.successors(item))
        assert (item in poset.roots()) == (not poset.predecessors(item))
    reached, ready = set(poset.roots()), list(poset.roots())
    while ready:
        new = poset.successors(ready.pop()) - reached
        reached |= new
        ready += new
    assert reached == set(poset)


def grown(order: Order[T], items: list[T], removals: list[int]) -> tuple[Poset[T], NaivePoset[T]]:
    """A poset after insertions and removals, and a naive one of what is in it."""
    poset, naive = Poset(order), NaivePoset[T]()
    for item in items:
        naive.insert(item)
    transitive = naive.stayed_transitive()
    for item in items:
        stands = poset.insert(item)
        assert stands in poset
        if transitive:
            assert stands == naive.find(item)
    naive = NaivePoset[T]()
    for item in poset:
        assert naive.insert(item) == item
    naive.stayed_transitive()
    for number in removals:
        if len(naive):
            item = list(naive)[number % len(naive)]
            poset.remove(item)
            naive.remove(item)
    return poset, naive


@settings(max_examples=200, deadline=None)
@given(
    st.lists(CLOSE, max_size=14),
    st.lists(st.integers(0, 99), max_size=8),
    st.lists(CLOSE, max_size=3),
    st.lists(messages, max_size=3),
)
def test_filters(
    items: list[Filter], removals: list[int], strangers: list[Filter], seen: list[Message]
) -> None:
    poset, naive = grown(SUBSCRIPTIONS, items, removals)
    agree(poset, naive, strangers)
    sound(poset)
    for message in seen:
        assert poset.matching(message) == naive.matching(message)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(constraints_on(NAMES), max_size=4), max_size=8),
    st.lists(st.integers(0, 99), max_size=4),
    st.lists(messages, max_size=2),
)
def test_advertisements(
    drawn: list[list[Constraint]], removals: list[int], seen: list[Message]
) -> None:
    items = [Advertisement(tuple(part)) for part in drawn]
    poset, naive = grown(ADVERTISEMENTS, items, removals)
    agree(poset, naive)
    sound(poset)
    for message in seen:
        assert poset.matching(message) == naive.matching(message)


@pytest.mark.parametrize("seed", range(6))
def test_every_operator_and_type_on_few_names(seed: int) -> None:
    """Dense posets: constraints of a small domain, of every type and operator."""
    pick = random.Random(seed)
    items = [
        Filter(tuple(pick.choice(pick.choice(POOLS)) for _ in range(pick.choice((1, 1, 2, 3)))))
        for _ in range(120)
    ]
    poset, naive = Poset(SUBSCRIPTIONS), NaivePoset[Filter](remembered())
    for step, item in enumerate(items):
        if poset.insert(item) == item:
            assert naive.insert(item) == item
            naive.stayed_transitive()
        if step % 3 == 2:
            gone = pick.choice(list(naive))
            poset.remove(gone)
            naive.remove(gone)
        if step % 20 == 19:
            agree(poset, naive, pick.sample(items, 10))
            sound(poset)


def test_where_covering_is_not_seen_to_be_transitive() -> None:
    """b covers c and a covers b, but the sound test does not see that a covers c."""
    a, b, c = f("s > 'a'"), f("s >= 'a' AND s != 'a' AND t = 1"), f("s >= 'a' AND s NOT LIKE '%a'")
    c = Filter((*c.constraints, *f("t = 1 AND u = 1").constraints))
    assert covers(a, b)
    assert covers(b, c)
    assert not covers(a, c)
    for order in itertools.permutations((a, b, c)):
        poset = Poset(SUBSCRIPTIONS)
        for item in order:
            assert poset.insert(item) == item
        sound(poset)
        assert poset.roots() == {a}
        assert poset.successors(a) == {b}
        assert poset.successors(b) == {c}
        assert poset.covering(c) == {b, c}
        poset.remove(b)
        sound(poset)
        assert poset.successors(a) == {c}


@pytest.mark.parametrize(("names", "zipf"), [(20, True), (8, False)])
def test_the_workload_of_2006(names: int, zipf: bool) -> None:
    items = list(disjunction_2006(260, names=names, zipf=zipf, seed=5).filters)
    naive, poset = NaivePoset[Filter](remembered()), Poset(SUBSCRIPTIONS)
    for item in items:
        assert poset.insert(item) == naive.insert(item)
    agree(poset, naive)
    for item in random.Random(1).sample(list(naive), 150):
        poset.remove(item)
        naive.remove(item)
    agree(poset, naive, items[::10])
    sound(poset)


def test_large_sets_and_long_texts() -> None:
    """Beyond what an index lists member by member."""
    many = Filter((Constraint("x", "in", list(range(0, 400, 2))),))
    texts = Filter((Constraint("s", "in", [f"id/{i:04}" for i in range(300)]),))
    long = "a" * 300 + "b" + "c" * 300
    poset = subscriptions(
        "x = 6", "x IN (2, 4)", "x IN (2, 3)", "x >= 0", "x < 398", "s LIKE 'id/%'",
        "s = 'id/0007'", "s LIKE '%7'", "s LIKE '%bcc%'",
    )  # fmt: skip
    for item in (many, texts, Filter((Constraint("s", "=", long),))):
        poset.insert(item)
    naive = NaivePoset[Filter]()
    for item in poset:
        naive.insert(item)
    agree(poset, naive)
    assert poset.successors(many) == {f("x = 6"), f("x IN (2, 4)")}


# ---- single rules


def test_a_poset_like_that_of_figure_2() -> None:
    """2000, 3.4: general subscriptions above, special ones below, with two parents where due."""
    poset = subscriptions(
        "airline = 'UA' AND dest = 'ARN' AND price < 100",
        "airline IS NOT NULL",
        "price < 500",
        "airline = 'UA' AND dest = 'ARN'",
        "airline = 'UA'",
        "airline = 'UA' AND price < 400",
    )
    assert poset.roots() == {f("airline IS NOT NULL"), f("price < 500")}
    assert poset.successors(f("airline IS NOT NULL")) == {f("airline = 'UA'")}
    assert poset.successors(f("price < 500")) == {f("airline = 'UA' AND price < 400")}
    assert poset.predecessors(f("airline = 'UA' AND dest = 'ARN' AND price < 100")) == {
        f("airline = 'UA' AND dest = 'ARN'"),
        f("airline = 'UA' AND price < 400"),
    }


def test_removal_links_anew_only_where_no_other_path_is() -> None:
    poset = subscriptions("x < 9", "x < 8", "x < 7", "x < 7 AND y = 1", "x < 8 AND y < 3")
    poset.remove(f("x < 8"))
    assert poset.successors(f("x < 9")) == {f("x < 7"), f("x < 8 AND y < 3")}
    poset.remove(f("x < 7"))
    assert poset.successors(f("x < 9")) == {f("x < 8 AND y < 3")}
    assert poset.predecessors(f("x < 7 AND y = 1")) == {f("x < 8 AND y < 3")}
    poset.remove(f("x < 9"))
    assert poset.roots() == {f("x < 8 AND y < 3")}


def test_of_equal_items_the_first_stays() -> None:
    poset = subscriptions("s LIKE 'ab%'")
    twin = f("s >= 'ab' AND s < 'ac'")
    assert poset.insert(twin) == f("s LIKE 'ab%'")
    assert poset.insert(f("s LIKE 'ab%' AND s >= 'a'")) == f("s LIKE 'ab%'")
    assert (len(poset), twin in poset, f("s LIKE 'ab%'") in poset) == (1, False, True)
    assert poset.find(twin) == f("s LIKE 'ab%'")
    assert poset.predecessors(twin) == set()
    poset.remove(twin)
    assert len(poset) == 0
    assert poset.find(twin) is None


def test_contradictions_lie_at_the_bottom() -> None:
    poset = subscriptions("x = 1", "x = 1 AND x = 2", "y > 3")
    bottom = f("x = 1 AND x = 2")
    assert poset.insert(f("z < 1 AND z > 2")) == bottom
    assert poset.predecessors(bottom) == {f("x = 1"), f("y > 3")}
    assert poset.covering(bottom) == set(poset)
    assert poset.covered(bottom) == {bottom}
    poset.insert(f("y > 4"))
    assert poset.predecessors(bottom) == {f("x = 1"), f("y > 4")}
    poset.remove(f("y > 4"))
    assert poset.predecessors(bottom) == {f("x = 1"), f("y > 3")}
    poset.remove(f("x = 1"))
    poset.remove(f("y > 3"))
    assert poset.roots() == {bottom}


def test_the_empty_filter_is_the_single_root() -> None:
    poset = subscriptions("x = 1", "y IS NULL", "x > 3 AND x < 2")
    top = Filter(())
    poset.insert(top)
    assert poset.roots() == {top}
    assert poset.successors(top) == {f("x = 1"), f("y IS NULL")}
    assert poset.covered(top) == set(poset)
    assert poset.covering(f("q = 5")) == {top}
    poset.remove(top)
    assert poset.roots() == {f("x = 1"), f("y IS NULL")}


def test_numbers_beyond_all_numbers() -> None:
    """NaN is above infinity; hulls that end or begin there come and go like others."""
    ends = [Constraint("x", op, end) for op in ("<", "<=", ">", ">=", "=", "!=")
            for end in (-math.inf, 0, math.inf)]  # fmt: skip
    items = [Filter((c,)) for c in ends] + [Filter((a, b)) for a in ends for b in ends[::2]]
    poset, naive = Poset(SUBSCRIPTIONS), NaivePoset[Filter](remembered())
    pick = random.Random(3)
    for item in pick.sample(items, len(items)):
        assert poset.insert(item) == naive.insert(item)
    agree(poset, naive)
    for item in pick.sample(list(naive), len(naive) - 3):
        poset.remove(item)
        naive.remove(item)
    agree(poset, naive, items)


def test_the_way_up() -> None:
    """`above` begins with the nearest, and holds all that cover; `covers` asks of a pair."""
    poset = subscriptions("x < 9", "x < 8", "x < 7", "y = 1", "x < 7 AND y = 1")
    low = f("x < 7 AND y = 1")
    up = list(poset.above(low))
    assert set(up[:2]) == poset.predecessors(low)
    assert up[2:] == [f("x < 8"), f("x < 9")]
    assert poset.covering(low) == {low, *up}
    assert poset.covers(f("x < 8"), low)
    assert not poset.covers(low, f("x < 8"))
    assert poset.covers(f("x < 20"), low)  # which is not in


def test_a_search_is_not_answered_from_before_a_change() -> None:
    poset = subscriptions("x < 9", "x < 5")
    asked = f("x < 7")
    assert poset.covering(asked) == {f("x < 9")}
    poset.insert(f("x < 8"))
    assert poset.covering(asked) == {f("x < 9"), f("x < 8")}
    poset.remove(f("x < 5"))
    assert poset.covered(asked) == set()
    poset.insert(asked)
    assert poset.covering(asked) == {f("x < 9"), f("x < 8"), asked}
    assert poset.covered(f("x < 9")) == set(poset)
    poset.remove(asked)
    assert poset.covered(asked) == set()


def test_what_is_not_there() -> None:
    poset = subscriptions("x = 1")
    with pytest.raises(InvalidValue, match=r"y = 2.*subscriptions.*insert it first"):
        poset.remove(f("y = 2"))
    with pytest.raises(InvalidValue, match="not in the poset"):
        poset.successors(f("y = 2"))
    assert len(poset) == 1


def test_advertisements_are_ordered_by_their_own_relation() -> None:
    """2000, 3.3: more constraints allow more; more names, too."""
    low, high = Constraint("level", "<", 5), Constraint("level", ">=", 5)
    alarm = Constraint("what", "=", "alarm")
    wide, left, bare = (Advertisement(c) for c in ((low, high, alarm), (low, alarm), (low,)))
    poset = Poset(ADVERTISEMENTS)
    for item in (bare, wide, left):
        assert poset.insert(item) == item
    assert poset.roots() == {wide}
    assert poset.successors(wide) == {left}
    assert poset.successors(left) == {bare}
    assert poset.insert(Advertisement((alarm, low))) == left
    assert poset.covered(left) == {left, bare}
    poset.remove(left)
    assert poset.successors(wide) == {bare}


def test_order_is_that_of_insertion() -> None:
    poset = subscriptions("x < 3", "x < 9", "x < 5")
    poset.remove(f("x < 3"))
    poset.insert(f("x < 3"))
    assert list(poset) == [f("x < 9"), f("x < 5"), f("x < 3")]
    assert poset.ordered(poset.covered(f("x < 9"))) == list(poset)


class Counted(Filter, frozen=True):
    """A filter that counts how often it is evaluated."""

    evaluations = 0

    def matches(self, message: object) -> bool:
        Counted.evaluations += 1
        return super().matches(message)  # type: ignore[arg-type]


def test_matching_skips_what_lies_under_a_filter_that_does_not_match() -> None:
    """2000, 3.7. A filter is looked at only when all its predecessors match."""
    items = [Counted(c.constraints) for c in disjunction_2006(400, names=12, seed=2).filters]
    poset = Poset(SUBSCRIPTIONS)
    for item in items:
        poset.insert(item)
    pick = random.Random(3)
    total = 0
    for _ in range(30):
        drawn = {
            f"a{i}": pick.choice(("the", "said", "market")) if i % 2 else pick.randint(-100, 100)
            for i in pick.sample(range(12), 4)
        }
        message = as_message(drawn)
        expected = {item for item in poset if item.matches(message)}
        to_see = sum(poset.predecessors(item) <= expected for item in poset)
        Counted.evaluations = 0
        assert poset.matching(drawn) == expected
        assert Counted.evaluations == to_see
        total += to_see
    assert total < 30 * len(poset) / 3


def test_a_value_that_all_filters_ask_for_does_not_make_a_search_longer() -> None:
    calls = []
    for chains in (10, 80):
        poset = Poset(SUBSCRIPTIONS)
        for i in range(chains):
            for k in range(5):
                poset.insert(f(f"a = 1 AND s LIKE 'x{i}{'ab' * k}%' AND c > {k}"))
        asked = f("a = 1 AND s LIKE 'x3abab%' AND c > 3")
        profile = cProfile.Profile()
        profile.enable()
        found = len(poset.covering(asked)), len(poset.covered(asked))
        profile.disable()
        assert found == (3, 2), "x3, x3ab, x3abab; x3ababab, x3abababab"
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 2 * calls[0], "by the common value it would be eight times as long"
