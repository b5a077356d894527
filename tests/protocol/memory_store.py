"""A store in memory that a crash treats like a disk: what was not committed is gone."""

from __future__ import annotations

from collections.abc import Iterator


class MemoryStore:
    """Commits go in two steps, as with a real disk: `begin` says which puts, `end` makes them safe."""

    def __init__(self) -> None:
        self.safe: dict[str, bytes] = {}
        self.puts = 0
        self._now: dict[str, bytes] = {}
        self._pending: dict[str, bytes | None] = {}
        self._under_way: dict[str, bytes | None] = {}

    def get(self, key: str) -> bytes | None:
        return self._now.get(key)

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        for key in sorted((k for k in self._now if k.startswith(prefix)), key=str.encode):
            yield key, self._now[key]

    def put(self, key: str, value: bytes) -> None:
        self.puts += 1
        self._now[key] = self._pending[key] = value

    def delete(self, key: str) -> None:
        self._now.pop(key, None)
        self._pending[key] = None

    def begin(self) -> None:
        assert not self._under_way, "one commit at a time"
        self._under_way, self._pending = self._pending, {}

    def end(self) -> None:
        for key, value in self._under_way.items():
            if value is None:
                self.safe.pop(key, None)
            else:
                self.safe[key] = value
        self._under_way = {}

    def commit(self) -> None:
        self.begin()
        self.end()

    def crash(self) -> None:
        """What was safe is all there is."""
        self._pending, self._under_way = {}, {}
        self._now = dict(self.safe)
