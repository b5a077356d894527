"""Pictures of networks: every broker is there once, and links are drawn where they are."""

from __future__ import annotations

import pytest

from palio.net.cluster.shapes import SHAPES, link_pairs
from palio.net.picture import draw, links_of, picture
from palio.protocol.wire.control import Place


def places(shape: str, count: int, chords: int = 0, dead: tuple[int, ...] = ()) -> list[Place]:
    links: dict[int, list[int]] = {node: [] for node in range(count)}
    for a, b in link_pairs(shape, count, chords):
        links[a].append(b)
        links[b].append(a)
    return [
        Place(
            f"b{node + 1}",
            tuple((f"b{other + 1}", 1.0) for other in found if node in dead or other not in dead),
            node,
            2 * node,
            node not in dead,
        )
        for node, found in links.items()
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_every_broker_is_there_once(shape: str, count: int) -> None:
    drawn = picture(places(shape, count))
    words = [word for word in drawn.split() if word.startswith("b")]
    assert sorted(words) == sorted(f"b{node + 1}" for node in range(count))


def test_a_line_a_tree_and_a_ring() -> None:
    assert picture(places("line", 3), "b2") == "b1 ─── b2* ─── b3"
    tree = ["b1", "├── b2", "│   ├── b4", "│   └── b5", "└── b3", "    └── b6"]
    assert picture(places("tree", 6)).splitlines() == tree
    ring = picture(places("ring", 4)).splitlines()
    assert ring[0].strip() == "b1"
    assert ring[6].split() == ["b4", "b2"]
    assert ring[-1].strip() == "b3"
    crossed = picture(places("ring", 4, chords=2)).splitlines()
    assert "·" in crossed[6]
    assert all("·" in line for line in ring[1:6])


def test_a_broker_that_is_gone() -> None:
    drawn = draw(places("ring", 5, dead=(2,)), "b1")
    assert drawn.splitlines()[:2] == ["b2 ─── b1* ─── b5 ─── b4", "b3?"]
    assert "b3?     b2 b4" in drawn
    assert drawn.count("cannot be reached") == 1


def test_a_link_counts_when_both_say_so() -> None:
    said = [Place("a", (("b", 1.0), ("c", 1.0)), 0, 0, True), Place("b", (("a", 1.0),), 0, 0, True)]
    assert links_of(said) == {"a": ["b"], "b": ["a"]}


def test_large_networks_are_tables() -> None:
    assert picture(places("ring", 13)) == ""
    lines = draw(places("ring", 13)).splitlines()
    assert len(lines) == 14
    assert [line.split()[0] for line in lines[1:4]] == ["b1", "b2", "b3"]
    assert lines[-1].split() == ["b13", "b1", "b12", "12", "24"]
