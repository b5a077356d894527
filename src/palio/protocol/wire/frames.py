"""Frames: how anything travels over a connection.

    u32 size      bytes that follow
    u8  kind
    ┌ CONTROL ──────────────────┐  ┌ PUBLISH, DELIVER, FORWARD, CARRY ───────────────────────────┐
    │ control message (msgpack) │  │ u32 header  u32 attributes │ header │ attributes │ payload  │
    └───────────────────────────┘  └─────────────────────────────────────────────────────────────┘

All numbers are little-endian. Control messages are requests, answers and link states (control.py).
The other frames carry a message: a header (headers.py), the attributes as a JSON object (UTF-8),
which the matching kernels read, and a payload: message headers and an opaque body
(message_headers.py). A broker forwards attributes and payload unchanged.

A `FrameReader` cuts the bytes of a connection into control messages and message frames; with
`batches`, frames of a kind that come together become one MessageBatch (`scan_publish`,
`scan_forward`). A batch ends where a frame of another kind begins, where the data ends, or where the
flag `durable` changes. Python reads small data, kernels read large data; a frame that a kernel cannot
read is read by Python, which raises the error if it is invalid.

Invalid data raises `BrokenFrame`; the reader must not be used after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

import msgspec
import numpy as np

from palio.errors import InvalidValue, PalioError
from palio.protocol.wire.batch import MessageBatch, kernels
from palio.protocol.wire.control import ControlMessage
from palio.protocol.wire.headers import (
    CarryHeader,
    DeliverHeader,
    ForwardHeader,
    Header,
    PublishHeader,
)
from palio.protocol.wire.layout import COLUMNS, END, NO, PREFIX, TEXT
from palio.protocol.wire.message_headers import (
    NO_HEADERS,
    Headers,
    body_of,
    headers_of,
    payload_bytes,
)

SIZE = Struct("<IB")
LENGTHS = Struct("<II")
_PREFIX = Struct("<IBII")
SIZE_BYTES = 4
BATCH_MAX = 8192
"""Messages of one batch."""
KERNEL_BYTES_MIN = 4096
"""For fewer bytes, Python is faster than a kernel."""


class BrokenFrame(PalioError):
    """Bytes that are not a frame, or a frame over the limit."""


class FrameKind(IntEnum):
    CONTROL = 0
    PUBLISH = 1
    """From a client: a new message."""
    DELIVER = 2
    """To a client: a message for its subscriptions."""
    FORWARD = 3
    """Between brokers: a live message, best effort."""
    CARRY = 4
    """Between brokers: a message that its origin keeps until all targets have stored it."""


class MessageFrame(NamedTuple):
    """A frame that carries a message."""

    header: Header
    attributes: bytes
    payload: bytes

    @property
    def body(self) -> bytes:
        return body_of(self.payload)

    @property
    def headers(self) -> Headers:
        """The message headers; empty if they cannot be read."""
        return headers_of(self.payload)


class Limits(msgspec.Struct, frozen=True):
    """The most bytes of each part of a frame."""

    control: int = 16 << 20
    header: int = 64 << 10
    attributes: int = 64 << 10
    body: int = 4 << 20
    headers: int = 16 << 10
    """Of the message headers."""
    frame: int = 0
    """The most bytes of a frame after its size; computed from the others."""
    message: int = 0
    """The same of a frame that carries a message."""
    payload: int = 0
    """The most bytes of message headers and body together; computed too."""

    def check(self, attributes: bytes, body: bytes) -> None:
        """Raise InvalidValue for a message that is too large to be sent."""
        if len(attributes) > self.attributes or len(body) > self.body:
            raise InvalidValue(
                f"a message with attributes of {len(attributes)} and a body of {len(body)} bytes; "
                f"the most are {self.attributes} and {self.body}: "
                "cut it up, or keep the data elsewhere and publish where it is"
            )

    def __post_init__(self) -> None:
        payload = payload_bytes(self.headers, self.body)
        message = 1 + LENGTHS.size + self.header + self.attributes + payload
        msgspec.structs.force_setattr(self, "payload", payload)
        msgspec.structs.force_setattr(self, "message", message)
        msgspec.structs.force_setattr(self, "frame", max(1 + self.control, message))


BEFORE_HELLO = Limits(control=16 << 10, header=0, attributes=0, body=0, headers=0)
"""Limits before the handshake."""

_DEFAULT = Limits()

BatchScan = Callable[[bytes, int, Limits], tuple[MessageBatch, int]]
"""Reads the batch that begins at a place in the data; also gives where the batch ends."""

_encoder = msgspec.msgpack.Encoder()
_control_decoder: msgspec.msgpack.Decoder[ControlMessage] = msgspec.msgpack.Decoder(ControlMessage)
_KINDS: dict[type, int] = {
    PublishHeader: FrameKind.PUBLISH,
    DeliverHeader: FrameKind.DELIVER,
    ForwardHeader: FrameKind.FORWARD,
    CarryHeader: FrameKind.CARRY,
}
_decode: dict[int, Callable[[bytes], Header]] = {
    int(kind): msgspec.msgpack.Decoder(type).decode for type, kind in _KINDS.items()
}
_make_frame: Callable[[tuple[Header, bytes, bytes]], MessageFrame] = partial(
    tuple.__new__, MessageFrame
)
"""A MessageFrame at half the price: its own constructor takes its fields by name."""


def control_frame(message: ControlMessage) -> bytes:
    """A control message, ready to be sent."""
    payload = _encoder.encode(message)
    return SIZE.pack(1 + len(payload), FrameKind.CONTROL) + payload


def message_frame(
    header: Header, attributes: bytes, body: bytes, headers: bytes = NO_HEADERS
) -> bytes:
    """A message, ready to be sent; `headers` are packed."""
    head = _encoder.encode(header)
    size = 9 + len(head) + len(attributes) + len(headers) + len(body)
    lengths = _PREFIX.pack(size, _KINDS[type(header)], len(head), len(attributes))
    return b"".join((lengths, head, attributes, headers, body))


def payload_frame(header: Header, attributes: bytes, payload: bytes) -> bytes:
    """The same of a message that came with this payload."""
    head = _encoder.encode(header)
    size = 9 + len(head) + len(attributes) + len(payload)
    lengths = _PREFIX.pack(size, _KINDS[type(header)], len(head), len(attributes))
    return b"".join((lengths, head, attributes, payload))


def message_head(header: Header, attributes: bytes, payload_bytes: int) -> bytes:
    """The same without the payload, which must follow."""
    head = _encoder.encode(header)
    size = 9 + len(head) + len(attributes) + payload_bytes
    lengths = _PREFIX.pack(size, _KINDS[type(header)], len(head), len(attributes))
    return b"".join((lengths, head, attributes))


class FrameReader:
    """Cuts what comes in into control messages, message frames and batches.

    >>> from palio.protocol.wire.control import Ping
    >>> frame = message_frame(PublishHeader(1, 0, False), b'{"x":1}', b"hello")
    >>> data, reader = control_frame(Ping(7)) + frame, FrameReader()
    >>> list(reader.feed(data[:10])), len(list(reader.feed(data[10:])))
    ([], 2)
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or _DEFAULT
        """May be replaced after any control message: the handshake raises them."""
        self.batches: dict[int, BatchScan] = {}
        """How frames of a kind are read as batches; frames of other kinds come one by one."""
        self._rest = bytearray()  # the beginning of a frame: it grows in place, however it is cut
        self._needed = 0  # so many bytes before it is worth a look
        self.waiting = 0
        """How many bytes wait for the rest of their frame."""
        self.is_continued = False
        """Whether that frame began before the last call of `feed`."""

    def feed(self, data: bytes) -> Iterator[ControlMessage | MessageFrame | MessageBatch]:
        """The frames that are complete now. Consume them before the next call."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                self.waiting, self.is_continued = len(self._rest), True
                return
            data = bytes(self._rest)
            self._rest.clear()
        limits, at, end = self.limits, 0, len(data)
        size_max = limits.frame
        self._needed = SIZE.size
        while end - at >= SIZE.size:
            size, kind = SIZE.unpack_from(data, at)
            if not 1 <= size <= size_max:
                raise BrokenFrame(f"a frame of {size} bytes; the most is {size_max}, the least 1")
            stop = at + SIZE_BYTES + size
            if stop > end:
                if kind and size > limits.message:  # do not wait for what is not taken
                    raise BrokenFrame(f"a message of {size} bytes; the most is {limits.message}")
                self._needed = SIZE_BYTES + size
                break
            if kind in self.batches:
                batch, at = self.batches[kind](data, at, limits)
                yield batch
                continue
            if kind:
                yield read_message(kind, data, at + SIZE.size, stop, limits)
            else:
                yield _control(data[at + SIZE.size : stop], limits)
                if self.limits is not limits:  # it was the last message of a handshake
                    limits = self.limits
                    size_max = limits.frame
            at = stop
        self._rest += data[at:]
        self.waiting, self.is_continued = end - at, False


def _control(payload: bytes, limits: Limits) -> ControlMessage:
    if len(payload) > limits.control:
        raise BrokenFrame(
            f"a control message of {len(payload)} bytes; the most is {limits.control}"
        )
    try:
        return _control_decoder.decode(payload)
    except (ValueError, RecursionError) as error:  # ValueError: all that msgspec raises
        raise BrokenFrame(f"an unknown control message: {error}") from None


def read_message(kind: int, data: bytes, start: int, end: int, limits: Limits) -> MessageFrame:
    """The message frame whose kind stands just before `start`."""
    decode = _decode.get(kind)
    if decode is None:
        raise BrokenFrame(f"frames of kind {kind} do not exist; there are 0 to {max(FrameKind)}")
    at = start + LENGTHS.size
    if at > end:
        raise BrokenFrame(f"a frame of kind {kind} is cut off after {end - start} bytes")
    head, text = LENGTHS.unpack_from(data, start)
    middle = at + head
    last = middle + text
    if head > limits.header or text > limits.attributes or not 0 <= end - last <= limits.payload:
        raise BrokenFrame(
            f"a message with a header of {head}, attributes of {text} and a payload of "
            f"{end - last} bytes; "
            f"the most are {limits.header}, {limits.attributes} and {limits.payload}"
        )
    try:
        header = decode(data[at:middle])
    except (ValueError, RecursionError) as error:
        raise BrokenFrame(f"the header of a frame of kind {kind}: {error}") from None
    return _make_frame((header, data[middle:last], data[last:end]))


# ---- batches


def scan_publish(data: bytes, at: int, limits: Limits) -> tuple[MessageBatch, int]:
    """The batch of PUBLISH frames that begins here, without publishers, and where it ends."""
    if len(data) - at >= KERNEL_BYTES_MIN:
        array, rows = _room(data, at)
        count = kernels().scan_publish(array, at, _bounds(limits), rows)
        if count:
            return _batch(data, b"", rows[:count])
    return _scan(FrameKind.PUBLISH, data, at, limits)


def scan_forward(data: bytes, at: int, limits: Limits) -> tuple[MessageBatch, int]:
    """The batch of FORWARD frames that begins here, and where it ends."""
    if len(data) - at >= KERNEL_BYTES_MIN:
        array, rows = _room(data, at)
        count = kernels().scan_forward(array, at, _bounds(limits), rows)
        if count:
            batch, end = _batch(data, data, rows[:count])
            try:
                batch.publishers()
                return batch, end
            except ValueError:  # a publisher is not UTF-8: Python says which frame
                pass
    return _scan(FrameKind.FORWARD, data, at, limits)


def read_frames(data: bytes, limits: Limits) -> list[MessageBatch]:
    """All batches of FORWARD frames in some data that holds nothing else, as the journal does."""
    batches, at = [], 0
    while at < len(data):
        batch, at = scan_forward(data, at, limits)
        batches.append(batch)
    return batches


def _batch(data: bytes, names: bytes, rows: Any) -> tuple[MessageBatch, int]:
    durable = bool(data[rows[0, TEXT] - 1] != NO)
    return MessageBatch(data, names, rows, durable), int(rows[-1, END])


def _room(data: bytes, at: int) -> tuple[Any, Any]:
    """The data as an array, and rows for as many messages as there may be."""
    count = min(BATCH_MAX, 1 + (len(data) - at) // PREFIX)
    return np.frombuffer(data, np.uint8), np.empty((count, COLUMNS), np.int64)


def _bounds(limits: Limits) -> Any:
    return np.array([limits.header, limits.attributes, limits.payload], np.int64)


def _scan(kind: int, data: bytes, at: int, limits: Limits) -> tuple[MessageBatch, int]:
    """The same by Python. The first frame is complete."""
    rows: list[tuple[int, ...]] = []
    names = bytearray()
    durable = False
    while len(data) - at >= SIZE.size and len(rows) < BATCH_MAX:
        size, own_kind = SIZE.unpack_from(data, at)
        end = at + SIZE_BYTES + size
        if own_kind != kind or end > len(data) or (rows and size > limits.frame):
            break
        try:
            header, attributes, payload = read_message(kind, data, at + SIZE.size, end, limits)
        except BrokenFrame:
            if rows:
                break  # return the messages before it; the next call raises
            raise
        assert isinstance(header, PublishHeader | ForwardHeader)
        if rows and header.durable is not durable:
            break
        durable = header.durable
        route = len(names)
        if isinstance(header, ForwardHeader):
            names += bytes(header.route)
            name = len(names)
            names += _encoder.encode(header.publisher)
        else:
            name = route
        middle = end - len(payload)
        text = middle - len(attributes)
        rows.append((header.number, header.time, text, middle, end, route, name, len(names)))
        at = end
    if not rows:
        raise BrokenFrame(f"a frame of kind {kind} is cut off")
    found = np.array(rows, np.int64).reshape(len(rows), COLUMNS)
    return MessageBatch(data, bytes(names), found, durable), at
