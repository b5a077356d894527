"""Releases references to messages in parts: an ended queue may have had 100,000 of them.

    add(positions) ─▶ a part now, the rest when `release_some` is called

Nothing depends on when a reference is released, but that its segment can be freed. After a crash the
rest is forgotten: the head of the queue is gone, so nobody counts its references again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

RELEASED_AT_ONCE = 4000
"""Messages of one part."""


class Releases:
    """`release(positions)` removes a reference from each of these messages."""

    def __init__(self, release: Callable[[Sequence[int]], object]) -> None:
        self._release = release
        self._waiting: deque[Sequence[int]] = deque()

    def __bool__(self) -> bool:
        """Whether something waits."""
        return bool(self._waiting)

    def add(self, positions: Sequence[int]) -> None:
        self._waiting.append(positions)
        self.release_some()

    def release_some(self) -> None:
        """Release a part of what waits."""
        if self._waiting:
            positions = self._waiting.popleft()
            self._release(positions[:RELEASED_AT_ONCE])
            if len(positions) > RELEASED_AT_ONCE:
                self._waiting.appendleft(positions[RELEASED_AT_ONCE:])
