"""The table of available sub-patterns: one delegation for equal needs, and nothing left behind."""

from __future__ import annotations

from palio.routing.patterns import Delegation, Task, Unwatch, Watch, parse
from palio.routing.patterns.available import AvailablePatterns

AB = parse("[t = 'a'] then [t = 'b']")
SHORT = parse("[t = 'a'] then [t = 'b'] within 1 second")
LONG = parse("[t = 'a'] then [t = 'b'] within 1 minute")
PEERS = {"west": None, "east": None}


def need(pattern: object, peer: str = "west", task: Task = Task.ASSEMBLE) -> list[Delegation]:
    return [Delegation(0, peer, task, parse(pattern))]  # type: ignore[arg-type]


def test_equal_needs_are_one_delegation_which_ends_with_the_last() -> None:
    table: AvailablePatterns[str] = AvailablePatterns()
    table.use("ann", need(AB), 0, 10)
    table.use("bob", need(AB), 0, 10)
    assert table.settle(PEERS) == [("west", Watch(1, AB, Task.ASSEMBLE, 0))]
    table.use("cy", need(AB), 0, 20)
    assert table.settle(PEERS) == []
    assert [use.user for entry in table for use in entry.uses] == ["ann", "bob", "cy"]
    for user in ("ann", "cy"):
        table.release(user)
        assert table.settle(PEERS) == []
    table.release("bob")
    assert table.settle(PEERS) == [("west", Unwatch(1))]
    assert (len(table), table.told("west"), table.providers(AB)) == (0, (), ())


def test_the_widest_within_and_the_least_lateness_serve_all() -> None:
    """A need that changes these is told in a watch with the same id."""
    table: AvailablePatterns[str] = AvailablePatterns()
    table.use("ann", need(SHORT), 50, 0)
    assert table.settle(PEERS) == [("west", Watch(1, SHORT, Task.ASSEMBLE, 50))]
    table.use("bob", need(LONG), 40, 0)
    assert table.settle(PEERS) == [("west", Watch(1, LONG, Task.ASSEMBLE, 40))]
    table.use("cy", need(AB), 60, 0)
    assert table.settle(PEERS) == [("west", Watch(1, AB, Task.ASSEMBLE, 40))]
    table.use("dan", need(SHORT), 60, 0)
    assert table.settle(PEERS) == []
    table.release("cy")
    assert table.settle(PEERS) == [("west", Watch(1, LONG, Task.ASSEMBLE, 40))]
    table.adjust("bob", need(SHORT), 60)
    assert table.settle(PEERS) == [("west", Watch(1, SHORT, Task.ASSEMBLE, 50))]


def test_the_table_does_not_depend_on_the_order_of_needs() -> None:
    needs = [("ann", need(SHORT), 50), ("bob", need(AB), 40), ("cy", need(LONG), 30)]
    for order in (needs, needs[::-1]):
        table: AvailablePatterns[str] = AvailablePatterns()
        for user, wanted, lateness in order:
            table.use(user, wanted, lateness, 0)
        assert table.settle(PEERS) == [("west", Watch(1, AB, Task.ASSEMBLE, 30))]


def test_others_are_apart() -> None:
    """Another neighbour, task, order of steps or `same` is another sub-pattern."""
    table: AvailablePatterns[str] = AvailablePatterns()
    for wanted in (
        need(AB),
        need(AB, "east"),
        need(AB, task=Task.SIEVE),
        need("[t = 'b'] then [t = 'a']"),
        need("[t = 'a'] then [t = 'b'] same k"),
        need("[t IN ('a', 'c')] then [t = 'b']"),
    ):
        table.use("ann", wanted, 0, 0)
    assert len(table.settle(PEERS)) == len(table) == 6
    assert [id for id, _ in table.used_by("ann")] == [1, 2, 3, 4, 5, 6]
    assert (table.providers(AB), table.providers(AB, Task.SIEVE)) == (("west", "east"), ("west",))
    assert len(table.told("west")) == 5


def test_providers_have_what_is_asked_for_or_more() -> None:
    table: AvailablePatterns[str] = AvailablePatterns()
    table.use("ann", need(LONG), 0, 0)
    assert table.providers(LONG) == ()  # it has not been told
    table.settle(PEERS)
    assert table.providers(LONG) == table.providers(SHORT) == ("west",)
    assert table.providers(AB) == ()


def test_a_use_gets_what_began_after_it_and_is_short_enough() -> None:
    table: AvailablePatterns[str] = AvailablePatterns()
    table.use("ann", need(AB), 0, 10)
    table.settle(PEERS)
    table.use("bob", need(SHORT), 0, 10)
    (entry,) = table
    ann, bob = entry.uses
    assert ann.wants(5, 7)  # it was there first: all that comes is for it
    assert not bob.wants(5, 17)
    assert bob.wants(10, 17)
    assert bob.wants(10, 1_000_010)
    assert not bob.wants(10, 1_000_011)


def test_answers_are_known_by_id_and_neighbour() -> None:
    table: AvailablePatterns[str] = AvailablePatterns()
    table.use("ann", need(AB), 0, 0)
    table.settle(PEERS)
    assert table.find("west", 1) is next(iter(table))
    assert (table.find("east", 1), table.find("west", 2)) == (None, None)
    table.release("ann")
    assert table.settle({"east": None}) == []  # west is gone: there is nobody to tell
    assert table.find("west", 1) is None


def test_what_is_released_and_used_again_in_one_step_continues() -> None:
    table: AvailablePatterns[str] = AvailablePatterns()
    table.use("ann", need(AB), 0, 0)
    table.settle(PEERS)
    table.release("ann")
    table.use("ann", need(AB), 0, 30)
    assert table.settle(PEERS) == []
    (entry,) = table
    assert [use.since for use in entry.uses] == [30]
