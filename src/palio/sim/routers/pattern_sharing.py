"""Which router does which part of which pattern, computed from nothing but the clients.

    watches of all clients ──▶ plan at the client's router ──▶ plan at each neighbour that is given
                                                               something ──▶ ...

What lies behind a neighbour is what the clients on that side of the tree advertise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.patterns.packets import Task, Watch
from palio.routing.patterns.pattern import Pattern
from palio.routing.patterns.planning import here, plan
from palio.routing.router import Router
from palio.sim.routers.kinds import AnyRouter
from palio.sim.routers.plans import RouterPlan


class RouterShare:
    """What one router has to do."""

    def __init__(self) -> None:
        self.watches = Counter[tuple[str, Task, Pattern]]()
        self.filters: dict[Filter, None] = {}

    def difference(self, name: str, router: AnyRouter | None) -> str | None:
        """A sentence on how the router's watches differ; None: they do not."""
        if not isinstance(router, Router):
            return None
        there = Counter(
            (active.peer, active.watch.task, active.watch.pattern) for active in router.watches
        )
        for (peer, task, pattern), count in (self.watches - there).items():
            return f"router {name} lacks {count} watches, {task} for {peer}: {pattern}"
        for (peer, task, pattern), count in (there - self.watches).items():
            return f"router {name} has {count} watches too many, {task} for {peer}: {pattern}"
        return None


def shared_out(
    whole: RouterPlan,
    paths: Mapping[str, Mapping[str, list[str]]],
    watched: Mapping[str, list[Watch]],
    offered: Mapping[str, list[Advertisement]],
) -> dict[str, RouterShare]:
    """The share of each router; none, where nobody watches anything."""
    router_of = dict(whole.clients)
    if not any(watched.values()):
        return {router: RouterShare() for router in whole.routers} if _has_watches(whole) else {}
    shares = {router: RouterShare() for router in whole.routers}
    open_ = [
        (router_of[client], client, watch.task, watch.pattern, whole.patterns.lateness)
        for client, watches in watched.items()
        for watch in watches
    ]
    is_delegated = whole.advertisements and not whole.hierarchy and whole.patterns.delegates
    for router, peer, task, pattern, lateness in open_:  # which grows
        behind: dict[str, list[Advertisement]] = {}
        for client, home in router_of.items():
            way = paths[router][home]
            via = way[1] if len(way) > 1 else client
            if via != peer or via not in shares:  # not where the task comes from
                behind.setdefault(via, []).extend(offered[client])
        able = [via for via in behind if via in shares]
        if is_delegated and lateness >= whole.patterns.hop:
            made = plan(pattern, behind, able, task)
        else:
            made = here(pattern)
        shares[router].watches[peer, task, pattern] += 1
        shares[router].filters |= {f: None for predicate in made.parts for f in predicate}
        left = lateness - whole.patterns.hop
        open_ += [(d.peer, router, d.task, d.pattern, left) for d in made.delegations]
    return shares


def _has_watches(whole: RouterPlan) -> bool:
    return any(isinstance(operation.argument, Watch) for operation in whole.operations)
