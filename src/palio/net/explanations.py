"""An explanation as lines for people: hop by hop, as the message would travel.

b3
  ann/desk: durable, at b5: kept here until b5 has it; price < 500 holds ...
└─▶ b2  (the next hop to brokers that want the message)
     └─▶ b1  (the next hop to brokers that want the message)
            bob/c1#1: price < 500 holds ...
"""

from __future__ import annotations

from collections.abc import Iterator

from palio.protocol.broker.explain import is_named
from palio.protocol.wire.control import Explained, Hop


def lines(explained: Explained, subscription: str = "") -> Iterator[str]:
    """The hops as a tree; at the end why `subscription`, if given, does not get the message."""
    first = explained.hops[0]
    yield first.broker
    yield from _below(first, list(explained.hops[1:]), "")
    if explained.silent:
        yield f"no answer in time from {', '.join(explained.silent)}"
    names = {name for hop in explained.hops for name, _ in hop.delivers}
    if subscription and not any(is_named(name, subscription) for name in names):
        yield (
            f"{subscription}: no broker that the message visits has a subscription of this name, "
            f"and there is no durable one: it does not exist, or it does not select the message"
        )
    elif not names:
        yield "nobody gets it"


def _below(hop: Hop, rest: list[Hop], indent: str) -> Iterator[str]:
    for name, reason in hop.delivers:
        yield f"{indent}  {name}: {reason}"
    for i, (broker, reason) in enumerate(hop.sends):
        is_last = i == len(hop.sends) - 1
        yield f"{indent}{'└' if is_last else '├'}─▶ {broker}  ({reason})"
        further = indent + ("     " if is_last else "│    ")
        found = next((h for h in rest if (h.broker, h.came_from) == (broker, hop.broker)), None)
        if found is not None:
            rest.remove(found)
            yield from _below(found, rest, further)
