"""A disk that loses what was not committed when its process crashes.

    put, delete ──▶ pending ──begin──▶ under way ──end──▶ safe

Commits end in the order in which they began. Each is atomic, also for a crash in the middle of it:
all of it happened, or nothing. `get` and `scan` see everything that was put, safe or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class SimulatedDisk(Generic[T]):
    """An ordered map of names to values, with group commit."""

    def __init__(self) -> None:
        self.safe: dict[str, T] = {}
        self._now: dict[str, T] = {}
        self._pending: dict[str, T | None] = {}
        self._under_way: deque[dict[str, T | None]] = deque()

    def __len__(self) -> int:
        return len(self._now)

    @property
    def is_committing(self) -> bool:
        return bool(self._under_way)

    def get(self, key: str) -> T | None:
        return self._now.get(key)

    def scan(self, prefix: str) -> Iterator[tuple[str, T]]:
        for key in sorted((k for k in self._now if k.startswith(prefix)), key=str.encode):
            yield key, self._now[key]

    def put(self, key: str, value: T) -> None:
        self._now[key] = self._pending[key] = value

    def delete(self, key: str) -> None:
        self._now.pop(key, None)
        self._pending[key] = None

    def begin(self) -> None:
        """Start a commit of all that is pending."""
        self._under_way.append(self._pending)
        self._pending = {}

    def end(self) -> None:
        """The oldest commit under way is done."""
        for key, value in self._under_way.popleft().items():
            if value is None:
                self.safe.pop(key, None)
            else:
                self.safe[key] = value

    def crash(self, is_done: bool = False) -> None:
        """Lose all that is not safe. `is_done`: the oldest commit under way had just ended."""
        if is_done and self._under_way:
            self.end()
        self._pending = {}
        self._under_way.clear()
        self._now = dict(self.safe)
