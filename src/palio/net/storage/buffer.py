"""Changes that wait in memory for their commit: by key, and in key order for scans.

Keys are ordered by code points, which is the order of their UTF-8 bytes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

from palio.errors import InvalidValue

Changes: TypeAlias = dict[str, bytes | None]
"""By key; None: the key is deleted."""


class WriteBuffer:
    __slots__ = ("_ordered", "changes", "size")

    def __init__(self) -> None:
        self.changes: Changes = {}
        self.size = 0
        """Bytes of keys and values that were put, including those overwritten since."""
        self._ordered: list[str] = []

    def put(self, key: str, value: bytes) -> None:
        if not key.isascii():
            _check_key(key)
        self.changes[key] = value
        self.size += len(key) + len(value)

    def delete(self, key: str) -> None:
        self.changes[key] = None
        self.size += len(key)

    def scan(self, after: str, prefix: str) -> Iterator[tuple[str, bytes | None]]:
        """The changes of keys that have this prefix and are larger than `after`, in order."""
        ordered, changes = self._ordered, self.changes
        if len(ordered) != len(changes):
            # No key ever leaves: the new ones are the last. A sorted list and a tail sort fast.
            ordered = [*ordered, *islice(changes, len(ordered), None)]
            ordered.sort()
            self._ordered = ordered
        at = bisect_right(ordered, after) if after else bisect_left(ordered, prefix)
        while at < len(ordered) and ordered[at].startswith(prefix):
            yield ordered[at], changes[ordered[at]]
            at += 1


def _check_key(key: str) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"the key {key!r} is not valid Unicode and cannot be stored") from None


def after_all(prefix: str) -> str | None:
    """The least text that is larger than every text with this prefix; None: there is none.

    >>> after_all("queue/")
    'queue0'
    """
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if following == 0xD800:  # surrogates are not characters
        following = 0xE000
    return kept[:-1] + chr(following)
