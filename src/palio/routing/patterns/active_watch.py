"""A watch at a router: its plan, and the matcher of what is matched here.

    messages of its parts      ┐
    answers of neighbours      ├─▶ ActiveWatch ──▶ compounds or messages for the watcher
    time                       ┘

Invariant: the matcher takes one copy of a message, however many subscriptions and sieves let it pass.
What was taken is remembered as long as it would not be late, and in a quarter of the bytes that a watch
may hold: publishers choose their times, so thousands of messages may have the same.

A `Tick` that releases nothing is applied later: `catch_up` comes before everything else that the
matcher gets. Nobody can tell the difference.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from palio.model.advertisement import Advertisement
from palio.model.covering import intersects
from palio.model.predicate import Filter
from palio.routing.patterns.automaton import Stamp, stamp
from palio.routing.patterns.monitor import BYTES_MAX, Matcher, matcher
from palio.routing.patterns.packets import Assembled, Compound, Watch
from palio.routing.patterns.pattern import leaves, size_of
from palio.routing.patterns.planning import PatternPlan, here
from palio.routing.publication import Peer, Publish

SEEN_MIN = 64  # stamps that are kept before old ones are dropped
STAMP_BYTES = 250  # of a stamp that is kept


class ActiveWatch:
    """A watch, its plan, and the matcher of what is matched here."""

    def __init__(
        self, peer: Peer, watch: Watch, lateness: int, order: int, bytes_max: int = BYTES_MAX
    ) -> None:
        """`order`: its position in the order of watching. `bytes_max`: about how much it may hold."""
        self._bytes_max = bytes_max
        self.peer, self.watch, self.lateness, self.order = peer, watch, lateness, order
        self.begun = 0
        """Its position in the order in which matching began, or restarted."""
        self.effort = 0
        """What a message costs: the constraints that are evaluated, and what the automaton does."""
        self.plan = PatternPlan()
        self.wanted: dict[Filter, None] = {}
        self._parts = here(watch.pattern).parts
        self._matcher: Matcher[Any] | None = None
        self._seen: dict[Stamp, None] = {}
        self._seen_max = SEEN_MIN
        self._late = self._keys_dropped = 0
        self._ticked: int | None = None

    @property
    def key(self) -> tuple[Peer, int]:
        """The watcher, and its id of the watch."""
        return self.peer, self.watch.id

    def begin(self, made: PatternPlan, begun: int, now: int | None) -> None:
        """Restart matching with this plan; `now`: the time of the last tick."""
        self._late, self._keys_dropped = self.late, self.keys_dropped
        self.begun, self._ticked = begun, now
        self.plan = made
        self._seen = {}
        self._matcher = None
        if made.residual is not None:
            self._matcher = matcher(
                self.watch.task,
                made.residual,
                lateness=self.lateness,
                bytes_max=max(1, self._bytes_max * 3 // 4),
            )
            _, constraints = size_of(made.residual.node)
            self.effort = constraints + sum(1 for _ in leaves(made.residual.node)) ** 2

    def catch_up(self, now: int | None) -> None:
        """Apply a tick that releases nothing here."""
        if now is not None and now != self._ticked:
            self.expire(now)

    def revise(self, watch: Watch, lateness: int) -> None:
        """The watcher needs the same pattern with another `within` around it, or another lateness;
        `adjust` follows, or `begin`."""
        self.watch, self.lateness = watch, lateness

    def adjust(self, made: PatternPlan) -> list[Any]:
        """Continue with a plan of the same shape."""
        self.plan = made
        if self._matcher is None or made.residual is None:
            return []
        return self._matcher.revise(made.residual, self.lateness)

    def is_concerned(self, advertisements: Collection[Advertisement]) -> bool:
        """Whether one of these advertisements can change the plan."""
        return any(intersects(a, part) for a in advertisements for part in self._parts)

    @property
    def late(self) -> int:
        """How many messages and compounds came too late."""
        return self._late + (self._matcher.counters.late if self._matcher is not None else 0)

    @property
    def keys_dropped(self) -> int:
        """How many keys were dropped because too much was held."""
        return self._keys_dropped + (
            self._matcher.counters.keys_dropped if self._matcher is not None else 0
        )

    @property
    def bytes(self) -> int:
        """About how many bytes it holds."""
        held = self._matcher.bytes_held if self._matcher is not None else 0
        return held + STAMP_BYTES * len(self._seen)

    def shed(self) -> None:
        """Drop about half of what is held, the oldest first."""
        self._forget_seen(len(self._seen) // 2)
        if self._matcher is not None:
            self._matcher.shed(self._matcher.bytes_held // 2)

    @property
    def release_at(self) -> int | None:
        return self._matcher.release_at if self._matcher is not None else None

    def take(self, publication: Publish) -> list[Any]:
        """Feed a message of a part; a second copy is dropped."""
        if self._matcher is None:
            return []
        mark = stamp(publication)
        if mark in self._seen:
            return []
        self._seen[mark] = None
        answers = self._matcher.feed(publication)
        if len(self._seen) > self._seen_max:
            floor, most = self._matcher.floor, self._bytes_max // 4 // STAMP_BYTES
            self._seen = {m: None for m in self._seen if floor is None or m[0] >= floor}
            if len(self._seen) > most // 2:
                self._forget_seen(most // 2)
            self._seen_max = max(SEEN_MIN, 2 * len(self._seen))
        return answers

    def _forget_seen(self, left: int) -> None:
        """Remember only so many of the messages that were taken last."""
        self._seen = dict.fromkeys(list(self._seen)[len(self._seen) - left :])

    def hear(self, number: int, answer: Compound | Publish) -> list[Any]:
        """Feed the answer of a neighbour to a delegation."""
        if self._matcher is None:
            return [answer]
        if isinstance(answer, Publish):
            return self.take(answer)
        return self._matcher.feed(Assembled(number, answer))

    def expire(self, now: int) -> list[Any]:
        self._ticked = now
        return self._matcher.expire(now) if self._matcher is not None else []
