"""The 2000 paper, section 3.7: the cost of the routing operations, counted in comparisons, not in time.

The paper gives upper bounds. What is counted: evaluations of a constraint on an attribute, comparisons of
names, and comparisons of the value sets of two constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import force_setattr

from palio import Advertisement, Constraint, Filter, Message, covers
from palio.errors import InvalidPredicate, InvalidValue
from palio.matching.counting.trees import NameTree
from palio.model import boxes, covering
from palio.model.covering import intersects
from palio.model.predicate import Predicate
from palio.routing import cells
from palio.routing.poset import SUBSCRIPTIONS, Poset
from palio.routing.schemes.memory import filter_bits


class Count:
    calls = 0


@contextmanager
def counted(*places: tuple[object, str]) -> Iterator[Count]:
    """Count the calls of these functions."""
    count = Count()

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def called(*args: object, **more: object) -> object:
            count.calls += 1
            return function(*args, **more)

        return called

    with pytest.MonkeyPatch.context() as patched:
        for place, name in places:
            patched.setattr(place, name, counting(getattr(place, name)))
        yield count


class Name(str):
    """A name whose comparisons are counted; a hash that differs is no comparison."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)  # type: ignore[arg-type]

    __hash__ = str.__hash__


def constraint(number: int, op: str, value: int) -> Constraint:
    """A constraint on the attribute of this number, with a name that counts."""
    made = Constraint(f"a{number}", op, value)
    force_setattr(made, "name", Name(made.name))
    return made


def attributes(count: int) -> Message:
    return Message({f"a{number}": 1 for number in range(count)})


def work(item: Filter | Advertisement, message: Message) -> int:
    """Evaluations of constraints and comparisons of names."""
    Name.compared = 0
    with counted((Constraint, "matches")) as evaluations:
        assert item.matches(message)
    return evaluations.calls + Name.compared


SIZES = [(5, 5), (5, 50), (50, 5), (50, 50), (200, 200)]


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_a_subscription_is_evaluated_in_n_plus_m(n: int, m: int) -> None:
    """3.7: a conjunction of n constraints on m attributes: O(n + m). Here all n constraints hold, on
    attributes that are there: nothing ends early."""
    constraints = [constraint(number % m, ">=", -number) for number in range(n)]
    assert n <= work(Filter(tuple(constraints)), attributes(m)) <= 2 * (n + m)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_an_advertisement_is_evaluated_in_n_plus_m(n: int, m: int) -> None:
    """3.7: every attribute needs one of its constraints: O(n + m). Those that fail come first."""
    constraints = [constraint(number % m, "=", -number) for number in range(max(0, n - m))]
    constraints += [constraint(number, "=", 1) for number in range(m)]
    assert work(Advertisement(tuple(constraints)), attributes(m)) <= 3 * (len(constraints) + m)


def chain(n: int, low: int) -> Filter:
    return Filter(tuple(Constraint(f"a{number}", ">", low) for number in range(n)))


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_covering_of_subscriptions_takes_at_most_n_times_m(n: int, m: int) -> None:
    """3.7: each constraint of one with any corresponding ones of the other: O(nm). Ours are sets of
    values by name, so it is n."""
    wide, narrow = chain(min(n, m), 0), chain(m, 5)
    with counted((boxes, "is_subset")) as compared:
        assert covers(wide, narrow)
    assert 0 < compared.calls <= n * m
    assert compared.calls == min(n, m)


@pytest.mark.parametrize(("n", "m"), SIZES[:4])
def test_covering_of_advertisements_takes_at_most_n_times_m(n: int, m: int) -> None:
    """3.7: O(nm), the worst case: all constraints are on one attribute, and only the last covers."""
    wide = [Constraint("s", "suffix", f"-{number}") for number in range(n - 1)]
    wide.append(Constraint("s", "prefix", "a"))
    narrow = [Constraint("s", "prefix", f"ab{number}") for number in range(m)]
    with counted((covering, "is_subset")) as compared:
        assert covers(Advertisement(tuple(wide)), Advertisement(tuple(narrow)))
    assert 0 < compared.calls <= n * m


@pytest.mark.parametrize(("n", "m"), SIZES[:4])
def test_meeting_of_an_advertisement_and_a_subscription_takes_at_most_n_times_m(
    n: int, m: int
) -> None:
    """3.7: O(nm) for the relation between the two."""
    offered = [Constraint(f"a{i % m}", "prefix", f"p{i}") for i in range(n)]
    wanted = Filter(tuple(Constraint(f"a{i}", "any") for i in range(min(n, m))))
    with counted((covering, "is_empty")) as compared:
        assert intersects(Advertisement(tuple(offered)), Predicate((wanted,)))
    assert 0 < compared.calls <= n * m


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [(f"x > {k1}", f"x > {k2}") for k1 in (-3, 0, 7) for k2 in (-3, 0, 7)],
)
def test_comparing_two_constraints_is_a_predicate_on_two_constants(wide: str, narrow: str) -> None:
    """3.7: "to see if [x > k1] covers [x > k2], it suffices simply to verify that k2 >= k1"."""
    k1, k2 = int(wide[4:]), int(narrow[4:])
    with counted((boxes, "is_subset")) as compared:
        assert covers(wide, narrow) is (k2 >= k1)
    assert compared.calls == 1


