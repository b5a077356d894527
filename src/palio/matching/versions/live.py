"""A table that is updated while it is read: the one place in matching with threads.

    writers     update ── lock, microseconds ──▶ the next version
    readers     .table ── an attribute ─────────▶ the current version, never blocked
    threads     merging: levels into larger ones          swapped in when they are made
                compacting: a version into a new base     what came meanwhile is brought onto it

Both threads work on versions, which never change, and take the lock only to begin and to swap
(upkeep.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from palio.errors import InvalidValue, PalioError
from palio.matching.table import ForwardingTable
from palio.matching.versions.upkeep import MaintainedTable, UpkeepWork
from palio.model.language import parse
from palio.model.predicate import Predicate


class LiveTable:
    """A forwarding table that takes updates, and compacts itself in the background.

    It compacts when what was added and removed is more than a `share` of the base, and more than
    `least`. Use it with `with`, or close it: it has two threads.

    >>> with LiveTable(ForwardingTable.compile({"ann": "x > 1"})) as live:
    ...     version = live.update(add={"bob": "x > 2"})
    ...     live.table.forward({"x": 3})
    ['ann', 'bob']
    """

    def __init__(self, table: ForwardingTable, *, share: float = 0.25, least: int = 4096) -> None:
        if share <= 0 or least < 0:
            raise InvalidValue(f"share must be above 0 and least at least 0: {share}, {least}")
        self._changed = threading.Condition(threading.Lock())
        self._maintained = MaintainedTable(table, share, least)
        self._failure: Exception | None = None
        self._is_closed = False
        maintained = self._maintained
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,), daemon=True, name=name)
            for work, name in (
                (maintained.merge, "palio-merging"),
                (maintained.compaction, "palio-compacting"),
            )
        ]
        for thread in self._threads:
            thread.start()

    @property
    def table(self) -> ForwardingTable:
        """The current version; it stays as it is, whatever comes."""
        return self._maintained.table

    @property
    def compactions(self) -> int:
        """How often the table was compacted so far."""
        return self._maintained.compactions

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
            made = self._maintained.update(parsed, remove)
            if self._is_work_due():
                self._changed.notify_all()
            return made

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

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise PalioError(
                f"the table could not be compacted in the background: {failure}; nothing is lost, "
                "and the next update tries again"
            ) from failure

    # ---- the threads

    def _is_work_due(self) -> bool:
        return self._maintained.is_merge_due or self._maintained.is_compaction_due

    def _repeat(self, next_work: Callable[[], UpkeepWork | None]) -> None:
        """Work whenever it is due, until closed; after a failure, when an update has raised it."""
        while True:
            with self._changed:
                work = self._wait_for(next_work)
            if work is None:
                return
            try:
                work.run()
            except Exception as error:
                self._end(work.abandon, error)
            else:
                self._end(work.finish, None)

    def _wait_for(self, next_work: Callable[[], UpkeepWork | None]) -> UpkeepWork | None:
        """The next work; None: the table is closed. The lock is held."""
        while not self._is_closed:
            work = next_work() if self._failure is None else None
            if work is not None:
                return work
            self._changed.wait()
        return None

    def _end(self, end: Callable[[], None], failure: Exception | None) -> None:
        with self._changed:
            end()
            self._failure = failure or self._failure
            self._changed.notify_all()  # levels may have gathered
