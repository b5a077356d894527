"""Updates as layers over an untouched table: levels of growing size, and tombstones.

    recent     a handful of predicates as they came             evaluated one by one
    levels     [64] [64] | [256] [256] [256] | [1024] ...       compiled; merged four by four
    base       [1,000,000]                                      compiled long ago, shared by all

A level knows the positions of its interfaces (`roster`), and may add to an interface of the base.
A removed interface is a tombstone on its position, which hides it in the base and in every level,
so the order of levels does not matter and any of them can be merged. Each filter is compiled once
for each size of level: that is what an update costs. Engines and levels never change; a version is
a new tuple of levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from palio.matching.answers import whole
from palio.matching.computed.compiling import CompiledEngine, compiled, is_compiled
from palio.matching.encode.columns import ConstraintColumns, Ints, from_predicates
from palio.matching.encode.merging import joined
from palio.matching.engine import Engine
from palio.matching.expressions import ExpressionUse, OnFailure, TableExpressions, together
from palio.matching.pairs import as_lists, pairs_of, rows_of, united
from palio.matching.statistics import Reduction, Stats
from palio.matching.versions.interface_names import InterfaceNames, int64_array
from palio.matching.versions.roster import Roster, VersionLine
from palio.model.arrays import Content
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate

RECENT_MAX = 64  # predicates that are evaluated one by one
RECENT_FILTERS_MAX = 512  # of them: compiling more at once would hold up whoever updates
FANOUT = 4  # levels of about one size that become one
_LASTING = 8  # messages after which compiling what is recent is worth it

Entry: TypeAlias = tuple[int, Predicate]


@dataclass(frozen=True, slots=True)
class Level:
    """Compiled additions; `newest` is the update that the last of them came with."""

    engine: CompiledEngine
    positions: Ints  # of its interfaces, ascending
    size: int  # filters
    newest: int

    @property
    def tier(self) -> int:
        return max(0, (self.size // RECENT_MAX).bit_length() - 1) // (FANOUT.bit_length() - 1)

    def columns(self) -> ConstraintColumns:
        return self.engine.columns(self.positions)

    def own(self, among: Ints | None) -> Ints | None:
        """Which of its interfaces are at some positions; None asks for all of them."""
        return None if among is None else np.flatnonzero(np.isin(self.positions, among))


def _compiled(
    columns: ConstraintColumns, positions: Ints, newest: int, use: ExpressionUse
) -> Level:
    return Level(compiled(columns, use=use), positions, columns.filters, newest)


def sealed(roster: Roster, recent: Sequence[Entry], use: ExpressionUse) -> tuple[Level, ...]:
    """A level of what is recent and not removed since; none when nothing is left."""
    live = roster.is_live(np.array([position for position, _ in recent], np.int64))
    kept = [entry for entry, is_live in zip(recent, live.tolist(), strict=True) if is_live]
    if not kept:
        return ()
    kept.sort(key=lambda entry: entry[0])
    columns = from_predicates((str(position), predicate) for position, predicate in kept)
    positions = np.unique(np.array([position for position, _ in kept], np.int32))
    return (_compiled(columns, positions, roster.sequence, use),)


def merged(roster: Roster, levels: Sequence[Level]) -> tuple[Level, ...]:
    """One level of several, without what is gone."""
    positions = np.unique(np.concatenate([level.positions for level in levels]))
    positions = positions[roster.is_live(positions)]
    if not len(positions):
        return ()
    parts = [(level.columns(), level.positions) for level in levels]
    columns = joined(parts, positions, positions)
    newest = max(level.newest for level in levels)
    return (_compiled(columns, positions, newest, levels[0].engine.use),)


def due(levels: Iterable[Level], after: int = 0) -> tuple[Level, ...]:
    """The levels to merge next: those of the lowest tier that has enough of them.

    Only levels that came after an update are taken.
    """
    tiers: dict[int, list[Level]] = {}
    for level in levels:
        if level.newest > after:
            tiers.setdefault(level.tier, []).append(level)
    full = [tier for tier, found in tiers.items() if len(found) >= FANOUT]
    return tuple(tiers[min(full)]) if full else ()


class UpdatedEngine:
    """A base engine with tombstones, levels over it, and what is too recent to be compiled."""

    def __init__(
        self,
        base: Engine,
        roster: Roster,
        levels: tuple[Level, ...] = (),
        recent: tuple[Entry, ...] = (),
        use: ExpressionUse | None = None,
    ) -> None:
        self.base = base
        self.roster = roster
        self.levels = levels
        self.recent = recent
        self._asked = 0
        self.use = use or (base.use if is_compiled(base) else ExpressionUse())

    # ---- versions

    def changed(self, add: Mapping[str, Predicate], remove: Iterable[str]) -> UpdatedEngine:
        """The next version: interfaces removed, then predicates added."""
        roster, positions = self.roster.changed(remove, add)
        recent = (*self.recent, *zip(positions, add.values(), strict=True))
        made = UpdatedEngine(self.base, roster, self.levels, recent, self.use)
        filters = sum([len(predicate) for _, predicate in recent])
        is_much = len(recent) >= RECENT_MAX or filters >= RECENT_FILTERS_MAX
        return made.settled() if is_much else made

    def settled(self) -> UpdatedEngine:
        """The same version with nothing recent."""
        if not self.recent:
            return self
        levels = (*self.levels, *self._fresh)
        return UpdatedEngine(self.base, self.roster, levels, use=self.use)

    def replaced(self, old: Sequence[Level], new: tuple[Level, ...]) -> UpdatedEngine:
        """The same version with some levels instead of others."""
        known = set(map(id, old))
        levels = tuple(level for level in self.levels if id(level) not in known)
        return UpdatedEngine(self.base, self.roster, (*levels, *new), self.recent, self.use)

    def tidied(self) -> UpdatedEngine:
        """The same version with no more levels of a size than there should be."""
        made = self
        while old := due(made.levels):
            made = made.replaced(old, merged(made.roster, old))
        return made

    def compacted(self) -> tuple[CompiledEngine, Roster]:
        """The same interfaces in one engine, in the same order."""
        positions = int64_array(self.roster.positions)
        names = InterfaceNames(whole(self.roster.array.take(positions)))
        return compiled(self.columns(names.array), use=self.use), Roster.of(names)

    @property
    def additions(self) -> int:
        """Filters above the base."""
        return sum(level.size for level in self.levels) + len(self.recent)

    # ---- matching

    @cached_property
    def _fresh(self) -> tuple[Level, ...]:
        """What is recent, compiled."""
        return sealed(self.roster, self.recent, self.use)

    def _above(self) -> Iterator[Level]:
        """All levels, with what is recent compiled."""
        yield from self.levels
        if self.recent:
            yield from self._fresh

    def match_one(
        self,
        message: Mapping[str, Content],
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> Ints:
        return self._matched_one(
            lambda engine, own: engine.match_one(message, own, on_failure),
            lambda: as_message(message),
            among,
            on_failure,
        )

    def match_text(
        self, text: Any, among: Ints | None = None, on_failure: OnFailure | None = None
    ) -> Ints:
        return self._matched_one(
            lambda engine, own: engine.match_text(text, own, on_failure),
            lambda: Message.from_json(bytes(text)),
            among,
            on_failure,
        )

    def _matched_one(
        self,
        ask: Callable[[Engine, Ints | None], Ints],
        read: Callable[[], Message],
        among: Ints | None,
        on_failure: OnFailure | None,
    ) -> Ints:
        """All answers for one message as one; `read` gives it where predicates are evaluated."""
        found = ask(self.base, self._in_base(among))
        found = found[self.roster.is_live(found)]
        self._asked += 1
        evaluating = self.recent and self._asked < _LASTING and "_fresh" not in self.__dict__
        levels = self.levels if evaluating else self._above()
        extra = [level.positions[ask(level.engine, level.own(among))] for level in levels]
        if evaluating:
            known, failed = read(), partial(self._failed, on_failure)
            hits = [
                position for position, p in self.recent if any(f.matches(known, failed) for f in p)
            ]
            recent = np.array(hits, np.int32)
            extra.append(recent if among is None else recent[np.isin(recent, among)])
        more = np.unique(np.concatenate(extra)) if extra else np.empty(0, np.int32)
        more = more[self.roster.is_live(more)]
        if not len(more):
            return found
        if more[0] >= len(self.roster.base):
            return np.concatenate([found, more])
        return np.union1d(found, more)

    def _failed(self, on_failure: OnFailure | None, name: str, reason: str) -> None:
        self.use.failures.add(name, 1)
        if on_failure is not None:
            on_failure(name, [0], reason)

    def match(self, messages: Sequence[Mapping[str, Content]]) -> tuple[Ints, Ints]:
        return self._matched(lambda engine, _: engine.match(messages), None)

    def match_rows(
        self,
        rows: Any,
        layout: str,
        column: str,
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> tuple[Ints, Ints]:
        return self._matched(
            lambda engine, own: engine.match_rows(rows, layout, column, own, on_failure), among
        )

    def _in_base(self, among: Ints | None) -> Ints | None:
        """Those of some positions that are in the base; None asks for all of it."""
        return None if among is None else among[among < len(self.roster.base)]

    def _matched(
        self, ask: Callable[[Engine, Ints | None], tuple[Ints, Ints]], among: Ints | None
    ) -> tuple[Ints, Ints]:
        """All answers as one: sorted within each message, nothing twice, nothing gone."""
        offsets, found = ask(self.base, self._in_base(among))
        extra = [np.empty(0, np.int64)]
        for level in self._above():
            at, hits = ask(level.engine, level.own(among))
            extra.append(self._pairs(at, level.positions[hits]))
        pairs = united(self._pairs(offsets, found), np.concatenate(extra))
        return as_lists(pairs, len(offsets) - 1)

    def _pairs(self, offsets: Ints, found: Ints) -> Ints:
        """Message and live position, ascending where the answer is."""
        live = self.roster.is_live(found)
        return pairs_of(rows_of(offsets)[live], found[live])

    def expressions(self) -> TableExpressions:
        engines = [self.base, *(level.engine for level in self._above())]
        return together([engine.expressions() for engine in engines], self.use)

    def stats(self, sample: Any, reduction: Reduction | None) -> Stats:
        """Those of the compacted table: only there it is known what covers what."""
        return self.compacted()[0].stats(sample, None)

    # ---- back to predicates

    def columns(self, interfaces: Any) -> ConstraintColumns:
        """The constraints of the interfaces that are there; `interfaces` names these."""
        base = self.roster.base
        parts = [(self.base.columns(base.array), np.arange(len(base), dtype=np.int32))]
        parts += [(level.columns(), level.positions) for level in (*self.levels, *self._fresh)]
        return joined(parts, self.roster.positions, interfaces)

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        wanted = list(interfaces)
        compiled = [i for i in wanted if i < len(self.roster.base)]
        known = dict.fromkeys(wanted, Predicate(()))
        known.update(zip(compiled, self.base.predicates(compiled), strict=True))
        for level in self.levels:
            own = [i for i in wanted if _holds(level.positions, i)]
            places = np.searchsorted(level.positions, own).tolist()
            for i, predicate in zip(own, level.engine.predicates(places), strict=True):
                known[i] |= predicate
        for position, predicate in self.recent:
            if position in known:
                known[position] |= predicate
        return (known[i] for i in wanted)


def _holds(positions: Ints, position: int) -> bool:
    at = int(np.searchsorted(positions, position))
    return at < len(positions) and int(positions[at]) == position


class Rebasing:
    """Brings what happened to a version since it was compacted onto the compacted one.

    Positions that were live move to their places in the new base, later ones follow behind it, and
    the levels that came later keep their engines. Nothing is compiled. Following costs what came
    since the last time, so it may be repeated while updates go on.
    """

    def __init__(self, old: UpdatedEngine, base: Engine, roster: Roster) -> None:
        self._old, self._base = old.roster, base
        self._line = VersionLine.over(roster.base)
        self._line.base.file()
        _ = self._line.base.listed, self._old.order  # made now, not while others wait

    def follow(self, current: UpdatedEngine) -> UpdatedEngine:
        """The version on the new base; `current` has the levels of the old one, or later ones."""
        old, line, roster = self._old, self._line, current.roster
        known = old.count - len(old.base)
        line.extend(roster.line.fresh[known + len(line.fresh) : roster.count - len(roster.base)])
        removed = np.flatnonzero(roster.gone[: roster.count] > old.sequence)
        sequences = roster.gone[removed]
        seen = sequences <= roster.sequence
        line.gone[self._moved(removed[seen])] = sequences[seen] - old.sequence
        line.sequence = roster.sequence - old.sequence
        levels = tuple(
            Level(
                level.engine, self._moved(level.positions), level.size, level.newest - old.sequence
            )
            for level in current.levels
            if level.newest > old.sequence
        )
        moved = self._moved(np.array([position for position, _ in current.recent], np.int64))
        recent = tuple(
            (position, predicate)
            for position, (_, predicate) in zip(moved.tolist(), current.recent, strict=True)
        )
        count = len(line.base) + len(line.fresh)
        gone = roster.removed - old.removed
        made = Roster(line, line.sequence, count, line.gone, gone)
        return UpdatedEngine(self._base, made, levels, recent, current.use)

    def _moved(self, positions: Ints) -> Ints:
        """Positions of the old line in the new one."""
        old = self._old
        order = old.order[np.minimum(positions, old.count - 1)] if old.count else positions
        later = positions - old.count + len(self._line.base)
        return np.where(positions < old.count, order, later).astype(np.int32)
