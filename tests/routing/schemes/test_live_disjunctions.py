"""Live disjunctions against `palio.reduce` of the same filters, after every change."""

from __future__ import annotations

import random
from itertools import product

import pytest

from palio import covers, parse
from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.model.reduction import reduce
from palio.routing.schemes import live_disjunctions
from palio.routing.schemes.live_disjunctions import LiveDisjunctions

TEXTS = (
    *("x > 0", "x > 1", "x > 2", "x >= 2", "x = 2", "x > 0 AND y = 1", "x > 1 AND y = 1"),
    *("y = 1", "y = 2", "y > 0", "x > 0 AND x > 1", "x BETWEEN 1 AND 2", "s LIKE 'a%'"),
    *("s = 'ab'", "s LIKE 'a%' AND x > 1", "s = 'ab' AND x > 2", "y IS NULL", "TRUE"),
)
FILTERS = [f for text in TEXTS for f in parse(text).filters]
BROKERS = ("ann", "bob", "cy", "dan")
GROUPS = [("ann",), ("bob", "cy"), ("ann", "dan"), BROKERS]


def disjunction(live: LiveDisjunctions, brokers: tuple[str, ...]) -> Predicate:
    mask = live.mask(brokers)
    return Predicate(tuple(one.item for one in live if one.is_in(mask)))


def messages() -> list[Message]:
    found = []
    for x, y, s in product((None, 0, 1, 2, 3), (None, 1, 2), (None, "ab", "b")):
        given = {"x": x, "y": y, "s": s}
        found.append(Message({name: value for name, value in given.items() if value is not None}))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_disjunctions_are_exact_and_reduced_after_every_change(seed: int) -> None:
    rng, live = random.Random(seed), LiveDisjunctions()
    wanted: dict[str, set[Filter]] = {broker: set() for broker in BROKERS}
    known = {(brokers, found): False for brokers in GROUPS for found in FILTERS}
    for _ in range(80):
        broker, found = rng.choice(BROKERS), rng.choice(FILTERS)
        is_wanted = found not in wanted[broker]
        (wanted[broker].add if is_wanted else wanted[broker].remove)(found)
        changed = list(live.change(broker, found, is_wanted))
        for brokers in GROUPS:
            union = [f for b in brokers for f in wanted[b]]
            now = disjunction(live, brokers)
            expected = reduce(Predicate(tuple(dict.fromkeys(union))))
            assert len(now) == len(expected)
            assert covers(now, expected)
            assert covers(expected, now)
            for message in messages():
                assert now.matches(message) == any(f.matches(message) for f in union)
            # whoever follows the changes has the same disjunction
            mask = live.mask(brokers)
            for shared, bits in changed:
                if bits & mask:
                    known[brokers, shared.item] = shared.is_in(mask)
            assert {f for f in FILTERS if known[brokers, f]} == set(now)
    for broker, left in wanted.items():
        for found in list(left):
            list(live.change(broker, found, False))
    assert len(live) == len(live._poset) == 0
    assert not live._repeats
    live.forget_all_but(())
    assert not live._numbers


def test_a_removed_filter_uncovers_what_it_covered() -> None:
    live = LiveDisjunctions()
    wide, middle, narrow = parse("x > 1 OR x > 3 OR x > 5").filters
    for broker, found in (("ann", wide), ("bob", middle), ("cy", narrow)):
        list(live.change(broker, found, True))
    assert set(disjunction(live, BROKERS)) == {wide}
    assert set(disjunction(live, ("bob", "cy"))) == {middle}
    list(live.change("ann", wide, False))
    assert set(disjunction(live, BROKERS)) == {middle}
    list(live.change("bob", middle, False))
    assert set(disjunction(live, BROKERS)) == {narrow}


def test_a_change_tells_only_the_filters_below_it() -> None:
    live = LiveDisjunctions()
    for i in range(50):
        list(live.change("ann", parse(f"id = {i} AND x > 3").filters[0], True))
    (found,) = parse("id = 7 AND x > 1").filters
    assert len(list(live.change("bob", found, True))) == 2


def test_bits_of_brokers_that_are_gone_are_reused() -> None:
    live = LiveDisjunctions()
    (found,) = parse("x > 1").filters
    list(live.change("ann", found, True))
    assert live.mask(["bob", "cy"]) == 0b110
    live.forget_all_but(["cy"])
    assert live.mask(["dan"]) == 0b010
    assert live.mask(["ann", "cy"]) == 0b101


def test_beyond_the_limit_filters_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_disjunctions, "ORDERED_MAX", 1)
    live = LiveDisjunctions()
    narrow, wide = parse("x > 5 OR x > 1").filters
    for found in (narrow, wide):
        list(live.change("ann", found, True))
    assert set(disjunction(live, ("ann",))) == {narrow, wide}
    for found in (narrow, wide):
        list(live.change("ann", found, False))
    assert len(live) == 0
