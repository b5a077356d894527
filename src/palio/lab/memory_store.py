"""A store in memory, for brokers that never restart: benchmarks and the walk of a message."""

from __future__ import annotations

from collections.abc import Iterator


class MemoryStore:
    """Pairs of key and value; a commit is done at once."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self._values.get(key)

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        return iter(sorted((k, v) for k, v in self._values.items() if k.startswith(prefix)))

    def put(self, key: str, value: bytes) -> None:
        self._values[key] = value

    def delete(self, key: str) -> None:
        self._values.pop(key, None)
