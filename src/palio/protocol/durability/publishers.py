"""Publishers of durable messages, and the last number that is stored of each.

    p/<publisher>   number, when it was last heard

Numbers of a publisher grow; what is not larger than its last is there already, so each (publisher,
number) is stored once. Who was silent for long is forgotten, so that the table does not grow for
ever. Rows are put now and then; between that, numbers are in the records of the ledger.
"""

from __future__ import annotations

import msgspec

from palio.protocol.durability.ledger import encode
from palio.protocol.store import Store


class Publisher:
    """`number` is the last one that was taken, `safe` the last one that is committed."""

    __slots__ = ("heard_us", "name", "number", "safe")

    def __init__(self, name: str, number: int, heard_us: int) -> None:
        self.name = name
        self.number = number
        self.safe = number
        self.heard_us = heard_us


_row_decoder = msgspec.msgpack.Decoder(tuple[int, int])


class Publishers:
    def __init__(self, store: Store, prefix: str, silence_us: int) -> None:
        self._store = store
        self._prefix = f"{prefix}p/"
        self._silence_us = silence_us
        self._rows: dict[str, Publisher] = {}
        self._loose: dict[str, Publisher] = {}
        self._expires_us = 0
        for key, value in store.scan(self._prefix):
            name = key[len(self._prefix) :]
            self._rows[name] = Publisher(name, *_row_decoder.decode(value))

    def __len__(self) -> int:
        return len(self._rows)

    def restore(self, name: str, number: int, heard_us: int) -> None:
        """A number from a record, which may go before the row is put again."""
        row = self.row(name)
        if number > row.number:
            row.number = row.safe = number
            self.touch(row, heard_us)

    def safe(self, name: str) -> int:
        row = self._rows.get(name)
        return row.safe if row else 0

    def row(self, name: str) -> Publisher:
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = Publisher(name, 0, 0)
        return row

    def touch(self, row: Publisher, now_us: int) -> None:
        """It has a new number."""
        row.heard_us = now_us
        self._loose[row.name] = row

    def can_expire(self, now_us: int) -> bool:
        return now_us >= self._expires_us and bool(self._silent(now_us))

    def settle(self, now_us: int) -> None:
        """Put the rows that changed, delete those that are too old."""
        for name, row in self._loose.items():
            self._store.put(self._prefix + name, encode((row.number, row.heard_us)))
        self._loose.clear()
        if now_us < self._expires_us:
            return
        self._expires_us = now_us + self._silence_us // 64
        for row in self._silent(now_us):
            del self._rows[row.name]
            self._store.delete(self._prefix + row.name)

    def _silent(self, now_us: int) -> list[Publisher]:
        over_us = now_us - self._silence_us
        return [
            row for row in self._rows.values() if row.heard_us <= over_us and row.safe == row.number
        ]
