"""2000, 3.5 on graphs with cycles: NST(f), and formula (1) along spanning trees."""

from __future__ import annotations

from random import Random

from tests.routing.test_overlay_graphs import Graph

from palio.model.language import parse

(WIDE,) = parse("airline IS NOT NULL").filters
(NARROW,) = parse("airline = 'UA'").filters


def test_nst_a_subscription_follows_the_spanning_tree_of_its_origin() -> None:
    """f is forwarded to all neighbours except those not on any spanning tree of a subscriber: in a
    ring of four, the router opposite hears it from one side, and its neighbour there not from it."""
    ring = {("1", "2", 1), ("2", "3", 1), ("3", "4", 1), ("1", "4", 1)}
    graph = Graph(ring, Random(1))
    graph.subscribe("1", WIDE)
    graph.run()
    forwards = {name: graph.routers[name].forwards(WIDE) for name in graph.names}
    assert forwards == {"1": {"2", "4"}, "2": {"3"}, "3": frozenset(), "4": frozenset()}
    assert graph.routers["3"].subscribers(WIDE) == {"2"}


def test_formula_1_a_cover_hides_only_what_its_tree_reaches() -> None:
    """1 and 2 subscribe in a ring of five. What 1 forwards to 2 hides nothing of 2 towards 3, since
    the tree of 1 reaches 3, 4 and 5 partly on the other side."""
    ring = {("1", "2", 1), ("2", "3", 1), ("3", "4", 1), ("4", "5", 1), ("1", "5", 1)}
    graph = Graph(ring, Random(1))
    graph.subscribe("1", WIDE)
    graph.run()
    graph.subscribe("2", NARROW)
    graph.run()
    assert graph.routers["2"].forwards(WIDE) == {"3"}, "the tree of 1 ends there"
    assert graph.routers["2"].forwards(NARROW) == {"1", "3"}, "the tree of 2 goes on to 4"
    assert graph.routers["3"].forwards(NARROW) == {"4"}
    assert graph.routers["4"].subscribers(NARROW) == {"3"}
