"""The kinds of routers that a simulation may run, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Protocol, TypeAlias

from palio.errors import PalioError
from palio.model.predicate import Filter
from palio.routing.packets import Event, Peer, Send
from palio.routing.patterns.watching import PatternSettings
from palio.routing.router import Router
from palio.sim.routers.baselines import FloodingRouter, PlainRouter


class AnyRouter(Protocol):
    """What the simulator needs of a router."""

    def step(self, event: Event) -> list[Send]: ...

    @property
    def due(self) -> int | None:
        """When it wants a `Tick`."""

    @property
    def late(self) -> int:
        """How many messages came too late for a pattern."""

    @property
    def subscriptions(self) -> Iterable[Filter]:
        """The filters of its routing table."""

    def subscribers(self, filter: Filter) -> AbstractSet[Peer]: ...

    def forwards(self, filter: Filter) -> AbstractSet[Peer]: ...


MakeRouter: TypeAlias = Callable[[str, bool], AnyRouter]
"""Name, and whether subscriptions follow advertisements."""

ROUTINGS = ("covering", "plain", "flooding")


def router_maker(
    routing: str,
    patterns: PatternSettings | None = None,
    clock: Callable[[], int] | None = None,
    *,
    is_graph: bool = False,
) -> MakeRouter:
    """The constructor of a kind of routers; only those by covering know patterns, and graphs."""
    if routing == "plain":
        return lambda name, advertisements: PlainRouter(name, advertisements=advertisements)
    if routing == "flooding":
        return lambda name, advertisements: FloodingRouter(name, advertisements=advertisements)
    if routing == "covering":
        return lambda name, advertisements: Router(
            name,
            advertisements=advertisements,
            patterns=patterns,
            graph=(lambda node: node) if is_graph else None,
            clock=clock,
        )
    raise PalioError(f"there is no routing {routing!r}; there are {', '.join(ROUTINGS)}")
