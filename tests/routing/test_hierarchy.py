"""Masters and slaves among routers: on trees, on any graph, and mixed with neighbours."""

from __future__ import annotations

from random import Random

import pytest

from palio.errors import RoutingError
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing import (
    Advertise,
    Joined,
    Left,
    Publish,
    Received,
    Restate,
    Role,
    Router,
    Send,
    Subscribe,
    Unadvertise,
)
from palio.routing.hierarchy import EVERYTHING
from tests.routing.test_overlay_graphs import ANYTHING, FILTERS, Graph, drawn


def drawn_masters(graph: set[tuple[str, str, int]], random: Random, share: float) -> dict[str, str]:
    """A master for some of the routers, always one with a smaller number."""
    masters = {}
    for name in sorted({end for edge in graph for end in edge[:2]}):
        above = sorted(u for u, v, _ in graph if v == name and int(u) < int(v))
        if above and random.random() < share:
            masters[name] = random.choice(above)
    return masters


def everything_due(graph: Graph, name: str) -> bool:
    """Whether a router is to know that a master wants everything: the path from it to somebody has a
    step up, from a slave to its master, and this is told back along the path."""
    net = graph.topology(name)
    if net is None:
        return False
    tree = net.tree(name)
    for node in net.nodes:
        while (above := tree.parent(node)) is not None:
            if graph.masters.get(above) == node:
                return True
            node = above
    return False


def shuffle(graph: Graph, random: Random, changes: int) -> None:
    """Clients subscribe and unsubscribe while packets travel."""
    for _ in range(changes):
        name, filter = random.choice(graph.names), random.choice(FILTERS)
        if filter in graph.wanted[name]:
            graph.unsubscribe(name, filter)
        else:
            graph.subscribe(name, filter)
        graph.run(random.randrange(10))
    graph.run()


def check_left(graph: Graph) -> None:
    """All clients leave: nothing stays but what masters want of those below."""
    for name in graph.names:
        for filter in list(graph.wanted[name]):
            graph.unsubscribe(name, filter)
        graph.client(name, Unadvertise(ANYTHING))
    graph.run()
    for name, router in graph.routers.items():
        assert list(router.subscriptions) == [EVERYTHING] * everything_due(graph, name), name
        assert len(router.advertisements) == 0


@pytest.mark.parametrize("share", [0.4, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_each_message_reaches_exactly_the_interested_once(seed: int, share: float) -> None:
    random = Random(seed)
    edges = drawn(random, random.randint(3, 8), seed % 6)
    graph = Graph(edges, random, masters=drawn_masters(edges, random, share))
    shuffle(graph, random, 30)
    graph.publish_all()
    check_left(graph)


@pytest.mark.parametrize("share", [0.4, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_it_heals_when_links_come_and_go(seed: int, share: float) -> None:
    random = Random(200 + seed)
    edges = drawn(random, random.randint(4, 7), 4)
    graph = Graph(edges, random, masters=drawn_masters(edges, random, share))
    every = sorted(graph.edges)
    for _ in range(12):
        edge = random.choice(every)
        if edge in graph.edges:
            graph.edges = graph.edges - {edge}
            graph.cut(*edge[:2])
        else:
            graph.edges = graph.edges | {edge}
            graph.connect(*edge[:2])
        graph.reroute()
        shuffle(graph, random, 2)
    graph.publish_all()
    check_left(graph)


def test_advertisements_go_up_and_aside() -> None:
    """Two masters are neighbours, each has slaves: subscriptions of one side find publishers of the other."""
    edges = {("1", "2", 1), ("1", "3", 1), ("2", "4", 1), ("2", "5", 1)}
    masters = {"3": "1", "4": "2", "5": "2"}
    random = Random(1)
    graph = Graph(edges, random, advertisements=True, masters=masters)
    graph.subscribe("3", FILTERS[0])
    graph.run()
    assert graph.routers["1"].forwards(FILTERS[0]) == set()  # nobody advertises there
    graph.client("4", Advertise(ANYTHING))
    graph.run()
    assert graph.routers["1"].forwards(FILTERS[0]) == {"2"}
    assert (
        graph.routers["2"].forwards(FILTERS[0]) == set()
    )  # 4 is a slave: it sends all that it has
    graph.client("4", Publish(Message({"x": 5, "y": 0}), "4", 1))
    graph.run()
    assert graph.got == [("3", 1)]


def test_neighbours_of_a_slave_send_it_everything() -> None:
    """What is wanted above is not known below, so whatever is published beside a slave goes up."""
    router = Router("1")
    router.step(Joined("2", Role.NEIGHBOUR))
    router.step(Received("2", Subscribe(FILTERS[0])))
    sends = router.step(Joined("top", Role.MASTER))
    assert sends == [
        Send("2", Subscribe(EVERYTHING)),
        Send("top", Restate((FILTERS[0],))),
    ]
    (sent,) = router.step(Received("2", Publish(Message({"x": 0}), "2", 1)))
    assert sent.peer == "top"
    (ended,) = router.step(Left("top"))
    assert ended.peer == "2"
    assert len(router.subscriptions) == 1


def test_a_master_that_becomes_a_neighbour_wants_what_it_says() -> None:
    router = Router("1")
    router.step(Joined("2", Role.NEIGHBOUR))
    router.step(Received("2", Subscribe(FILTERS[0])))
    router.step(Joined("2", Role.MASTER))
    assert router.subscriptions.said("2") == [EVERYTHING]
    router.step(Joined("2", Role.NEIGHBOUR))
    assert len(router.subscriptions) == 0


def test_a_master_forwards_nothing_down() -> None:
    router = Router("1")
    router.step(Joined("top", Role.MASTER))
    with pytest.raises(RoutingError, match=r"master 'top' sent Subscribe; .*: join them as"):
        router.step(Received("top", Subscribe(Filter(()))))


def test_with_advertisements_a_slave_has_no_neighbours() -> None:
    """Nobody advertises to them what is published above."""
    router = Router("1", advertisements=True)
    router.step(Joined("top", Role.MASTER))
    with pytest.raises(RoutingError, match="master 'top' and neighbours"):
        router.step(Joined("2", Role.NEIGHBOUR))
    assert list(router.peers) == ["top"]
    router.step(Joined("low", Role.SLAVE))
