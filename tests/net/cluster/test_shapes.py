"""The links of each shape."""

from __future__ import annotations

import pytest

from palio.errors import InvalidTopology
from palio.net.cluster.shapes import SHAPES, link_pairs, master_pairs


def neighbours(links: list[tuple[int, int]], node: int) -> set[int]:
    return {a + b - node for a, b in links if node in (a, b)}


def is_connected(links: list[tuple[int, int]], count: int) -> bool:
    seen, stack = set[int](), [0]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += neighbours(links, node)
    return len(seen) == count


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_shapes(shape: str, count: int) -> None:
    links = link_pairs(shape, count)
    assert is_connected(links, count)
    assert len(set(links)) == len(links)
    assert all(a < b for a, b in links)
    degrees = sorted(len(neighbours(links, node)) for node in range(count))
    if count == 5:
        assert degrees == {
            "ring": [2] * 5, "line": [1, 1, 2, 2, 2], "star": [1, 1, 1, 1, 4],
            "tree": [1, 1, 1, 2, 3], "hierarchy": [1, 1, 1, 2, 3], "mesh": [4] * 5,
        }[shape]  # fmt: skip


def test_masters_of_a_hierarchy() -> None:
    assert master_pairs("hierarchy", 5) == link_pairs("hierarchy", 5)
    assert master_pairs("tree", 5) == []


def test_chords_are_new_links_across() -> None:
    assert len(set(link_pairs("ring", 6, 3))) == 9
    assert (0, 3) in link_pairs("ring", 6, 1)
    assert link_pairs("ring", 5, 5) == link_pairs("mesh", 5)
    with pytest.raises(InvalidTopology, match="fewer chords"):
        link_pairs("ring", 5, 6)
