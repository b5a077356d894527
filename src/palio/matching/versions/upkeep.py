"""A table and its upkeep: updates make versions at once, expensive work is done elsewhere.

    update ──▶ the next version                       microseconds
    work   ──▶ a Merge or a Compaction, if one is due
               run()     any thread: computes on versions, which never change
               finish()  the owner: swaps in the result; what came meanwhile is brought onto it

While a version is compacted, merging leaves its levels alone, so that later ones can be told from
them. Nothing here locks: `live.py` does, a broker has one thread that calls all but `run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from palio.matching.table import ForwardingTable
from palio.matching.versions.roster import Roster
from palio.matching.versions.updates import Level, Rebasing, UpdatedEngine, due, merged
from palio.model.predicate import Predicate

LEVELS_MAX = 64
"""When merging falls behind so far, updates do it themselves."""
_IDLE_LEAST, _IDLE_PART = 64, 64
"""Changes above the base that are compacted when updates are idle: so many, and a part of the base."""


class UpkeepWork(Protocol):
    def run(self) -> None:
        """Compute; in any thread."""
        ...

    def finish(self) -> None:
        """Swap in what was computed; by the owner of the table."""
        ...

    def abandon(self) -> None:
        """It failed, or is not wanted: it becomes due again."""
        ...


class MaintainedTable:
    """Compaction is due when what was added and removed is more than a `share` of the base, and
    more than `least`."""

    def __init__(self, table: ForwardingTable, share: float, least: int) -> None:
        self._share, self._least = share, least
        self.table = table
        """The current version; it stays as it is, whatever comes."""
        self.engine = table.versioned()
        self.compactions = 0
        self._compacting_to = 0  # the last update that the version in compaction has
        self._is_merging = False
        self.engine.roster.base.file()

    def update(self, add: Mapping[str, Predicate], remove: Iterable[str]) -> ForwardingTable:
        """The next version: interfaces removed, then predicates added."""
        made = self.engine.changed(add, dict.fromkeys(remove))
        if len(made.levels) > LEVELS_MAX:
            old = due(made.levels, self._compacting_to)
            made = made.replaced(old, merged(made.roster, old)) if old else made
        self._put(made)
        return self.table

    def merge(self) -> Merge | None:
        """The merge that is due and not under way."""
        levels = () if self._is_merging else due(self.engine.levels, self._compacting_to)
        if not levels:
            return None
        self._is_merging = True
        return Merge(self, self.engine.roster, levels)

    def compaction(self, *, idle: bool = False) -> Compaction | None:
        """The compaction that is due and not under way; when updates are `idle`, a few are enough."""
        changes = self.engine.additions + self.engine.roster.removed
        is_worth = idle and changes > max(_IDLE_LEAST, len(self.engine.roster.base) // _IDLE_PART)
        if self._compacting_to or not (is_worth or self.is_compaction_due):
            return None
        self._put(self.engine.settled())
        self._compacting_to = self.engine.roster.sequence
        return Compaction(self, self.engine)

    @property
    def is_merge_due(self) -> bool:
        return not self._is_merging and bool(due(self.engine.levels, self._compacting_to))

    @property
    def is_compaction_due(self) -> bool:
        roster = self.engine.roster
        changes = self.engine.additions + roster.removed
        return not self._compacting_to and changes > max(
            self._least, self._share * len(roster.base)
        )

    def merged(self, old: tuple[Level, ...], new: tuple[Level, ...]) -> None:
        """A merge is over; without effect if a compaction came between."""
        self._is_merging = False
        current = set(map(id, self.engine.levels))
        if all(id(level) in current for level in old):
            self._put(self.engine.replaced(old, new))

    def compacted(self, rebasing: Rebasing | None) -> None:
        """A compaction is over; None: it failed."""
        self._compacting_to = 0
        if rebasing is not None:
            self._put(rebasing.follow(self.engine))
            self.compactions += 1

    def _put(self, engine: UpdatedEngine) -> None:
        self.engine = engine
        self.table = ForwardingTable.of_version(engine)


class Merge:
    """Levels into a larger one."""

    def __init__(self, owner: MaintainedTable, roster: Roster, levels: tuple[Level, ...]) -> None:
        self._owner, self._roster, self._levels = owner, roster, levels
        self._merged: tuple[Level, ...] = levels

    def run(self) -> None:
        self._merged = merged(self._roster, self._levels)

    def finish(self) -> None:
        self._owner.merged(self._levels, self._merged)

    def abandon(self) -> None:
        self._owner.merged(self._levels, self._levels)


class Compaction:
    """A version into a new base."""

    def __init__(self, owner: MaintainedTable, version: UpdatedEngine) -> None:
        self._owner, self._version = owner, version
        self._rebasing: Rebasing | None = None

    def run(self) -> None:
        rebasing = Rebasing(self._version, *self._version.compacted())
        rebasing.follow(self._owner.engine)  # most of it, while others still go on
        self._rebasing = rebasing

    def finish(self) -> None:
        self._owner.compacted(self._rebasing)

    def abandon(self) -> None:
        self._owner.compacted(None)
