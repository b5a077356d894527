"""Upkeep of the interest table: what is new is compiled before a message waits for it, and merging and
compacting, which take long, are jobs of the host, one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palio.protocol.broker.effects import BackgroundJob
from palio.routing.interest_table import InterestTable

if TYPE_CHECKING:
    from palio.matching.versions.upkeep import UpkeepWork


class TableUpkeep:
    """`defers`: a host runs the jobs; otherwise the table does that work itself."""

    def __init__(self, table: InterestTable, *, defers: bool) -> None:
        self._table, self._defers = table, defers
        self._job: BackgroundJob[None] | None = None
        self._work: UpkeepWork | None = None
        self.version = 0
        """Of the table, when it was compiled last."""
        self.is_rough = False
        """The table has changed, and was not compacted since."""

    def settle(self) -> list[BackgroundJob[Any]]:
        """Compile what is new; the job that became due, if one did. Without changes since the last
        time, the table is compacted."""
        is_idle = self.version == self._table.version
        self.version = self._table.version
        self._table.settle()
        if not self._defers or self._job is not None:
            return []
        self.is_rough = not is_idle
        self._work = self._table.upkeep(idle=is_idle)
        if self._work is None:
            return []
        self._job = BackgroundJob(self._work.run)
        return [self._job]

    def finished(self, job: BackgroundJob[Any]) -> bool:
        """The host has run a job; False: it was none of the table."""
        if job is not self._job or self._work is None:
            return False
        self._job.result()  # a failure is a bug
        self._work.finish()
        self._job = self._work = None
        return True
