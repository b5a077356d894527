"""The network as text: a drawing of small networks, and a table.

    without cycles            a line, or a tree with its central broker on top
    cycles, up to 12 brokers  brokers on a circle with dots for links, linked ones side by side
    larger                    the table alone

A link is drawn if both ends report it. A broker that cannot be reached has a question mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import cos, pi, sin

from palio.protocol.wire.control import Place
from palio.protocol.wire.routing_memory import RoutingMemory

CIRCLE_MAX = 12
TREE_MAX = 50
_WIDTH, _HEIGHT = 44, 13


def draw(places: Sequence[Place], here: str = "") -> str:
    """Drawing and table. `here` is the broker that was asked; it gets a star.

    >>> print(draw([Place("b1", (("b2", 1.0),), 3, 1, True), Place("b2", (("b1", 1.0),), 0, 0, True)]))
    b1 ─── b2
    <BLANKLINE>
    broker  links  filters  durable
    b1      b2           3        1
    b2      b1           0        0
    """
    ordered = sorted(places, key=lambda place: _natural(place.broker))
    parts = [picture(ordered, here), "\n".join(table(ordered, here))]
    return "\n\n".join(part for part in parts if part)


def table(places: Sequence[Place], here: str = "") -> Iterator[str]:
    """A line for each broker. `filters` counts those of its live subscriptions, reduced; ^ marks its
    master in a hierarchy."""
    rows = [("broker", "links", "filters", "durable", "")]
    for place in places:
        links = (_link_text(place, name, weight) for name, weight in place.links)
        rows.append(
            (
                _label(place, here),
                " ".join(sorted(links, key=_natural)),
                f"{place.subscriptions}",
                f"{place.durable}",
                "" if place.reachable else "cannot be reached",
            )
        )
    first, second = (max(len(row[i]) for row in rows) for i in (0, 1))
    for broker, linked, filters, durable, state in rows:
        line = f"{broker:{first}}  {linked:{second}}  {filters:>7}  {durable:>7}  {state}"
        yield line.rstrip()


def memory_table(places: Sequence[Place], here: str = "") -> str:
    """What each broker holds to route messages, beside the formula of the 2006 paper.

    >>> from palio.protocol.wire.routing_memory import RoutingMemory
    >>> held = RoutingMemory("PIF", 2, 5, 6, 90, 10, 150, 400)
    >>> print(memory_table([Place("b1", (("b2", 1.0),), 3, 1, True, held)]))
    broker  scheme  predicates  constraints  bytes  formula: constraints  bytes  alpha  database bytes
    b1      PIF              2            6     90                    10    150   0.60             400
    """
    titles = ("broker", "scheme", "predicates", "constraints", "bytes", "formula: constraints",
              "bytes", "alpha", "database bytes")  # fmt: skip
    ordered = sorted(places, key=lambda place: _natural(place.broker))
    rows = [titles, *((_label(place, here), *_memory_cells(place.memory)) for place in ordered)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(titles))]
    lines = []
    for row in rows:
        cells = [
            f"{cell:{width}}" if i < 2 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _memory_cells(memory: RoutingMemory | None) -> tuple[str, ...]:
    if memory is None:
        return ("not known", *[""] * 7)
    formula = memory.formula_bytes
    alpha = f"{memory.bytes / formula:.2f}" if formula else ""
    counts = (memory.predicates, memory.constraints, memory.bytes, memory.formula_constraints)
    return (*(memory.scheme, *map(str, counts), str(formula), alpha, str(memory.database_bytes)),)


def _link_text(place: Place, name: str, weight: float) -> str:
    """A link in the table: ^ marks the master of the broker."""
    mark = "^" if name == place.master else ""
    return f"{name}{mark}" if weight == 1 else f"{name}{mark}:{weight:g}"


def picture(places: Sequence[Place], here: str = "") -> str:
    """The network as a drawing; empty if it is too large for one."""
    labels = {place.broker: _label(place, here) for place in places}
    links = links_of(places)
    if len(places) > TREE_MAX or not places:
        return ""
    if not _has_cycle(links):
        return "\n".join(_forest(labels, links))
    if len(places) > CIRCLE_MAX:
        return ""
    return "\n".join(_circle(labels, links))


def links_of(places: Sequence[Place]) -> dict[str, list[str]]:
    """The neighbours of each broker: links that both ends report, of brokers that can be reached."""
    said = {p.broker: {name for name, _ in p.links} if p.reachable else set() for p in places}
    return {
        broker: sorted((n for n in found if broker in said.get(n, ())), key=_natural)
        for broker, found in said.items()
    }


def _label(place: Place, here: str) -> str:
    return f"{place.broker}{'*' * (place.broker == here)}{'?' * (not place.reachable)}"


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key by which b2 comes before b10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _has_cycle(links: dict[str, list[str]]) -> bool:
    edges = sum(map(len, links.values())) // 2
    return edges > len(links) - len(list(_components(links)))


def _components(links: dict[str, list[str]]) -> Iterator[list[str]]:
    seen: set[str] = set()
    for start in links:
        if start not in seen:
            found = _walk(links, start)
            seen.update(found)
            yield found


def _walk(links: dict[str, list[str]], start: str) -> list[str]:
    """Depth first, so that linked brokers come one after the other."""
    order: dict[str, None] = {}
    stack = [start]
    while stack:
        name = stack.pop()
        if name not in order:
            order[name] = None
            stack += [other for other in reversed(links[name]) if other not in order]
    return list(order)


# ---- without cycles


def _forest(labels: dict[str, str], links: dict[str, list[str]]) -> Iterator[str]:
    for found in _components(links):
        ends = [name for name in found if len(links[name]) < 2]
        if all(len(links[name]) <= 2 for name in found):
            line = " ─── ".join(labels[name] for name in _walk(links, ends[0]))
            if len(line) <= 100:
                yield line
                continue
        top = min(found, key=lambda name: (_depth(links, name), _natural(name)))
        yield labels[top]
        yield from _branches(labels, links, top, "", "")


def _depth(links: dict[str, list[str]], top: str, above: str = "") -> int:
    return 1 + max((_depth(links, n, top) for n in links[top] if n != above), default=0)


def _branches(
    labels: dict[str, str], links: dict[str, list[str]], name: str, above: str, indent: str
) -> Iterator[str]:
    below = [other for other in links[name] if other != above]
    for other in below:
        is_last = other == below[-1]
        yield f"{indent}{'└── ' if is_last else '├── '}{labels[other]}"
        further = indent + ("    " if is_last else "│   ")
        yield from _branches(labels, links, other, name, further)


# ---- on a circle


def _circle(labels: dict[str, str], links: dict[str, list[str]]) -> Iterator[str]:
    """Brokers clockwise from the top. The circle is wide, because characters are about twice as high."""
    order = [name for found in _components(links) for name in _walk(links, found[0])]
    places = {}
    for i, name in enumerate(order):
        angle = 2 * pi * i / len(order)
        x = round((_WIDTH - 1) / 2 * (1 + sin(angle)))
        y = round((_HEIGHT - 1) / 2 * (1 - cos(angle)))
        places[name] = x, y
    width = _WIDTH + max(map(len, labels.values()))
    canvas = [[" "] * (width + 1) for _ in range(_HEIGHT)]
    for name, found in links.items():
        for other in found:
            if order.index(name) < order.index(other):
                _dots(canvas, places[name], places[other])
    for name, (x, y) in places.items():
        label = f" {labels[name]} "
        left = max(0, min(x - len(label) // 2, width + 1 - len(label)))
        canvas[y][left : left + len(label)] = label
    rows = ["".join(row).rstrip() for row in canvas]
    while not rows[-1]:
        rows.pop()
    margin = min(len(row) - len(row.lstrip()) for row in rows if row)
    return (row[margin:] for row in rows)


def _dots(canvas: list[list[str]], a: tuple[int, int], b: tuple[int, int]) -> None:
    steps = max(abs(a[0] - b[0]) // 2, abs(a[1] - b[1]), 1)
    for i in range(steps + 1):
        x = round(a[0] + (b[0] - a[0]) * i / steps)
        y = round(a[1] + (b[1] - a[1]) * i / steps)
        canvas[y][x] = "·"
