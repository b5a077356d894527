"""The checks of routers: they see everything that happens and raise at the first violation.

- **uninterested**: a client gets a message only if, in that instant, one of its subscriptions in
  force at its router selects it. (A subscription comes into force in the instant in which its
  router acknowledges it; before and after it is in flux.)
- **twice**: a client gets a publication at most once.
- **order**: the publications of one publisher reach a client in the order of their numbers.
- **lost**: a publication reaches every other client with a subscription that selects it, is
  *settled* when it is published, and is not recalled before the message can have arrived, on a
  path that is *healthy* all that time.
- **state**: when the network is quiet, routers hold what a global recomputation gives.
- **restless**: a healed network becomes quiet, with one session on each link and nothing waiting.
- **broken**: no router raises an error.

Settled and healthy, exactly, for a publication at instant t at router p and a client of router c
with a subscription that came into force at s. The path is c = r0, r1, ..., rk = p.

- The path is *healthy* when each of its links is, at t, in a session that both ends have open (see
  `palio.sim.routers.link_history`), and stays in it until the message has passed. Lost, doubled, reordered and
  late frames do not make it unhealthy, nor does a partition: the link repeats them. A crash of one
  of its routers does, and an outbox that overflowed.
- Let s0 be the latest of s and the beginnings of these sessions. What r0 had said to r1 by s0 has
  been heard at some instant s1, what r1 had said to r2 by s1 at s2, and so on. The subscription is
  *settled* if sk is not after t: then every router of the path holds it, or one that covers it,
  from the direction of c, and keeps it while the sessions last.
- With advertisements (but not in a hierarchy, where masters are told all), one of the publisher that allows the message must have come the other way
  first: a_k is the latest of its coming into force and the sessions' beginnings, a_i follows from
  a_(i+1) in the same way, and s_(i+1) counts from the later of s_i and a_i.
- The message has passed at m_0, where m_k = t and m_i is when all that r_(i+1) had sent to r_i by
  m_(i+1) has arrived.

Restarts do not unsettle for good: the next session begins with restatements, and s0 moves there.

On a graph the path is that of p's tree, and nothing is due unless all routers had agreed on the topology
before t and it stays until the message has passed (`palio.sim.routers.topology_watch`); s0 is not before
they agreed. A second copy is a violation under the same conditions, and the order is not checked: a message may
overtake another on a new path.
"""

from __future__ import annotations

from palio.model.predicate import Filter
from palio.routing.packets import Publish
from palio.routing.topology import Topology
from palio.sim.kernel.verdicts import Violation
from palio.sim.routers.link_history import LinkHistory, LinkSession
from palio.sim.routers.packet_text import described
from palio.sim.routers.plans import RouterPlan
from palio.sim.routers.subscription_history import Declaration, SubscriptionHistory
from palio.sim.routers.topology_watch import TopologyWatch


class PublicationRecord:
    """A publication, when and where, and who got it."""

    __slots__ = ("instant", "net", "publication", "receivers", "router")

    def __init__(
        self, publication: Publish, router: str, instant: int, net: Topology | None
    ) -> None:
        self.publication = publication
        self.net = net  # on a graph: what all routers agreed on
        self.router = router
        self.instant = instant
        self.receivers: set[str] = set()


