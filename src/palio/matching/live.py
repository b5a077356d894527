"""A table that is updated while it is read: the one place in matching with mutable state.

    writers     update ── lock, microseconds ──▶ the next version
    readers     .table ── an attribute ─────────▶ the current version, never blocked
    threads     merging: levels into larger ones          swapped in when they are made
                compacting: a version into a new base     what came meanwhile is brought onto it

Both threads work on versions, which never change, and take the lock only to swap. While a version
is compacted, merging leaves its levels alone, so that later ones can be told from them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from palio.errors import InvalidValue, PalioError
from palio.matching.table import ForwardingTable
from palio.matching.updates import Rebasing, UpdatedEngine, due, merged
from palio.model.language import parse
from palio.model.predicate import Predicate

LEVELS_MAX = 64  # when merging falls behind so far, writers do it themselves


class LiveTable:
    """A forwarding table that takes updates, and compacts itself in the background.

    It compacts when what was added and removed is more than a `share` of the base, and more than
    `least`. Use it with `with`, or close it: it has two threads.

    >>> with LiveTable(ForwardingTable.compile({"ann": "x > 1"})) as live:
    ...     live.update(add={"bob": "x > 2"})
    ...     live.table.forward({"x": 3})
    ['ann', 'bob']
    """

    def __init__(self, table: ForwardingTable, *, share: float = 0.25, least: int = 4096) -> None:
        if share <= 0 or least < 0:
            raise InvalidValue(f"share must be above 0 and least at least 0: {share}, {least}")
        self._share, self._least = share, least
        self._changed = threading.Condition(threading.Lock())
        self._engine = table.versioned()
        self._table = table
        self._compacting_to = 0  # the last update that the version in compaction has
        self._compactions = 0
        self._failure: Exception | None = None
        self._is_closed = False
        self._engine.roster.base.file()
        self._threads = [
            threading.Thread(target=self._repeat, args=(is_due, work), daemon=True, name=name)
            for is_due, work, name in (
                (self._is_merge_due, self._merge, "palio-merging"),
                (self._is_compaction_due, self._compact, "palio-compacting"),
            )
        ]
        for thread in self._threads:
            thread.start()

    @property
    def table(self) -> ForwardingTable:
        """The current version; it stays as it is, whatever comes."""
        return self._table

    @property
    def compactions(self) -> int:
        """How often the table was compacted so far."""
        return self._compactions

    def update(
        self, add: Mapping[str, Predicate | str] | None = None, remove: Iterable[str] = ()
    ) -> ForwardingTable:
        """Make the next version, as `ForwardingTable.updated` does, and give it back.

        When the background failed since the last update, this one is not made, and the failure is
        raised.
        """
        parsed = {name: parse(p) for name, p in (add or {}).items()}
        with self._changed:
            if self._is_closed:
                raise PalioError("this live table is closed; make a new one of its last version")
            self._raise_failure()
            made = self._engine.changed(parsed, dict.fromkeys(remove))
            if len(made.levels) > LEVELS_MAX:
                old = due(made.levels, self._compacting_to)
                made = made.replaced(old, merged(made.roster, old)) if old else made
            self._put(made)
            return self._table

    def close(self) -> None:
        """End the threads; a compaction under way is finished first. Versions stay usable."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._raise_failure()

    def __enter__(self) -> LiveTable:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _put(self, engine: UpdatedEngine) -> None:
        """Make a version the current one; the lock is held."""
        self._engine = engine
        self._table = ForwardingTable(engine, engine.roster)
        if not engine.recent or self._is_compaction_due():  # there may be a new level
            self._changed.notify_all()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise PalioError(
                f"the table could not be compacted in the background: {failure}; nothing is lost, "
                "and the next update tries again"
            ) from failure

    # ---- the threads

    def _repeat(self, is_due: Callable[[], bool], work: Callable[[], None]) -> None:
        """Work whenever it is due, until closed; after a failure, when an update has raised it."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._is_closed or (self._failure is None and is_due())
                )
                if self._is_closed:
                    return
            try:
                work()
            except Exception as error:
                self._failure = error

    def _is_merge_due(self) -> bool:
        return bool(due(self._engine.levels, self._compacting_to))

    def _merge(self) -> None:
        with self._changed:
            roster, old = self._engine.roster, due(self._engine.levels, self._compacting_to)
        if not old:
            return
        new = merged(roster, old)
        with self._changed:
            current = set(map(id, self._engine.levels))
            if all(id(level) in current for level in old):  # no compaction came between
                self._put(self._engine.replaced(old, new))

    def _is_compaction_due(self) -> bool:
        roster = self._engine.roster
        changes = self._engine.additions + roster.removed
        return changes > max(self._least, self._share * len(roster.base))

    def _compact(self) -> None:
        with self._changed:
            self._put(self._engine.settled())
            version = self._engine
            self._compacting_to = version.roster.sequence
        try:
            rebasing = Rebasing(version, version.compacted())
            rebasing.follow(self._engine)  # most of it, while others still go on
            with self._changed:
                self._compacting_to = 0
                self._put(rebasing.follow(self._engine))
                self._compactions += 1
        finally:
            with self._changed:
                self._compacting_to = 0
                self._changed.notify_all()  # levels may have gathered
