"""What a broker needs of a disk: a map of names to bytes that survives.

    put, delete ──▶ pending ──(host: commit)──▶ safe
    get, scan       see everything, pending or not

The broker says by its effects when something must be safe before it goes on; the host commits all
that is pending in one go (group commit) and tells it. A crash loses what was not committed, and
all of that: what is safe is always the result of whole commits, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Store(Protocol):
    def get(self, key: str) -> bytes | None: ...

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Keys with this prefix, in the order of their UTF-8 bytes."""
        ...

    def put(self, key: str, value: bytes) -> None: ...

    def delete(self, key: str) -> None:
        """Nothing happens when it is not there."""
        ...
