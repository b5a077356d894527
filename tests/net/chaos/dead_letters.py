"""Dead letters: what was rejected, or given up after its deliveries, and what brute force says of them.

Each message that an application rejects is a dead letter once. So is each one that it gives back every
time, to a subscription with `deliveries_max`. There a queue may give up others too: those that a client
was sent when it lost its connection count as delivered, though no application has seen them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import palio
from palio.net.client.subscription import Note
from tests.net.judgement import Answer, Draws, Id, Taken

DELIVERIES_MAX = 4

DeadLetter = tuple[str, Id]
"""The durable name, and the message."""


class Collector:
    """A subscription to dead letters: `dead_letter = 'c1-limited'`, or of all names that match."""

    def __init__(self, taken: Taken, draws: Draws) -> None:
        self.taken, self._draws = taken, draws
        self._predicate = palio.parse(taken.text)
        self.got: Counter[DeadLetter] = Counter()
        self.reasons: Counter[str] = Counter()
        self._changed: list[tuple[DeadLetter, str]] = []

    def came(self, note: Note, message: dict[str, object]) -> None:
        """`message`: the one that its body names."""
        told = dict(note.attributes)
        key = str(told["dead_letter"]), Id.of(note.body)
        self.got[key] += 1
        self.reasons[str(told["dead_reason"])] += 1
        original = {
            name.removeprefix("original."): value
            for name, value in told.items()
            if name.startswith("original.")
        }
        if original != message:
            self._changed.append((key, f"{told} of {message}"))

    def required(self, sources: Iterable[tuple[Taken, set[Id]]]) -> set[DeadLetter]:
        """Of subscriptions, with what each must have."""
        return {
            (taken.name, id)
            for taken, ids in sources
            if self.collects(taken)
            for id in taken.rejected | ids
            if self._must_die(taken, id)
        }

    def _must_die(self, taken: Taken, id: Id) -> bool:
        if self._draws.terms(id).is_short:  # it may have expired before
            return False
        return id in taken.rejected or self._draws.answer(taken, id) is Answer.NEVER

    def collects(self, taken: Taken) -> bool:
        return taken.is_durable and self._predicate.matches({"dead_letter": taken.name})

    def faults(self, required: set[DeadLetter], sources: Iterable[Taken]) -> dict[str, list[str]]:
        """Empty: each that had to die did, once, as it was, and no other."""
        by_name = {taken.name: taken for taken in sources}
        found = {
            "dead letters missing": [f"{key}" for key in sorted(required - self.got.keys())],
            "dead letters doubled": [f"{key}" for key, n in sorted(self.got.items()) if n > 1],
            "dead letters unwanted": [f"{key}" for key in sorted(self.got) if not self._may(key, by_name)],
            "dead letters changed": [f"{key}: {what}" for key, what in self._changed],
        }  # fmt: skip
        return {kind: those for kind, those in found.items() if those}

    def _may(self, key: DeadLetter, sources: dict[str, Taken]) -> bool:
        name, id = key
        taken = sources.get(name)
        if taken is None or not self.collects(taken):
            return False
        return id in taken.rejected or taken.deliveries_max > 0