class DeliveryChecker:
    """Every publication, every delivery."""

    def __init__(
        self,
        plan: RouterPlan,
        histories: dict[str, SubscriptionHistory],
        history: LinkHistory,
        watch: TopologyWatch | None = None,
    ) -> None:
        """`watch`: of a graph."""
        self._watch = watch
        self._router_of = dict(plan.clients)
        self._by_advertisement = plan.advertisements and not plan.hierarchy
        self._histories = histories
        self._history = history
        self._published: dict[tuple[str, int], PublicationRecord] = {}
        self._unchecked: list[PublicationRecord] = []
        self._last: dict[tuple[str, str], int] = {}

    def published(self, publication: Publish, router: str, instant: int) -> None:
        net = None if self._watch is None else self._watch.agreed(router)
        record = PublicationRecord(publication, router, instant, net)
        self._published[publication.publisher, publication.number] = record
        self._unchecked.append(record)

    def delivered(self, client: str, publication: Publish) -> None:
        what = f"{publication.message.to_json()}, number {publication.number} of {publication.publisher},"
        record = self._published[publication.publisher, publication.number]
        if client in record.receivers:
            raise Violation("twice", f"{what} reached {client} again")
        record.receivers.add(client)
        if client == publication.publisher or not self._histories[client].wants(
            publication.message
        ):
            raise Violation("uninterested", f"{what} reached {client}, who does not want it")
        before = self._last.get((client, publication.publisher), 0)
        if before > publication.number and self._watch is None:
            raise Violation("order", f"{what} reached {client} after number {before}")
        self._last[client, publication.publisher] = publication.number

    def repeated(self, client: str, publication: Publish, instant: int) -> None:
        """On a graph a copy came that the client has already."""
        record = self._published[publication.publisher, publication.number]
        assert self._watch is not None
        if record.net is not None and self._watch.is_calm(record.instant, instant):
            raise Violation("twice", f"{described(publication)} reached {client} again, in calm")

    def check_lost(self) -> int:
        """The network is quiet: whatever was due has arrived. How many deliveries were due."""
        due = 0
        for record in self._unchecked:
            publication = record.publication
            for client, declarations in self._histories.items():
                if client == publication.publisher:
                    continue
                for declared in declarations.selecting(publication.message, record.instant):
                    if self._is_due(record, self._router_of[client], declared):
                        due += 1
                        if client not in record.receivers:
                            raise Violation(
                                "lost",
                                f"{publication.message.to_json()}, number {publication.number} of "
                                f"{publication.publisher}, never reached {client}, who had "
                                f"subscribed to {declared.item}",
                            )
                        break
        self._unchecked.clear()
        return due

    def _is_due(self, record: PublicationRecord, home: str, declared: Declaration[Filter]) -> bool:
        path = self._path(record, home)
        sessions = None if path is None else self._history.sessions(path, record.instant)
        if path is None or sessions is None:
            return False
        passed = _message_passed(path, sessions, record.instant)
        if passed is None or passed >= declared.recalled:
            return False
        begin = max((session.start for session in sessions), default=0)
        if self._watch is not None and len(path) > 1:
            begin = max(begin, self._watch.since(record.instant))
            if not self._watch.is_calm(record.instant, passed):
                return False
        if not self._by_advertisement:
            known: list[int] | None = [0] * len(path)
            return _is_settled(path, sessions, max(declared.applied, begin), known, record.instant)
        message = record.publication.message
        for offer in self._histories[record.publication.publisher].allowing(
            message, record.instant
        ):
            if passed >= offer.recalled:
                continue
            known = _advertisement_known(path, sessions, max(offer.applied, begin))
            if _is_settled(path, sessions, max(declared.applied, begin), known, record.instant):
                return True
        return False

    def _path(self, record: PublicationRecord, home: str) -> list[str] | None:
        """From a client's router to the publisher's; None: nobody can tell."""
        if self._watch is None or home == record.router:
            return self._history.path(home, record.router)
        if record.net is None or home not in record.net:
            return None
        tree, path = record.net.tree(record.router), [home]
        while (before := tree.parent(path[-1])) is not None:
            path.append(before)
        return path


def _message_passed(path: list[str], sessions: list[LinkSession], instant: int) -> int | None:
    """m_0: when the message has passed; None: it need not arrive."""
    at: int | None = instant
    for i in range(len(sessions) - 1, -1, -1):
        assert at is not None
        at = sessions[i].passed(path[i + 1], at)
        if at is None:
            return None
    assert at is not None
    return at if all(at < session.end for session in sessions) else None


def _advertisement_known(
    path: list[str], sessions: list[LinkSession], instant: int
) -> list[int] | None:
    """a_0 to a_k: when each router of the path had the advertisement."""
    known = [instant]
    for i in range(len(sessions) - 1, -1, -1):
        at = sessions[i].passed(path[i + 1], known[-1])
        if at is None:
            return None
        known.append(at)
    return known[::-1]


def _is_settled(
    path: list[str], sessions: list[LinkSession], start: int, known: list[int] | None, instant: int
) -> bool:
    """Has the subscription come to the end of the path by then (s_k)?"""
    if known is None:
        return False
    at: int | None = start
    for i, session in enumerate(sessions):
        assert at is not None
        at = session.passed(path[i], max(at, known[i]))
        if at is None or at > instant:
            return False
    return True
