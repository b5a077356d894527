"""MessageBatch: one or many messages. Brokers use this one type from socket to socket.

    data     ... attributes payload ... attributes payload ...  bytes, as they came or were stored
    names    [route] publisher [route] publisher ...            in msgpack; often the same for all
    rows     number  time  text  payload  end  route  name  name end       an array, a row a message

A batch refers to bytes that a reader owns; slices share them. Attributes are a JSON object
(UTF-8), which the matching kernels read; a payload is message headers and a body
(message_headers.py), and no broker looks into a body. The routing header of a forwarded message
(`route`) lies just before its publisher.

All messages of a batch are durable, or none is. Large batches need no Python code per message. Only
this file and `encode.py` decide when Python is faster than a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from palio.model.message import Message
from palio.protocol.wire.layout import (
    COLUMNS,
    END,
    NAME,
    NAME_END,
    NUMBER,
    PAYLOAD,
    ROUTE,
    TEXT,
    TIME,
    BatchArrays,
)
from palio.protocol.wire.message_headers import NO_HEADERS, SIZE_BYTES, body_of, expiry, not_before

KERNEL_MIN = 16
"""For fewer messages, Python is faster than a kernel."""
JOINED_MAX = 64
"""Batches with fewer messages are joined before the lookup."""
_COMMON_BYTES_MAX = 64
OVERHEAD_BYTES = 40
"""Bytes that each message counts in bounds besides attributes and payload."""

_encode = msgspec.msgpack.Encoder().encode
_name_decoder = msgspec.msgpack.Decoder(str)


@cache
def kernels() -> ModuleType:
    """The kernels, loaded when they are first needed."""
    from palio.protocol.wire import kernels

    return kernels


class Entry(NamedTuple):
    """One message, as Python values."""

    publisher: str
    number: int
    time: int
    attributes: bytes
    payload: bytes
    """Message headers and body."""
    route: bytes = b""


class MessageBatch:
    """Messages in the order in which they came.

    >>> batch = MessageBatch.of([Entry("ann", 1, 0, b'{"x": 1}', b"\\0\\0hello")])
    >>> len(batch), batch.attributes(0), batch.body(0), batch.publishers()
    (1, b'{"x": 1}', b'hello', ['ann'])
    """

    __slots__ = (
        "_column", "_messages", "_publishers", "_rows_with_headers", "count", "data", "durable", "names", "rows",
    )  # fmt: skip

    def __init__(self, data: bytes, names: bytes, rows: Any, durable: bool) -> None:
        self.data = data
        self.names = names
        self.rows = rows
        self.count = len(rows)
        self.durable = durable
        self._column: Any = None
        self._messages: dict[int, Message] | None = None
        self._publishers: list[str] | None = None
        self._rows_with_headers: list[int] | None = None

    @classmethod
    def of(cls, entries: Iterable[Entry], *, durable: bool = False) -> MessageBatch:
        """A batch of Python values."""
        data, names, rows = bytearray(), bytearray(), []
        for publisher, number, time, attributes, payload, route in entries:
            text, begin = len(data), len(names)
            data += attributes
            data += payload
            names += route
            name = len(names)
            names += _encode(publisher)
            middle = text + len(attributes)
            rows.append((number, time, text, middle, len(data), begin, name, len(names)))
        return cls(bytes(data), bytes(names), _array(rows), durable)

    @classmethod
    def concat(cls, batches: Sequence[MessageBatch]) -> MessageBatch:
        """One batch of several, which are all durable, or none is."""
        if len(batches) == 1:
            return batches[0]
        if sum([batch.count for batch in batches]) < KERNEL_MIN * len(batches):  # most are small
            return cls.of([entry for b in batches for entry in b], durable=batches[0].durable)
        rows = np.concatenate([batch.rows for batch in batches])
        data, names = [], []
        at = data_at = names_at = 0
        for batch in batches:
            own = rows[at : at + batch.count]
            begin, end = int(own[:, TEXT].min()), int(own[:, END].max())
            first, last = int(own[:, ROUTE].min()), int(own[:, NAME_END].max())
            own[:, TEXT:ROUTE] += data_at - begin
            own[:, ROUTE:] += names_at - first
            data.append(batch.data[begin:end])
            names.append(batch.names[first:last])
            at += batch.count
            data_at += end - begin
            names_at += last - first
        return cls(b"".join(data), b"".join(names), rows, batches[0].durable)

    def sign(self, publisher: str, latest_us: int) -> None:
        """Set the publisher, which new messages do not name, and bound their times: no publisher's clock
        is ahead of `latest_us`."""
        self.names = _encode(publisher)
        self.rows[:, ROUTE:NAME_END] = 0
        self.rows[:, NAME_END] = len(self.names)
        self._publishers = [publisher] * len(self.rows)
        np.minimum(self.rows[:, TIME], latest_us, out=self.rows[:, TIME])

    # ---- reading

    def __len__(self) -> int:
        return self.count

    def number(self, row: int) -> int:
        return int(self.rows[row, NUMBER])

    def numbers(self) -> list[int]:
        found: list[int] = self.rows[:, NUMBER].tolist()
        return found

    def time(self, row: int) -> int:
        return int(self.rows[row, TIME])

    def attributes(self, row: int) -> bytes:
        return self.data[self.rows[row, TEXT] : self.rows[row, PAYLOAD]]

    def body(self, row: int) -> bytes:
        return body_of(self.payload(row))

    def payload(self, row: int) -> bytes:
        return self.data[self.rows[row, PAYLOAD] : self.rows[row, END]]

    def publishers(self) -> list[str]:
        """The publisher of each message."""
        if self._publishers is None:
            names, begin = self.names, self.rows[:, NAME]
            if len(begin) and (begin == begin[0]).all():
                name = names[begin[0] : self.rows[0, NAME_END]]
                self._publishers = [_name_decoder.decode(name)] * len(begin)
            else:
                found = [names[a:b] for a, b in self.rows[:, NAME:].tolist()]
                decoded = {name: _name_decoder.decode(name) for name in set(found)}
                self._publishers = [decoded[name] for name in found]
        return self._publishers

    def publisher_ends(self) -> list[tuple[str, int]]:
        """The runs of messages with the same publisher: the publisher, and where the run ends."""
        publishers = self.publishers()
        if publishers.count(publishers[0]) == len(publishers):
            return [(publishers[0], len(publishers))]
        changes = enumerate(pairwise(publishers), 1)
        ends = [(before, row) for row, (before, after) in changes if before != after]
        return [*ends, (publishers[-1], len(publishers))]

    def publisher(self, row: int) -> str:
        return self.publishers()[row]

    def message(self, row: int) -> Message:
        """The attributes of a message, parsed once; raises InvalidValue if they are not an object."""
        if self._messages is None:
            self._messages = {}
        message = self._messages.get(row)
        if message is None:
            message = self._messages[row] = Message.from_json(self.attributes(row))
        return message

    def column(self) -> Any:
        """The attributes as an Arrow column of JSON texts."""
        if self._column is None:
            import pyarrow as pa

            rows = self.rows
            size = int((rows[:, PAYLOAD] - rows[:, TEXT]).sum())
            blob, begin = np.empty(size, np.uint8), np.empty(len(rows) + 1, np.int32)
            kernels().gather(np.frombuffer(self.data, np.uint8), rows, blob, begin)
            self._column = pa.StringArray.from_buffers(
                len(rows), pa.py_buffer(begin), pa.py_buffer(blob)
            )
        return self._column

    def sizes(self) -> list[int]:
        """The bytes that each message counts in bounds."""
        rows = self.rows
        sizes = rows[:, END] - rows[:, TEXT] + rows[:, NAME_END] - rows[:, NAME] + OVERHEAD_BYTES
        found: list[int] = sizes.tolist()
        return found

    def routes(self) -> list[tuple[bytes, list[int]]]:
        """The different routing headers, each with the rows that have it."""
        if len(self.rows) == 1:
            return [(self.names[self.rows[0, ROUTE] : self.rows[0, NAME]], [0])]
        found: dict[bytes, list[int]] = {}
        for row, (begin, end) in enumerate(self.rows[:, ROUTE:NAME_END].tolist()):
            found.setdefault(self.names[begin:end], []).append(row)
        return list(found.items())

    def entry(self, row: int) -> Entry:
        """A message as Python values."""
        number, time, text, payload, end, route, name, _ = self.rows[row].tolist()
        data, publisher = self.data, self.publishers()[row]
        return Entry(
            publisher, number, time, data[text:payload], data[payload:end], self.names[route:name]
        )

    def __iter__(self) -> Iterator[Entry]:
        data, names = self.data, self.names
        for publisher, row in zip(self.publishers(), self.rows.tolist(), strict=True):
            number, time, text, payload, end, route, name, _ = row
            yield Entry(
                publisher, number, time, data[text:payload], data[payload:end], names[route:name]
            )

    def ascends(self, after: int) -> bool:
        """Is each number larger than the one before, and the first larger than `after`?"""
        numbers = self.rows[:, NUMBER]
        return bool(numbers[0] > after and (numbers[1:] > numbers[:-1]).all())

    # ---- parts

    def slice(self, begin: int, end: int) -> MessageBatch:
        """The messages from one row to another; the bytes are shared."""
        if begin == 0 and end >= len(self.rows):
            return self
        return MessageBatch(self.data, self.names, self.rows[begin:end], self.durable)

    def pick(self, rows: Sequence[int]) -> MessageBatch:
        """Some messages; the bytes are shared, and so are messages that were parsed."""
        if len(rows) == len(self.rows) and list(rows) == list(range(len(rows))):
            return self
        chosen = self.rows[np.array(rows, np.int64)]
        made = MessageBatch(self.data, self.names, chosen, self.durable)
        parsed = self._messages
        if parsed:
            made._messages = {i: parsed[row] for i, row in enumerate(rows) if row in parsed}
        return made

    def compact(self) -> MessageBatch:
        """The same messages without the bytes of others, if those are more than half of all."""
        rows = self.rows
        if 2 * int((rows[:, END] - rows[:, TEXT]).sum()) >= len(self.data):
            return self
        return MessageBatch.of(self, durable=self.durable)

    def arrays(self) -> BatchArrays:
        """The batch as kernels take it."""
        return BatchArrays(
            np.frombuffer(self.data, np.uint8), np.frombuffer(self.names, np.uint8), self.rows
        )


def _array(rows: Sequence[tuple[int, ...]]) -> Any:
    return np.array(rows, np.int64).reshape(len(rows), COLUMNS)


def rows_with_headers(batch: MessageBatch) -> list[int]:
    """The messages that have headers, and those whose payload is cut off. Several parts ask."""
    if batch._rows_with_headers is None:
        batch._rows_with_headers = _find_headers(batch)
    return batch._rows_with_headers


def _find_headers(batch: MessageBatch) -> list[int]:
    rows, data, found = batch.rows, batch.data, list[int]()
    if batch.count < KERNEL_MIN:
        for row, (begin, end) in enumerate(rows[:, PAYLOAD : END + 1].tolist()):
            if data[begin : min(begin + SIZE_BYTES, end)] != NO_HEADERS:
                found.append(row)
        return found
    first, view = rows[:, PAYLOAD], np.frombuffer(data, np.uint8)
    last = len(view) - 1
    sizes = view[np.minimum(first, last)] | view[np.minimum(first + 1, last)]
    found += np.flatnonzero((sizes != 0) | (rows[:, END] < first + SIZE_BYTES)).tolist()
    return found


def header_blocks(batch: MessageBatch) -> dict[bytes, list[int]]:
    """The different headers in a batch as they stand before the bodies, each with the rows that have it. Those
    that are cut off are shorter than they say."""
    rows = rows_with_headers(batch)
    if len(rows) >= KERNEL_MIN and (common := _common_headers(batch, rows)):
        return {common: rows}
    found: dict[bytes, list[int]] = {}
    data, parts = batch.data, batch.rows[:, PAYLOAD : END + 1].tolist()
    for row in rows:
        begin, end = parts[row]
        stop = begin + SIZE_BYTES + int.from_bytes(data[begin : begin + SIZE_BYTES], "little")
        found.setdefault(data[begin : min(stop, end)], []).append(row)
    return found


def _common_headers(batch: MessageBatch, rows: list[int]) -> bytes:
    """The headers of these rows, if all have the same short ones; else nothing."""
    begin, end = batch.rows[rows, PAYLOAD], batch.rows[rows, END]
    first = int(begin[0])
    size = SIZE_BYTES + int.from_bytes(batch.data[first : first + SIZE_BYTES], "little")
    if size > _COMMON_BYTES_MAX or int((end - begin).min()) < size:
        return b""
    view = np.frombuffer(batch.data, np.uint8)
    blocks = view[begin[:, None] + np.arange(size)]
    return batch.data[first : first + size] if (blocks == blocks[0]).all() else b""


def delays(batch: MessageBatch, now_us: int) -> dict[int, int]:
    """The messages that are to be published later, by row, each with its instant."""
    if not rows_with_headers(batch):
        return {}
    found = {}
    for headers, rows in header_blocks(batch).items():
        instant = not_before(headers)
        if instant > now_us:
            found.update(dict.fromkeys(rows, instant))
    return dict(sorted(found.items()))


def expiries(batch: MessageBatch) -> dict[int, int]:
    """The messages that expire, by row, each with its instant."""
    if not rows_with_headers(batch):
        return {}
    found = {}
    for headers, rows in header_blocks(batch).items():
        instant = expiry(headers)
        if instant:
            found.update(dict.fromkeys(rows, instant))
    return dict(sorted(found.items()))


def joined(batches: list[MessageBatch]) -> Iterator[MessageBatch]:
    """Large batches unchanged, small ones joined, in their order."""
    small: list[MessageBatch] = []
    for batch in batches:
        if batch.count >= JOINED_MAX:
            if small:
                yield MessageBatch.concat(small)
                small = []
            yield batch
        else:
            small.append(batch)
    if small:
        yield MessageBatch.concat(small)


def new_rows(batch: MessageBatch, last: int, count: int) -> Any:
    """Of the first `count` rows, those whose number is larger than all before."""
    if count == batch.count and batch.ascends(last):
        return range(count)
    rows = []
    for row, number in enumerate(batch.numbers()[:count]):
        if number > last:
            last = number
            rows.append(row)
    return rows
