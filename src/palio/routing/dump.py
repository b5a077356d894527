"""A router's state as text: peers, then each poset as an indented tree, then the patterns.

An item is indented below those that cover it. -> names its subscribers and <- the peers to which it
is forwarded, as the arrows of the 2000 paper's figures: both point along the path of messages. An
item below several others is written out below the first, and marked ^ below the others.

The router's own name marks its subscriptions for patterns. Of a pattern, -> names the peer that
watches it, `here` is the part that is matched here, and each delegation has its number, its task and
<- its neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.packets import Peer
from palio.routing.patterns.watching import Watches
from palio.routing.router import Router
from palio.routing.subscriptions import Subscriptions

T = TypeVar("T", Filter, Advertisement)


def dump(router: Router) -> str:
    """The whole state of a router, a line an item."""
    lines = [f"router {router.name}", "peers"]
    lines += [f"  {peer} {role}" for peer, role in router.peers.items()] or ["  none"]
    order = [*router.peers, router.name]
    lines += ["subscriptions", *_tree(router.subscriptions, order)]
    if len(router.advertisements):
        lines += ["advertisements", *_tree(router.advertisements, order)]
    if len(router.watches):
        lines += ["patterns", *pattern_lines(router.watches)]
    return "\n".join(lines) + "\n"


def _tree(items: Subscriptions[T], peers: list[Peer]) -> Iterator[str]:
    if not len(items):
        yield "  none"
        return
    places = {item: place for place, item in enumerate(items)}
    poset, drawn = items.poset, set[T]()

    def by_arrival(found: set[T]) -> list[T]:
        return sorted(found, key=places.__getitem__, reverse=True)

    stack = [(item, 1) for item in by_arrival(set(poset.roots()))]
    while stack:  # not by recursion: a chain of filters may be long
        item, depth = stack.pop()
        text = "  " * depth + _text(item)
        if item in drawn:
            yield f"{text}  ^"
            continue
        drawn.add(item)
        heard, told = items.subscribers(item), items.forwards(item)
        text += "".join(f" ->{peer}" for peer in peers if peer in heard)
        yield text + "".join(f" <-{peer}" for peer in peers if peer in told)
        stack += [(below, depth + 1) for below in by_arrival(set(poset.successors(item)))]


def pattern_lines(watches: Watches) -> Iterator[str]:
    """The patterns of a router and their delegations."""
    for one in watches:
        key = one.peer, one.watch.id
        yield f"  {one.watch.pattern} {one.watch.task} ->{one.peer} #{one.watch.id}"
        if one.plan.residual is not None:
            yield f"    here {one.plan.residual}"
        for id, delegation in watches.available.used_by(key):
            yield (
                f"    <{delegation.number}> {delegation.task} {delegation.pattern} "
                f"<-{delegation.peer} #{id}"
            )


def _text(item: Filter | Advertisement) -> str:
    if isinstance(item, Filter):
        return str(item)
    return "; ".join(map(str, item)) or "nothing"
