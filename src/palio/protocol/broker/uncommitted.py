"""Durable messages that are stored but not committed, each batch with its lookup result."""

from __future__ import annotations

from typing import TypeAlias

from palio.protocol.wire.batch import MessageBatch
from palio.routing.interest_table import InterestTable
from palio.routing.matches import Matches

Answered: TypeAlias = list[tuple[MessageBatch, Matches]]
"""Batches, each with its lookup result."""


class UncommittedMessages:
    """Durable messages that are stored but not committed, each batch with its lookup result.

    Results name interfaces by slots of the interest table. A slot that was retired before the oldest
    result was made occurs in none of them, so the table may reuse it.
    """

    def __init__(self, table: InterestTable) -> None:
        self._table = table
        self._stored: Answered = []
        self._since = 0
        """How many slots had been retired when the first answer in `_stored` was made."""
        self._sealed: dict[int, tuple[int, Answered]] = {}
        """By ticket, in the order of tickets."""

    def __len__(self) -> int:
        """The number of batches."""
        return len(self._stored) + sum(len(answered) for _, answered in self._sealed.values())

    def add(self, batch: MessageBatch, matches: Matches) -> None:
        """Add stored messages with their lookup result, made in this turn."""
        if not self._stored:
            self._since = self._table.retired
        self._stored.append((batch, matches))

    def seal(self, ticket: int) -> None:
        """The commit with this ticket covers what was stored so far."""
        if self._stored:
            self._sealed[ticket], self._stored = (self._since, self._stored), []

    def take(self, ticket: int) -> Answered:
        """The batches that the commit with this ticket covers, or an earlier one."""
        safe: Answered = []
        while self._sealed and (first := next(iter(self._sealed))) <= ticket:
            safe += self._sealed.pop(first)[1]
        return safe

    def reclaim(self) -> None:
        """Let the table reuse slots that occur in no result; no other results are in use."""
        retired = self._since if self._stored else self._table.retired
        for since, _ in self._sealed.values():
            retired = min(retired, since)
        self._table.reclaim(retired)
