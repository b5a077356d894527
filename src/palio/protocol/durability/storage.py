"""What a broker core needs of a store: a persistent map of keys to bytes.

    put, delete ──▶ pending ──(host: commit)──▶ safe
    get, scan       see everything, pending or not

An effect of the core asks its host to commit; the host commits everything pending at once (group
commit) and calls the core. A crash loses exactly the uncommitted changes: the stored state is always
the result of whole commits, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from palio.errors import InvalidFile

T = TypeVar("T")


class StoredEntries(Protocol):
    """What is there to read."""

    def get(self, key: str) -> bytes | None: ...

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Keys with this prefix, in the order of their UTF-8 bytes."""
        ...


class Store(StoredEntries, Protocol):
    def put(self, key: str, value: bytes) -> None: ...

    def delete(self, key: str) -> None:
        """Delete a key; no error if it does not exist."""
        ...


class DamagedStore(InvalidFile):
    """What was stored cannot be read back, or does not fit together; `key` says where, if one does.

    Whoever meets it must not go on: a broker that writes after it could make the damage worse.
    """

    def __init__(
        self, reason: str, *, key: str = "", path: str | Path | None = None, remedy: str = ""
    ) -> None:
        super().__init__(reason, path=path, remedy=remedy)
        self.key = key


def decoded(decoder: msgspec.msgpack.Decoder[T], key: str, value: bytes) -> T:
    """What is stored under a key; raises DamagedStore."""
    try:
        return decoder.decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedStore(f"the value of {key!r} cannot be decoded: {error}", key=key) from None
