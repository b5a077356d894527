"""The checksum that every stored value carries, whichever store holds it.

    value ‖ CRC-32 of key and value, 4 bytes

The key is part of it: a value that lies under another key is damaged too. Values get their checksum
when they are committed and lose it when they are read; nobody above the stores sees it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from zlib import crc32

from palio.net.storage.store import StoreDamaged

CHECKSUM_BYTES: Final = 4


def with_checksum(key: str, value: bytes) -> bytes:
    """What is stored under a key.

    >>> without_checksum("a", with_checksum("a", b"value"), "broker.sqlite")
    b'value'
    """
    return value + crc32(value, crc32(key.encode())).to_bytes(CHECKSUM_BYTES, "big")


def without_checksum(key: str, stored: object, place: str | Path) -> bytes:
    """The value; raises StoreDamaged, which names the key and the place (a file, a table).

    `stored` is what the database gave, which may be of any type if bits of it have flipped.
    """
    if isinstance(stored, bytes) and len(stored) >= CHECKSUM_BYTES:
        value, checksum = stored[:-CHECKSUM_BYTES], stored[-CHECKSUM_BYTES:]
        if crc32(value, crc32(key.encode())) == int.from_bytes(checksum, "big"):
            return value
    raise StoreDamaged(
        f"the value of {key!r} is damaged: its checksum is wrong", key=key, path=place
    )
