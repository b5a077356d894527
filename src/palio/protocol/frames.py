"""Frames: how anything travels over a connection.

    u32 size      bytes that follow
    u8  kind
    ┌ WORD ────────────┐  ┌ PUBLISH, DELIVER, FORWARD, CARRY ─────────────────────────┐
    │ a word (msgpack) │  │ u32 header  u32 attributes │ header │ attributes │ body   │
    └──────────────────┘  └───────────────────────────────────────────────────────────┘

All numbers are little-endian. Words are what the two ends say to each other (words.py). The others
carry a message: a header (msgpack) that says whence and whither, the attributes as a JSON object
(UTF-8), which is what the matching kernels read, and a body that nobody on the way looks into.
A broker passes attributes and body on as the bytes that came.

Whatever is not a frame raises `BrokenFrame`, and the connection is of no more use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from palio.errors import InvalidValue, PalioError
from palio.protocol.words import Number, Word

if TYPE_CHECKING:
    from palio.protocol.runs import Run

_SIZE = Struct("<IB")
_LENGTHS = Struct("<II")
_LETTER = Struct("<IBII")
SIZE_BYTES = 4
RUN_BYTES = 4096
"""For less, reading many frames at once is not worth while."""


class BrokenFrame(PalioError):
    """Bytes that are no frame, or one that is larger than the limit."""


class Kind(IntEnum):
    WORD = 0
    PUBLISH = 1
    """From a client: a new message."""
    DELIVER = 2
    """To a client: a message that it asked for."""
    FORWARD = 3
    """Between brokers: a message on its way, best effort."""
    CARRY = 4
    """Between brokers: a message that is kept at its origin until all targets have it."""


class Publish(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The header of a new message. Numbers of one publisher grow; the broker knows who it is."""

    number: Number
    time: Number
    """When it was published, in microseconds of the publisher's clock."""
    durable: bool


class Deliver(msgspec.Struct, frozen=True, array_like=True, gc=False):
    subscriptions: tuple[Number, ...]
    """The receiver's own numbers of the subscriptions that the message is for."""
    position: Number
    """In the queue of a durable subscription: to be acknowledged; 0: there is none."""
    publisher: str
    number: Number
    time: Number
    again: bool = False
    """It was sent before and was not acknowledged."""


class Forward(msgspec.Struct, frozen=True, array_like=True, gc=False):
    trail: msgspec.Raw
    """What the routing scheme wrote on it (routes.py); nil with subscription forwarding."""
    publisher: str
    number: Number
    time: Number
    durable: bool
    """It also travels as CARRY frames, to durable subscriptions; this one is for the others."""


class Target(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A broker that a carried message is for."""

    broker: str
    number: Number
    """In the stream from the origin to this broker: 1, 2, 3, ..."""
    first: Number
    """The first number of the stream that the origin still keeps: nothing comes from before it."""
    names: tuple[str, ...]
    """The durable subscriptions there that it matches, as version@name (known.py)."""


class Carry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    origin: str
    epoch: str
    """Of the origin's store: numbers of different epochs have nothing to do with each other."""
    targets: tuple[Target, ...]
    publisher: str
    number: Number
    time: Number


Header: TypeAlias = Publish | Deliver | Forward | Carry


class Letter(NamedTuple):
    """A frame that carries a message."""

    header: Header
    attributes: bytes
    body: bytes


class Limits(msgspec.Struct, frozen=True):
    """The most bytes of each part of a frame."""

    word: int = 16 << 20
    header: int = 64 << 10
    attributes: int = 64 << 10
    body: int = 4 << 20

    def check(self, attributes: bytes, body: bytes) -> None:
        """Raise InvalidValue for a message that is too large to be sent."""
        if len(attributes) > self.attributes or len(body) > self.body:
            raise InvalidValue(
                f"a message with attributes of {len(attributes)} and a body of {len(body)} bytes; "
                f"the most are {self.attributes} and {self.body}: "
                "cut it up, or keep the data elsewhere and publish where it is"
            )

    @property
    def frame(self) -> int:
        letter = _LENGTHS.size + self.header + self.attributes + self.body
        return 1 + max(self.word, letter)


BEFORE_HELLO = Limits(word=16 << 10, header=0, attributes=0, body=0)
"""For those who did not say yet who they are."""

_DELIVER = int(Kind.DELIVER)
_encoder = msgspec.msgpack.Encoder()
_word_decoder: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)
_KINDS: dict[type, int] = {
    Publish: Kind.PUBLISH,
    Deliver: Kind.DELIVER,
    Forward: Kind.FORWARD,
    Carry: Kind.CARRY,
}
_decode: dict[int, Callable[[bytes], Header]] = {
    int(kind): msgspec.msgpack.Decoder(type).decode for type, kind in _KINDS.items()
}
_make_letter: Callable[[tuple[Header, bytes, bytes]], Letter] = partial(tuple.__new__, Letter)
"""A Letter at half the price: its own constructor takes its fields by name."""


