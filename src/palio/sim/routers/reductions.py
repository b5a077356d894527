"""How a failing plan of routers is made smaller, besides leaving out operations."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from palio.sim.routers.plans import RouterPlan, reached


def without_datagram_faults(plan: RouterPlan) -> Iterator[RouterPlan]:
    """Nothing is lost, doubled or reordered."""
    for name in ("loss", "duplicate", "reorder"):
        if getattr(plan.datagrams, name):
            yield replace(plan, datagrams=replace(plan.datagrams, **{name: 0.0}))


def without_idle_clients(plan: RouterPlan) -> Iterator[RouterPlan]:
    busy = {operation.client for operation in plan.operations}
    kept = tuple((client, router) for client, router in plan.clients if client in busy)
    if kept and kept != plan.clients:
        yield replace(plan, clients=kept)


def without_a_router(plan: RouterPlan) -> Iterator[RouterPlan]:
    """Without one of the routers that have no clients: leaves go, and those between two others
    give way to a direct link."""
    busy = {router for _, router in plan.clients}
    for name in plan.routers:
        links = [link for link in plan.links if name in link]
        if name in busy or plan.graph or not 1 <= len(links) <= 2:
            continue
        rest = tuple(link for link in plan.links if link not in links)
        if len(links) == 2:
            (a, b), (c, d) = links
            if plan.hierarchy and name == a == c:  # the root of two
                continue
            upper, lower = (a if b == name else b), (d if c == name else c)
            if plan.hierarchy and name == a:
                upper, lower = c, b
            rest = (*rest, (upper, lower))
        operations = tuple(
            operation for operation in plan.operations if name not in operation.places
        )
        if rest or busy:
            yield replace(plan, links=rest, operations=operations)


def without_a_link(plan: RouterPlan) -> Iterator[RouterPlan]:
    """Of a graph: without a link, or all links of a router without clients, if the rest is connected."""
    busy = {router for _, router in plan.clients}
    gone: list[tuple[tuple[str, str], ...]] = [(link,) for link in plan.links]
    gone += [
        tuple(link for link in plan.links if name in link)
        for name in plan.routers
        if name not in busy
    ]
    for links in gone if plan.graph else ():
        rest = tuple(link for link in plan.links if link not in links)
        left = replace(plan, links=rest)
        names = set(left.routers)
        operations = tuple(o for o in plan.operations if _has_places(o.places, names, rest))
        if reached(left) == names and busy <= names:
            yield replace(left, operations=operations)


def _has_places(
    places: tuple[str, ...], routers: set[str], links: tuple[tuple[str, str], ...]
) -> bool:
    is_link = len(places) != 2 or frozenset(places) in set(map(frozenset, links))
    return is_link and routers.issuperset(places)


REDUCTIONS = (without_datagram_faults, without_idle_clients, without_a_router, without_a_link)
