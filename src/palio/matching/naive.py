"""The naive engine: evaluate every predicate. It is the oracle, so it stays tiny."""

from __future__ import annotations

from collections.abc import Sequence

from palio.model.message import Message
from palio.model.predicate import Predicate


class NaiveEngine:
    """Predicates in order; a match is a position in that order."""

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        self._predicates = tuple(predicates)

    def match(self, message: Message) -> list[int]:
        """The positions of the predicates that select the message, ascending."""
        return [i for i, p in enumerate(self._predicates) if p.matches(message)]
