"""Last values on the data path: checked and stamped on arrival, and kept when they are stored.

    PUBLISH, header `retain` ─▶ admit: is there a key? is there room? ─▶ stamped ─▶ publish ─┬─▶ queues, streams
                                      └─ no: rejected                                      ├─▶ LastValues here
                                                                                           └─▶ all other brokers

The broker of the publisher alone decides on the order of a value (wire/last_values.py); what others carry here
is taken as it is. Delayed messages get their stamp at their time. Batches without the header cost a search of
their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from palio.errors import InvalidValue
from palio.protocol.durability.last_values import LastValues, ValueRoom, value_of
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import Entry, MessageBatch, new_rows, rows_with_headers
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.last_values import (
    MARK_BYTES,
    is_about_last_values,
    key_of,
    may_be_retained,
    stamp_of,
    stamped,
    unstamped,
)
from palio.protocol.wire.message_headers import RETAIN, SIZE_MAX, body_of, headers_of, packed
from palio.routing.matches import Grouped


class Retaining:
    def __init__(self, me: str, values: LastValues, store: MessageStore, limits: Limits) -> None:
        self._me = me
        self.values = values
        self._store = store
        self._headers_max = min(limits.headers, SIZE_MAX)
        self.begin: Callable[[], None] = lambda: None
        """To be called when there is a value."""
        self.others: tuple[DurableSubscription, ...] = ()
        """Brokers that hold last values too, as those interested in all of them."""

    def admit(
        self, batch: MessageBatch, now_us: int
    ) -> tuple[MessageBatch, dict[int, InvalidValue]]:
        """The same messages of a client, with stamps; and those that cannot be last values, by row, with
        the reason."""
        if not may_be_retained(batch.data):
            return batch, {}
        entries: dict[int, Entry] = {}
        refused: dict[int, InvalidValue] = {}
        room = self.values.room()
        for row in rows_with_headers(batch):
            headers = headers_of(batch.payload(row))
            if not is_about_last_values(headers):
                continue
            try:
                entries[row] = self._stamped(batch, row, room, now_us)
            except InvalidValue as error:
                refused[row] = error
        if not entries:
            return batch, refused
        all_entries = [entries.get(row) or batch.entry(row) for row in range(batch.count)]
        return MessageBatch.of(all_entries, durable=batch.durable), refused

    def _stamped(self, batch: MessageBatch, row: int, room: ValueRoom, now_us: int) -> Entry:
        """A message of a client, with the stamp of its key if it is a last value."""
        entry = batch.entry(row)
        headers = headers_of(entry.payload)
        names = headers.get(RETAIN)
        if not isinstance(names, str):
            payload = packed(unstamped(headers), SIZE_MAX) + body_of(entry.payload)
            return entry._replace(payload=payload)
        if not self.values.is_on:
            raise InvalidValue(
                "this broker holds no last values: [limits] last_values is 0",
                remedy="publish it without retain, or ask the operator",
            )
        if not batch.durable:
            raise InvalidValue(
                "the last value of a key must be durable",
                remedy="publish it with durable=True, or without retain",
            )
        key = key_of(names, batch.message(row))
        block = packed(
            stamped(headers, self.values.next_time_us(key, now_us), key),
            max(0, self._headers_max - MARK_BYTES),
        )
        entry = entry._replace(payload=block + body_of(entry.payload))
        value = value_of(entry, self._me)
        if value is not None and not room.fits(value):
            raise InvalidValue(
                f"{len(self.values):,} last values of {self.values.bytes:,} bytes are here; this "
                "broker takes no more",
                remedy="forget keys that nobody needs (forget=True), let values expire, or ask the "
                "operator for a larger [limits] last_values or last_values_bytes",
            )
        return entry

    def publish(
        self, batch: MessageBatch, matches: Grouped[DurableSubscription], now_us: int
    ) -> int:
        """As `MessageStore.publish`, and what is stored is kept as last values here and at all others."""
        found = _last_values(batch)
        if not found:
            return self._store.publish(batch, matches, now_us)
        wanted = list(matches)
        for row in found:
            wanted[row] = (*wanted[row], *self.others)
        before = self._store.taken_number(batch.publisher(0))
        taken = self._store.publish(batch, Grouped.of(wanted), now_us)
        later = self._store.republishing.delayed.rows
        for row in new_rows(batch, before, taken):
            if row in found and row not in later:
                self._offer(batch.entry(row))
        return taken

    def _offer(self, entry: Entry) -> None:
        value = value_of(entry, self._me)
        if value is not None and self.values.offer(value):
            self.begin()

    def restamped(self, message: MessageBatch, now_us: int) -> MessageBatch:
        """A delayed message at its time: newer than what was published meanwhile."""
        if not may_be_retained(message.data):
            return message
        entry = message.entry(0)
        headers = headers_of(entry.payload)
        stamp = stamp_of(headers)
        if stamp is None:
            return message
        time_us = self.values.next_time_us(stamp.key, now_us)
        payload = packed(stamped(headers, time_us, stamp.key), SIZE_MAX) + body_of(entry.payload)
        return MessageBatch.of([entry._replace(payload=payload)], durable=True)

    def release(
        self, message: MessageBatch, matches: Sequence[DurableSubscription], now_us: int
    ) -> bool:
        """As `Republishing.release`, for a delayed message that may be a last value."""
        is_last = bool(_last_values(message))
        wanted = (*matches, *self.others) if is_last else tuple(matches)
        is_stored = self._store.republishing.release(message, wanted, now_us)
        if is_stored and is_last:
            self._offer(message.entry(0))
        return is_stored

    @property
    def deadline_us(self) -> int | None:
        """When to call `wake`."""
        return self.values.deadline_us

    def wake(self, now_us: int) -> None:
        """Do what is due."""
        self.values.wake(now_us)


def _last_values(batch: MessageBatch) -> set[int]:
    """The messages that are last values."""
    if not may_be_retained(batch.data):
        return set()
    rows = rows_with_headers(batch)
    return {row for row in rows if stamp_of(headers_of(batch.payload(row))) is not None}
