"""The checkers: they watch everything that happens and raise at the first thing that must not.

- **uninterested**: a client gets a message only if, in that instant, one of its subscriptions in
  force at its router selects it. (A subscription comes into force in the instant in which its
  router acknowledges it, so there is no grey zone at the edge; it is in flux before and after.)
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
  `palio.sim.history`), and stays in it until the message has passed. Lost, doubled, reordered and
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
"""

from __future__ import annotations

from palio.errors import PalioError
from palio.model.predicate import Filter
from palio.routing.packets import Publish
from palio.sim.history import History, Session
from palio.sim.operations import Plan
from palio.sim.wishes import Wish, Wishes


class Violation(PalioError):
    """Something that must never happen. `kind` is the checker that saw it."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(f"{kind}: {text}")


class Published:
    """A publication, when and where, and who got it."""

    __slots__ = ("instant", "publication", "receivers", "router")

    def __init__(self, publication: Publish, router: str, instant: int) -> None:
        self.publication = publication
        self.router = router
        self.instant = instant
        self.receivers: set[str] = set()


class DeliveryChecker:
    """Every publication, every delivery."""

    def __init__(self, plan: Plan, wishes: dict[str, Wishes], history: History) -> None:
        self._homes = dict(plan.clients)
        self._by_advertisement = plan.advertisements and not plan.hierarchy
        self._wishes = wishes
        self._history = history
        self._published: dict[tuple[str, int], Published] = {}
        self._unchecked: list[Published] = []
        self._last: dict[tuple[str, str], int] = {}

    def published(self, publication: Publish, router: str, instant: int) -> None:
        one = Published(publication, router, instant)
        self._published[publication.publisher, publication.number] = one
        self._unchecked.append(one)

    def delivered(self, client: str, publication: Publish) -> None:
        what = f"{publication.message.to_json()}, number {publication.number} of {publication.publisher},"
        one = self._published[publication.publisher, publication.number]
        if client in one.receivers:
            raise Violation("twice", f"{what} reached {client} again")
        one.receivers.add(client)
        if client == publication.publisher or not self._wishes[client].wants(publication.message):
            raise Violation("uninterested", f"{what} reached {client}, who does not want it")
        before = self._last.get((client, publication.publisher), 0)
        if before > publication.number:
            raise Violation("order", f"{what} reached {client} after number {before}")
        self._last[client, publication.publisher] = publication.number

    def check_lost(self) -> int:
        """The network is quiet: whatever was due has arrived. How many deliveries were due."""
        due = 0
        for one in self._unchecked:
            publication = one.publication
            for client, wishes in self._wishes.items():
                if client == publication.publisher:
                    continue
                for wish in wishes.selecting(publication.message, one.instant):
                    if self._is_due(one, self._homes[client], wish):
                        due += 1
                        if client not in one.receivers:
                            raise Violation(
                                "lost",
                                f"{publication.message.to_json()}, number {publication.number} of "
                                f"{publication.publisher}, never reached {client}, who had "
                                f"subscribed to {wish.item}",
                            )
                        break
        self._unchecked.clear()
        return due

    def _is_due(self, one: Published, home: str, wish: Wish[Filter]) -> bool:
        path = self._history.path(home, one.router)
        sessions = self._history.sessions(path, one.instant)
        if sessions is None:
            return False
        passed = _message_passed(path, sessions, one.instant)
        if passed is None or passed >= wish.recalled:
            return False
        begin = max((session.start for session in sessions), default=0)
        if not self._by_advertisement:
            known: list[int] | None = [0] * len(path)
            return _is_settled(path, sessions, max(wish.applied, begin), known, one.instant)
        message = one.publication.message
        for offer in self._wishes[one.publication.publisher].allowing(message, one.instant):
            if passed >= offer.recalled:
                continue
            known = _advertisement_known(path, sessions, max(offer.applied, begin))
            if _is_settled(path, sessions, max(wish.applied, begin), known, one.instant):
                return True
        return False


def _message_passed(path: list[str], sessions: list[Session], instant: int) -> int | None:
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
    path: list[str], sessions: list[Session], instant: int
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
    path: list[str], sessions: list[Session], start: int, known: list[int] | None, instant: int
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
