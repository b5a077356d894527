"""Which router does which part of which pattern, computed from nothing but the clients.

    watches of all clients ──▶ plan at the client's router ──▶ plan at each neighbour that is given
                                                               something ──▶ ...

What lies behind a neighbour is what the clients on that side of the tree advertise. Delegations of
equal sub-patterns to one neighbour are one, with the widest `within` and the least lateness; so the
watches of a router depend on those of all others. They are computed again and again, each time with
the delegations of the time before, until nothing changes: a delegation leads away from its watcher,
so there are as many rounds as links on the longest path, and two more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.patterns.packets import Task, Watch
from palio.routing.patterns.pattern import Pattern, bounded, core
from palio.routing.patterns.planning import here, plan
from palio.routing.router import Router
from palio.sim.routers.kinds import AnyRouter
from palio.sim.routers.plans import RouterPlan


class SharedWatch(NamedTuple):
    """A watch at a router, for a client or a neighbour."""

    router: str
    peer: str
    task: Task
    pattern: Pattern
    lateness: int


class RouterShare:
    """What one router has to do, and what its neighbours have to do for it."""

    def __init__(self) -> None:
        self.watches: list[SharedWatch] = []
        self.delegated: list[SharedWatch] = []
        self.filters: dict[Filter, None] = {}

    def difference(self, name: str, router: AnyRouter | None) -> str | None:
        """A sentence on how the router's patterns differ; None: they do not."""
        if not isinstance(router, Router):
            return None
        watches = [
            SharedWatch(name, str(a.peer), a.watch.task, a.watch.pattern, a.lateness)
            for a in router.watches
        ]
        told = [(entry.peer, entry.watch) for entry in router.watches.available]
        delegated = [
            SharedWatch(str(peer), name, watch.task, watch.pattern, watch.lateness or 0)
            for peer, watch in told
            if watch is not None
        ]
        return _difference(f"router {name}", self.watches, watches) or _difference(
            f"the table of available patterns of router {name}", self.delegated, delegated
        )


def _difference(place: str, right: list[SharedWatch], actual: list[SharedWatch]) -> str | None:
    lacking, surplus = _beyond(right, actual), _beyond(actual, right)
    for word, found in (("lacks", lacking), ("has too much:", surplus)):
        for watch in found:
            return (
                f"{place} {word} {watch.task} at {watch.router} for {watch.peer}: {watch.pattern}"
            )
    return None


def _beyond(some: Iterable[SharedWatch], others: Iterable[SharedWatch]) -> list[SharedWatch]:
    left = list(some)
    for watch in others:
        if watch in left:
            left.remove(watch)
    return left


def shared_out(
    whole: RouterPlan,
    paths: Mapping[str, Mapping[str, list[str]]],
    watched: Mapping[str, list[Watch]],
    offered: Mapping[str, list[Advertisement]],
) -> dict[str, RouterShare]:
    """The share of each router; none, where nobody watches anything."""
    if not any(watched.values()):
        return {router: RouterShare() for router in whole.routers} if _has_watches(whole) else {}
    router_of = dict(whole.clients)
    clients = [
        SharedWatch(router_of[client], client, watch.task, watch.pattern, whole.patterns.lateness)
        for client, watches in watched.items()
        for watch in watches
    ]
    delegated: list[SharedWatch] = []
    while True:
        shares = {router: RouterShare() for router in whole.routers}
        needed: list[SharedWatch] = []
        for watch in clients + delegated:
            needed += _planned(watch, shares[watch.router], whole, paths, offered)
        if (merged := _merged(needed)) == delegated:
            for watch in delegated:
                shares[watch.peer].delegated.append(watch)
            return shares
        delegated = merged


def _planned(
    watch: SharedWatch,
    share: RouterShare,
    whole: RouterPlan,
    paths: Mapping[str, Mapping[str, list[str]]],
    offered: Mapping[str, list[Advertisement]],
) -> list[SharedWatch]:
    """Plan a watch at its router; what its neighbours are to do for it."""
    behind: dict[str, list[Advertisement]] = {}
    for client, home in whole.clients:
        way = paths[watch.router][home]
        via = way[1] if len(way) > 1 else client
        if via != watch.peer or via not in whole.routers:  # not where the task comes from
            behind.setdefault(via, []).extend(offered[client])
    able = [via for via in behind if via in whole.routers]
    is_delegated = whole.advertisements and not whole.hierarchy and whole.patterns.delegates
    if is_delegated and watch.lateness >= whole.patterns.hop:
        made = plan(watch.pattern, behind, able, watch.task)
    else:
        made = here(watch.pattern)
    share.watches.append(watch)
    share.filters |= {f: None for predicate in made.parts for f in predicate}
    left = watch.lateness - whole.patterns.hop
    return [
        SharedWatch(str(d.peer), watch.router, d.task, d.pattern, left) for d in made.delegations
    ]


def _merged(needed: list[SharedWatch]) -> list[SharedWatch]:
    """One watch for equal sub-patterns that one neighbour does for one router."""
    groups: dict[tuple[str, str, Task, Pattern], list[tuple[int | None, int]]] = {}
    for watch in needed:
        plain, micros = core(watch.pattern)
        key = watch.router, watch.peer, watch.task, plain
        groups.setdefault(key, []).append((micros, watch.lateness))
    merged = []
    for (router, peer, task, plain), limits in groups.items():
        bounds = [micros for micros, _ in limits if micros is not None]
        widest = max(bounds) if len(bounds) == len(limits) else None
        least = min(lateness for _, lateness in limits)
        merged.append(SharedWatch(router, peer, task, bounded(plain, widest), least))
    return merged


def _has_watches(whole: RouterPlan) -> bool:
    return any(isinstance(operation.argument, Watch) for operation in whole.operations)
