"""What a change of the overlay costs: only items that take other branches are looked at."""

from __future__ import annotations

import pytest

from palio.model.language import parse
from palio.routing import Joined, Received, Role, Router, Subscribe, Topology
from palio.routing.packets import TopologyChanged
from palio.routing.subscriptions import Subscriptions

RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "e")]
FILTERS = [parse(f"x = {i}").filters[0] for i in range(200)]


def router(edges: list[tuple[str, str]]) -> Router:
    """Router a, with a client and its neighbours b and e; all have subscriptions."""
    made = Router("a", graph=lambda node: node)
    for peer, role in (("client", Role.CLIENT), ("b", Role.NEIGHBOUR), ("e", Role.NEIGHBOUR)):
        made.step(Joined(peer, role))
    made.step(TopologyChanged(Topology.from_edges(edges)))
    for filter in FILTERS[:100]:
        made.step(Received("client", Subscribe(filter)))
    for filter in FILTERS[100:190]:
        made.step(Received("b", Subscribe(filter, "b")))
    for filter in FILTERS[190:]:
        made.step(Received("b", Subscribe(filter, "c")))
    return made


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The items whose eligibility is tested."""
    found: list[object] = []
    test = Subscriptions._is_eligible

    def noted(self: object, item: object, *rest: object) -> bool:
        found.append(item)
        return test(self, item, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Subscriptions, "_is_eligible", noted)
    return found


@pytest.mark.parametrize(
    ("edges", "count"),
    [
        ([*RING, ("c", "x")], 0),  # behind b as c is: nothing goes elsewhere
        ([*RING, ("c", "e")], 0),  # the trees of others change, not those of b and c
        ([*RING, ("b", "d")], 90),  # those of b go to e no longer: d has them from b
    ],
)
def test_only_what_moves_is_looked_at(
    looked_at: list[object], edges: list[tuple[str, str]], count: int
) -> None:
    one = router(RING)
    looked_at.clear()
    one.step(TopologyChanged(Topology.from_edges(edges)))
    assert len(set(looked_at)) == len(looked_at) == count
    other = router(edges)
    for filter in FILTERS:
        assert one.forwards(filter) == other.forwards(filter)
