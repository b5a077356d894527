"""Publishers of durable messages, and the last number that is stored of each.

    store/p/<publisher>   number, when it last published

A publisher is a session of a client (wire/publishers.py). Its numbers grow. A number that is not larger
than the last is a duplicate, so each (publisher, number) is stored once. Checkpoints put the rows; until
then the numbers are in the commit records. The table is bounded: a checkpoint removes publishers that were
silent for long, and the longest silent ones of an identity that has very many.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from palio.protocol.durability import keys
from palio.protocol.durability.sequence import encode
from palio.protocol.durability.storage import Store, decoded
from palio.protocol.wire.publishers import identity_of

PUBLISHERS_MAX = 10_000
"""Of one identity."""


class PublisherRow:
    """`number` is the last accepted number, `safe` the last committed one."""

    __slots__ = ("heard_us", "name", "number", "safe")

    def __init__(self, name: str, number: int, heard_us: int) -> None:
        self.name = name
        self.number = number
        self.safe = number
        self.heard_us = heard_us


_row_decoder = msgspec.msgpack.Decoder(tuple[int, int])


class PublisherTable:
    """`rows` has the known publishers, by name."""

    def __init__(self, store: Store, silence_us: int) -> None:
        self._store = store
        self._silence_us = silence_us
        self.rows: dict[str, PublisherRow] = {}
        self._expires_us = 0
        self._limited = PUBLISHERS_MAX  # the number of rows when no identity had too many
        for key, value in store.scan(keys.PUBLISHERS):
            name = key[len(keys.PUBLISHERS) :]
            self.rows[name] = PublisherRow(name, *decoded(_row_decoder, key, value))

    def __len__(self) -> int:
        return len(self.rows)

    def restore(self, name: str, number: int, heard_us: int) -> PublisherRow | None:
        """Take a number from a commit record. None: the row has it already."""
        row = self.row(name)
        if number <= row.number:
            return None
        row.number = row.safe = number
        row.heard_us = heard_us
        return row

    def safe(self, name: str) -> int:
        row = self.rows.get(name)
        return row.safe if row else 0

    def row(self, name: str) -> PublisherRow:
        row = self.rows.get(name)
        if row is None:
            row = self.rows[name] = PublisherRow(name, 0, 0)
        return row

    def can_expire(self, now_us: int) -> bool:
        return now_us >= self._expires_us and bool(self._silent(now_us))

    def put(self, rows: Iterable[PublisherRow], now_us: int) -> None:
        """Put the rows that changed, delete those that are too old."""
        for row in rows:
            self._store.put(keys.PUBLISHERS + row.name, encode((row.number, row.heard_us)))
        if len(self.rows) > self._limited + PUBLISHERS_MAX // 10:
            self._limit()
        if now_us < self._expires_us:
            return
        self._expires_us = now_us + self._silence_us // 64
        for row in self._silent(now_us):
            self._remove(row)

    def _limit(self) -> None:
        """Remove the longest silent publishers of identities that have too many."""
        own: dict[str, list[PublisherRow]] = {}
        for row in self.rows.values():
            own.setdefault(identity_of(row.name), []).append(row)
        for rows in own.values():
            settled = sorted(
                (row for row in rows if row.safe == row.number), key=lambda row: row.heard_us
            )
            for row in settled[: max(0, len(rows) - PUBLISHERS_MAX)]:
                self._remove(row)
        self._limited = len(self.rows)

    def _remove(self, row: PublisherRow) -> None:
        del self.rows[row.name]
        self._store.delete(keys.PUBLISHERS + row.name)

    def _silent(self, now_us: int) -> list[PublisherRow]:
        over_us = now_us - self._silence_us
        return [
            row for row in self.rows.values() if row.heard_us <= over_us and row.safe == row.number
        ]