def word_frame(word: Word) -> bytes:
    """A word, ready to be sent."""
    payload = _encoder.encode(word)
    return _SIZE.pack(1 + len(payload), Kind.WORD) + payload


def letter_frame(header: Header, attributes: bytes, body: bytes) -> bytes:
    """A message, ready to be sent."""
    head = _encoder.encode(header)
    size = 9 + len(head) + len(attributes) + len(body)
    lengths = _LETTER.pack(size, _KINDS[type(header)], len(head), len(attributes))
    return b"".join((lengths, head, attributes, body))


def deliver_frames(headers: Iterable[Deliver], texts: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Many messages for one client, ready to be sent."""
    parts: list[bytes] = []
    encode, pack = _encoder.encode, _LETTER.pack
    for header, (attributes, body) in zip(headers, texts, strict=True):
        head = encode(header)
        size = 9 + len(head) + len(attributes) + len(body)
        parts += (pack(size, _DELIVER, len(head), len(attributes)), head, attributes, body)
    return b"".join(parts)


class Frames:
    """Cuts what comes in into words and letters.

    >>> from palio.protocol.words import Ping
    >>> data = word_frame(Ping(7)) + letter_frame(Publish(1, 0, False), b'{"x":1}', b"hello")
    >>> frames = Frames()
    >>> list(frames.feed(data[:10])), len(list(frames.feed(data[10:])))
    ([], 2)
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        """May be replaced after any word: more is allowed to those who said who they are."""
        self.scans: dict[int, Callable[[bytes, int, Limits], tuple[Run | None, int]]] = {}
        """How many frames of a kind are read at once (runs.py), where that is wanted."""
        self._rest = bytearray()  # the beginning of a frame: it grows in place, however it is cut
        self._needed = 0  # so many bytes before it is worth a look

    @property
    def waiting(self) -> int:
        """How many bytes wait for the rest of their frame."""
        return len(self._rest)

    def feed(self, data: bytes) -> Iterator[Word | Letter | Run]:
        """The frames that are whole now. To be used up before the next call."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        limits, at, end = self.limits, 0, len(data)
        size_max = limits.frame
        self._needed = _SIZE.size
        while end - at >= _SIZE.size:
            size, kind = _SIZE.unpack_from(data, at)
            if not 1 <= size <= size_max:
                raise BrokenFrame(f"a frame of {size} bytes; the most is {size_max}, the least 1")
            stop = at + SIZE_BYTES + size
            if stop > end:
                self._needed = SIZE_BYTES + size
                break
            if kind in self.scans and end - at >= RUN_BYTES:
                run, after = self.scans[kind](data, at, limits)
                if run is not None:
                    yield run
                    at = after
                    continue
            if kind:
                yield _letter(kind, data, at + _SIZE.size, stop, limits)
            else:
                yield _word(data[at + _SIZE.size : stop], limits)
                if self.limits is not limits:  # the word was the last of a handshake
                    limits = self.limits
                    size_max = limits.frame
            at = stop
        self._rest += data[at:]


def _word(payload: bytes, limits: Limits) -> Word:
    if len(payload) > limits.word:
        raise BrokenFrame(f"a word of {len(payload)} bytes; the most is {limits.word}")
    try:
        return _word_decoder.decode(payload)
    except (ValueError, RecursionError) as error:  # ValueError: all that msgspec raises
        raise BrokenFrame(f"a word that nobody here knows: {error}") from None


def _letter(kind: int, data: bytes, start: int, end: int, limits: Limits) -> Letter:
    """Hot: once a message at every broker on its way."""
    decode = _decode.get(kind)
    if decode is None:
        raise BrokenFrame(f"frames of kind {kind} do not exist; there are 0 to {max(Kind)}")
    at = start + _LENGTHS.size
    if at > end:
        raise BrokenFrame(f"a frame of kind {kind} is cut off after {end - start} bytes")
    head, text = _LENGTHS.unpack_from(data, start)
    middle = at + head
    last = middle + text
    if head > limits.header or text > limits.attributes or not 0 <= end - last <= limits.body:
        raise BrokenFrame(
            f"a message with a header of {head}, attributes of {text} and a body of {end - last} "
            f"bytes; the most are {limits.header}, {limits.attributes} and {limits.body}"
        )
    try:
        header = decode(data[at:middle])
    except (ValueError, RecursionError) as error:
        raise BrokenFrame(f"the header of a frame of kind {kind}: {error}") from None
    return _make_letter((header, data[middle:last], data[last:end]))
