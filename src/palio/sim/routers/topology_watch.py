"""Which links a graph of routers has, and when each router learns it.

A link is there while both of its ends have the same session open. After a change every router is told the
links that it reaches, each after a delay of its own, as link-state flooding would; so for a while routers
follow different trees. What happens then is not predicted: a message is due only if the routers had agreed
before it was published, and nothing changed until it had passed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from random import Random

from palio.routing.topology import Topology
from palio.sim.kernel.clock import VirtualClock
from palio.sim.routers.plans import RouterPlan

LEARN_US_MAX = 30_000


class TopologyWatch:
    """`tell(router, net)` is called when a router learns the topology; None: it reaches no other one."""

    def __init__(
        self,
        plan: RouterPlan,
        clock: VirtualClock,
        random: Random,
        tell: Callable[[str, Topology | None], None],
    ) -> None:
        self._plan, self._clock, self._random, self._tell = plan, clock, random, tell
        self._sessions: dict[tuple[str, str], tuple[int, int]] = {}  # router and peer
        self._pending: set[str] = set()
        self._changes: list[int] = [0]
        """The instants at which a link changed, or a router learnt it."""

    def opened(self, router: str, peer: str, session: tuple[int, int]) -> None:
        self._sessions[router, peer] = session
        self.changed()

    def closed(self, router: str, peer: str) -> None:
        self._sessions.pop((router, peer), None)
        self.changed()

    def changed(self) -> None:
        """All routers will learn the topology."""
        self._changes.append(self._clock.instant)
        for name in self._plan.routers:
            if name not in self._pending:
                self._pending.add(name)
                self._clock.after(self._random.randrange(LEARN_US_MAX), self._learn, name)

    def _learn(self, router: str) -> None:
        self._pending.remove(router)
        self._changes.append(self._clock.instant)
        self._tell(router, self.topology(router))

    def topology(self, router: str) -> Topology | None:
        """What a router reaches now."""
        edges = [link for link in self._plan.links if self._is_there(*link)]
        near, grown = {router}, True
        while grown:
            more = {name for edge in edges if not near.isdisjoint(edge) for name in edge}
            near, grown = near | more, not more <= near
        reached = [edge for edge in edges if edge[0] in near]
        return Topology.from_edges(reached) if reached else None

    def _is_there(self, a: str, b: str) -> bool:
        session = self._sessions.get((a, b))
        return session is not None and session == self._sessions.get((b, a))

    def agreed(self, router: str) -> Topology | None:
        """The topology, if all that this router reaches follow it; else None."""
        return None if self._pending else self.topology(router)

    def since(self, instant: int) -> int:
        """The last change before an instant."""
        return self._changes[bisect_right(self._changes, instant) - 1]

    def is_calm(self, begin: int, end: int) -> bool:
        """Whether nothing changed after one instant and up to another."""
        return bisect_right(self._changes, begin) == bisect_right(self._changes, end)