# ---- footnote 2: comparisons take O(1), but for strings

INSTANTS = [datetime(year, 1, 1, tzinfo=UTC) for year in (1, 1970, 9999)]
VALUES: list[list[bool | int | float | datetime]] = [
    [False, True],
    [0, 1, -(2**63), 2**63 - 1],
    [0.0, 5e-324, -1.7e308, float("inf")],
    [*INSTANTS],
]


@pytest.mark.parametrize("values", VALUES, ids=["bool", "int", "float", "time"])
def test_footnote_2_values_have_a_fixed_size(values: list[bool | int | float | datetime]) -> None:
    """3.7, footnote 2: O(1) for all types but strings: whatever its value, an operand takes as many bits."""
    assert len({filter_bits(Filter((Constraint("x", "=", value),))) for value in values}) == 1


def test_footnote_2_larger_integers_are_refused() -> None:
    """3.7, footnote 2: they would take longer to compare."""
    with pytest.raises(InvalidPredicate, match="64 bits"):
        Constraint("x", "=", 2**63)
    with pytest.raises(InvalidValue, match="64 bits"):
        Message({"x": -(2**63) - 1})


@pytest.mark.parametrize("length", [1, 10, 1_000])
def test_footnote_2_strings_are_compared_character_by_character(length: int) -> None:
    """3.7, footnote 2: the string type is the exception. To tell two strings that differ at the end, a
    search tree looks at every character; one that differs at the beginning is told at once."""
    tree = NameTree(["a" * length + "b"])
    assert tree.numbers(["a" * length + "c"]) == {}
    assert length < tree.nodes_visited <= length + 2
    before = tree.nodes_visited
    assert tree.numbers(["c" * length]) == {}
    assert tree.nodes_visited - before <= 2
    assert filter_bits(Filter((Constraint("x", "=", "a" * length),))) == 8 + 7 + 8 * length


# ---- R: the routing table


def poset_of(filters: list[Filter]) -> Poset[Filter]:
    poset = Poset(SUBSCRIPTIONS)
    for item in filters:
        poset.insert(item)
    return poset


def flat(size: int) -> list[Filter]:
    return [
        Filter((Constraint("group", "=", number), Constraint("ttl", ">", 0)))
        for number in range(size)
    ]


@pytest.mark.parametrize("size", [50, 200])
def test_a_message_is_looked_up_in_a_flat_poset_by_a_scan(size: int) -> None:
    """3.7: the worst case is a flat poset: R filters are evaluated, O(R (n + m))."""
    poset = poset_of(flat(size))
    with (
        counted((Filter, "matches")) as filters,
        counted((Constraint, "matches")) as constraints,
    ):
        assert len(poset.matching({"group": 7, "ttl": 1})) == 1
    assert filters.calls == size
    assert constraints.calls <= 2 * size


@pytest.mark.parametrize("size", [50, 200])
def test_an_insertion_takes_at_most_r_times_n_times_m(size: int) -> None:
    """3.7: O(R n m) comparisons find the predecessors and the successors of a new filter, where the
    poset is flat and all filters have the same names. An index makes it far fewer."""
    poset = poset_of(
        [
            Filter((Constraint("x", ">", number), Constraint("y", "<", number)))
            for number in range(size)
        ]
    )
    assert len(poset.roots()) == size
    with counted((cells.Cell, "holds"), (cells, "is_subset")) as compared:
        poset.insert(Filter((Constraint("x", ">", 3.5), Constraint("y", "<", 3.5))))
    assert len(poset.roots()) == size + 1
    assert compared.calls <= 2 * size * 2 * 2


def test_subtrees_that_cannot_match_are_skipped() -> None:
    """3.7: "if a notification n is not covered by s, the evaluation of every subscription s' covered
    by s can be safely skipped": ten trees of 31 filters, one of which matches."""
    filters = []
    for tree in range(10):
        for prefix in [format(i, "b")[1:] for i in range(1, 32)]:
            exact = (Constraint("path", "prefix", prefix),) if prefix else ()
            filters.append(Filter((Constraint("tree", "=", tree), *exact)))
    poset = poset_of(filters)
    assert len(poset.roots()) == 10
    message = {"tree": 3, "path": "0110"}
    with counted((Filter, "matches")) as evaluated:
        found = poset.matching(message)
    assert found == {f for f in filters if f.matches(message)}
    assert len(found) == 5
    # 10 roots, then the two children of each filter that matches and has any
    assert evaluated.calls == 10 + 2 * 4


def test_the_deeper_the_poset_the_less_is_evaluated() -> None:
    """3.7: "this complexity can be reduced in the presence of subnets relations": the same number of
    filters, in one chain and flat; the message matches the first of them only."""
    chained = poset_of([Filter((Constraint("x", ">", number),)) for number in range(100)])
    with counted((Filter, "matches")) as in_chain:
        assert len(chained.matching({"x": 1})) == 1
    with counted((Filter, "matches")) as in_flat:
        assert len(poset_of(flat(100)).matching({"group": 1, "ttl": 1})) == 1
    assert (in_chain.calls, in_flat.calls) == (2, 100)
