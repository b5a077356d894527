"""The table of available sub-patterns: what neighbours match for this router (2000, 3.6).

    task, sub-pattern                providers: neighbour, id of our watch there, uses
    assemble [a] then [b]            west #1   ── watch of ann, as <0>
                                               └─ watch of bob, as <0>, within 1 minute
    sieve    [b] then [c]            east #2   ── watch of ann, as <1>

A watch that needs what is in the table uses it: equal needs cause one delegation, which ends with its
last use. A sub-pattern with a wider `within` provides the one with a narrower `within` as well: the
tight matches of the second are those of the first that are short enough. So the `within` around a
sub-pattern is not part of its key. The neighbour is asked for the widest that somebody needs, and for
the least lateness, so that nothing comes too late for anybody. When that changes, it is told in
a watch with the same id, and continues with its state.

Invariants after `settle`: every entry has a use; every neighbour has been told of exactly the entries
that it provides. The table depends on the uses only, not on the order in which they came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeAlias, TypeVar

from palio.routing.patterns.packets import Task, Unwatch, Watch
from palio.routing.patterns.pattern import Pattern, bounded, core
from palio.routing.patterns.planning import Delegation
from palio.routing.publication import Peer

User = TypeVar("User", bound=Hashable)
_Limits: TypeAlias = tuple[int | None, int]
"""`within` and lateness, in microseconds."""


class PatternUse(Generic[User]):
    """Who uses an available sub-pattern, for which delegation of its plan."""

    __slots__ = ("delegation", "limits", "since", "user")

    def __init__(
        self, user: User, delegation: Delegation, lateness: int, since: int | None
    ) -> None:
        """`since`: messages that were published earlier are not for this use; None: all are."""
        self.user, self.delegation, self.since = user, delegation, since
        self.limits: _Limits = (core(delegation.pattern)[1], lateness)

    def wants(self, start: int, end: int) -> bool:
        """Whether a match, or a message, with these times is for this use."""
        micros = self.limits[0]
        is_short = micros is None or end - start <= micros
        return is_short and (self.since is None or start >= self.since)


class AvailablePattern(Generic[User]):
    """A sub-pattern that a neighbour assembles or sieves for this router."""

    def __init__(self, id: int, peer: Peer, task: Task, plain: Pattern) -> None:
        """`plain`: without a `within` around it."""
        self.id, self.peer, self.task, self.plain = id, peer, task, plain
        self.watch: Watch | None = None
        """What the neighbour has been told; None: nothing yet."""
        self._uses: dict[PatternUse[User], None] = {}
        self._limits = Counter[_Limits]()  # of all uses: few are different

    @property
    def uses(self) -> tuple[PatternUse[User], ...]:
        """In the order in which they came."""
        return tuple(self._uses)

    def add(self, use: PatternUse[User]) -> None:
        self._uses[use] = None
        self._limits[use.limits] += 1

    def remove(self, use: PatternUse[User]) -> None:
        del self._uses[use]
        self._limits[use.limits] -= 1
        if not self._limits[use.limits]:
            del self._limits[use.limits]

    def adjust(self, use: PatternUse[User], delegation: Delegation, lateness: int) -> None:
        """A use needs the same with other limits of time."""
        self._limits[use.limits] -= 1
        self._limits = +self._limits
        use.delegation, use.limits = delegation, (core(delegation.pattern)[1], lateness)
        self._limits[use.limits] += 1

    def needed(self) -> Watch | None:
        """What its uses need together; None: it has none."""
        if not self._uses:
            return None
        bounds = [micros for micros, _ in self._limits if micros is not None]
        widest = max(bounds) if len(bounds) == len(self._limits) else None
        lateness = min(lateness for _, lateness in self._limits)
        return Watch(self.id, bounded(self.plain, widest), self.task, lateness)


class AvailablePatterns(Generic[User]):
    """The sub-patterns that neighbours provide, by task and pattern."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Task, Pattern], dict[Peer, AvailablePattern[User]]] = {}
        self._by_id: dict[int, AvailablePattern[User]] = {}
        self._of: dict[User, list[tuple[AvailablePattern[User], PatternUse[User]]]] = {}
        self._changed: dict[AvailablePattern[User], None] = {}
        self._ids = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[AvailablePattern[User]]:
        """In the order in which they were delegated."""
        return iter(self._by_id.values())

    def providers(self, pattern: Pattern, task: Task = Task.ASSEMBLE) -> tuple[Peer, ...]:
        """The neighbours that match this sub-pattern already, or the same with a wider `within`."""
        plain, micros = core(pattern)
        found = self._entries.get((task, plain), {})
        return tuple(
            peer
            for peer, entry in found.items()
            if entry.watch is not None and _is_wider(core(entry.watch.pattern)[1], micros)
        )

    def find(self, peer: Peer, id: int) -> AvailablePattern[User] | None:
        """What a neighbour answers with this id; None if it is no longer needed."""
        entry = self._by_id.get(id)
        return entry if entry is not None and entry.peer == peer else None

    def told(self, peer: Peer) -> tuple[Watch, ...]:
        """All that a neighbour provides."""
        return tuple(e.watch for e in self if e.peer == peer and e.watch is not None)

    def used_by(self, user: User) -> list[tuple[int, Delegation]]:
        """What a user needs, with the ids of our watches at the neighbours."""
        return [(entry.id, use.delegation) for entry, use in self._of.get(user, ())]

    def use(
        self, user: User, delegations: Collection[Delegation], lateness: int, since: int
    ) -> None:
        """Add the uses of a user. Of what a neighbour matches already, it gets only messages from
        `since` on."""
        for delegation in delegations:
            entry = self._entry(delegation)
            begin = None if entry.watch is None else since
            use = PatternUse(user, delegation, lateness, begin)
            entry.add(use)
            self._of.setdefault(user, []).append((entry, use))
            self._changed[entry] = None

    def _entry(self, delegation: Delegation) -> AvailablePattern[User]:
        key = delegation.task, core(delegation.pattern)[0]
        found = self._entries.setdefault(key, {})
        if delegation.peer not in found:
            self._ids += 1
            entry = AvailablePattern[User](self._ids, delegation.peer, *key)
            found[delegation.peer] = self._by_id[self._ids] = entry
        return found[delegation.peer]

    def adjust(self, user: User, delegations: Collection[Delegation], lateness: int) -> None:
        """A user needs the same with other limits of time."""
        by_number = {delegation.number: delegation for delegation in delegations}
        for entry, use in self._of.get(user, ()):
            entry.adjust(use, by_number[use.delegation.number], lateness)
            self._changed[entry] = None

    def release(self, user: User) -> None:
        """End all uses of a user."""
        for entry, use in self._of.pop(user, ()):
            entry.remove(use)
            self._changed[entry] = None

    def settle(self, peers: Collection[Peer]) -> list[tuple[Peer, Watch | Unwatch]]:
        """What neighbours are told of the changes since the last call: first what ends."""
        ended: list[tuple[Peer, Watch | Unwatch]] = []
        told: list[tuple[Peer, Watch | Unwatch]] = []
        for entry in self._changed:
            needed = entry.needed()
            if needed is None:
                self._remove(entry)
                if entry.peer in peers and entry.watch is not None:
                    ended.append((entry.peer, Unwatch(entry.id)))
            elif needed != entry.watch:
                entry.watch = needed
                told.append((entry.peer, needed))
        self._changed = {}
        return ended + told

    def _remove(self, entry: AvailablePattern[User]) -> None:
        del self._by_id[entry.id]
        found = self._entries[entry.task, entry.plain]
        del found[entry.peer]
        if not found:
            del self._entries[entry.task, entry.plain]


def _is_wider(micros: int | None, other: int | None) -> bool:
    return micros is None or (other is not None and micros >= other)
