"""A disk for the store of a broker: what was not committed is gone after a crash.

    put, delete ──▶ pending ──begin──▶ under way ──end──▶ safe

A commit is atomic, also for a crash in the middle of it: all of it happened, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator


class Disk:
    def __init__(self) -> None:
        self.safe: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}
        self._pending: dict[str, bytes | None] = {}
        self._under_way: dict[str, bytes | None] = {}

    def __len__(self) -> int:
        return len(self._now)

    def get(self, key: str) -> bytes | None:
        return self._now.get(key)

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        for key in sorted((k for k in self._now if k.startswith(prefix)), key=str.encode):
            yield key, self._now[key]

    def put(self, key: str, value: bytes) -> None:
        self._now[key] = self._pending[key] = value

    def delete(self, key: str) -> None:
        self._now.pop(key, None)
        self._pending[key] = None

    def begin(self) -> None:
        """All that is pending is on its way to the disk."""
        assert not self._under_way, "one commit at a time"
        self._under_way, self._pending = self._pending, {}

    def end(self) -> None:
        for key, value in self._under_way.items():
            if value is None:
                self.safe.pop(key, None)
            else:
                self.safe[key] = value
        self._under_way = {}

    def crash(self, is_done: bool) -> None:
        """`is_done`: the commit that was under way had just happened."""
        if is_done:
            self.end()
        self._pending, self._under_way = {}, {}
        self._now = dict(self.safe)
