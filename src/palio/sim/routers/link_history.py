"""What happened on each link, and how far a statement or a message can have come.

Instants are the numbers of the clock's actions. A *session* of a link is a pair of incarnations;
it is *healthy* from the instant at which both ends have it open until one of them closes it or
crashes. In a session packets arrive in order and exactly once (`palio.sim.routers.links`), so

    sent       [ 3  8  8 20 ]     the instants at which packets were taken, one direction
    delivered  [ 5 11 14 ]        and at which they arrived; the k-th is that of the k-th sent

`passed(link, 9)` is 14: whatever the sender had said by instant 9, the receiver has heard by 14.
None: not all of it arrived. This holds for loss, reordering, duplication and partitions alike, as
long as the session lasts.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TypeAlias

from palio.sim.routers.plans import RouterPlan

Direction: TypeAlias = tuple[str, str]
FOREVER = 1 << 62


class LinkSession:
    """What happened between two routers from one reset to the next."""

    def __init__(self) -> None:
        self.opened_by: set[str] = set()
        self.start = FOREVER
        self.end = FOREVER
        self.sent: dict[str, list[int]] = {}
        self.delivered: dict[str, list[int]] = {}

    def is_delivered(self, sender: str) -> bool:
        """Has all that a router sent arrived?"""
        return len(self.sent.get(sender, ())) == len(self.delivered.get(sender, ()))

    def passed(self, sender: str, instant: int) -> int | None:
        """When all that the sender took by then had arrived."""
        count = bisect_right(self.sent.get(sender, ()), instant)
        if count == 0:
            return instant
        delivered = self.delivered.get(sender, ())
        return max(instant, delivered[count - 1]) if count <= len(delivered) else None


class LinkHistory:
    """The sessions of all links."""

    def __init__(self, plan: RouterPlan) -> None:
        self._of_link: dict[frozenset[str], dict[tuple[int, int], LinkSession]] = {
            frozenset(link): {} for link in plan.links
        }
        self._open: dict[Direction, LinkSession] = {}  # as the first router sees it
        self._paths = paths(plan)

    def opened(self, router: str, peer: str, session: tuple[int, int], instant: int) -> None:
        """`session`: the incarnations, that of the router with the lesser name first."""
        link_session = self._of_link[frozenset((router, peer))].setdefault(session, LinkSession())
        link_session.opened_by.add(router)
        if len(link_session.opened_by) == 2 and link_session.end == FOREVER:
            link_session.start = instant
        self._open[router, peer] = link_session

    def closed(self, router: str, peer: str, instant: int) -> None:
        session = self._open.pop((router, peer), None)
        if session is not None:
            session.end = min(session.end, instant)

    def sent(self, router: str, peer: str, instant: int) -> None:
        self._open[router, peer].sent.setdefault(router, []).append(instant)

    def delivered(self, router: str, peer: str, instant: int) -> None:
        """A packet of `peer` arrived at `router`."""
        session = self._open.get((router, peer))
        if session is not None:  # None: an answer to the packet before ended the session
            session.delivered.setdefault(peer, []).append(instant)

    def unfinished(self) -> list[Direction]:
        """Links, by direction, that are not in one session at both ends with all delivered."""
        directions = []
        for link in self._of_link:
            a, b = sorted(link)
            session, other = self._open.get((a, b)), self._open.get((b, a))
            for sender, receiver in ((a, b), (b, a)):
                if session is None or session is not other or not session.is_delivered(sender):
                    directions.append((sender, receiver))
        return directions

    def path(self, a: str, b: str) -> list[str]:
        """The routers from a to b, both included."""
        return self._paths[a][b]

    def sessions(self, path: list[str], instant: int) -> list[LinkSession] | None:
        """The session of each link of a path that is healthy at an instant; None: one has none."""
        sessions = []
        for a, b in pairwise(path):
            for session in reversed(self._of_link[frozenset((a, b))].values()):
                if session.start <= instant < session.end:
                    sessions.append(session)
                    break
            else:
                return None
        return sessions


def paths(plan: RouterPlan) -> dict[str, dict[str, list[str]]]:
    """The one path between any two routers of a tree; on a graph, one of the shortest."""
    neighbours: dict[str, list[str]] = {router: [] for router in plan.routers}
    for a, b in plan.links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    paths_from: dict[str, dict[str, list[str]]] = {}
    for start in plan.routers:
        known = paths_from[start] = {start: [start]}
        queue = [start]
        for router in queue:
            for other in neighbours[router]:
                if other not in known:
                    known[other] = [*known[router], other]
                    queue.append(other)
    return paths_from
