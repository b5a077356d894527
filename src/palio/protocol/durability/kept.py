"""Durable messages as they are kept: one by one, or in packs.

    Message   a message with all that is known of it
    Pack      the frames in which many messages of one publisher came (runs.py), as they came:
              Python does nothing per message until somebody wants one of them
    Picked    some messages of a pack

Both are stored: a list of messages, or a pack with its frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from palio.protocol.frames import Limits
from palio.protocol.run_codes import END, NUMBER, TEXT
from palio.protocol.runs import Publication, Run, scan

_OVERHEAD_BYTES = 40  # numbers and lengths of one message
PACK_MIN = 128
"""Fewer messages are no pack, because that is a batch of its own in the journal."""
_ANY = Limits(header=1 << 40, attributes=1 << 40, body=1 << 40)


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A durable message as it is kept."""

    publisher: str
    number: int
    time: int
    """When it was published, by the publisher's clock, in microseconds."""
    attributes: bytes
    body: bytes
    stored: int
    """When it was stored here."""
    is_origin: bool
    """It was published here; otherwise another broker carried it."""


class Pack:
    """Durable messages of one publisher that came together, in the frames that they came in."""

    __slots__ = ("publisher", "run", "stored")

    def __init__(self, publisher: str, stored: int, run: Run) -> None:
        self.publisher = publisher
        self.stored = stored
        self.run = run
        run.sign(publisher)

    def __len__(self) -> int:
        return len(self.run)

    def __iter__(self) -> Iterator[Message]:
        return iter(messages_of(self.publisher, self.stored, self.run))


class Picked:
    """Some messages of a pack."""

    __slots__ = ("pack", "places")

    def __init__(self, pack: Pack, places: list[int]) -> None:
        self.pack = pack
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Message]:
        pack = self.pack
        return iter(messages_of(pack.publisher, pack.stored, [pack.run[at] for at in self.places]))


class _StoredPack(msgspec.Struct, frozen=True, gc=False):
    publisher: str
    stored: int
    frames: bytes


def keep(publisher: str, stored: int, found: Iterable[Publication] | Run) -> list[Message] | Pack:
    """Messages that were published here."""
    if isinstance(found, Run) and len(found) >= PACK_MIN:
        return Pack(publisher, stored, found.alone())
    return messages_of(publisher, stored, found)


def messages_of(publisher: str, stored: int, found: Iterable[Publication]) -> list[Message]:
    return [Message(publisher, n, time, text, body, stored, True) for n, time, text, body in found]


def last_number(messages: list[Message] | Pack, after: int) -> int | None:
    """The number of the last one, if each has a larger number than the one before; else None."""
    if isinstance(messages, Pack):
        return int(messages.run.rows[-1, NUMBER]) if messages.run.grows(after) else None
    for message in messages:
        if message.number <= after:
            return None
        after = message.number
    return after


def weigh(messages: Iterable[Message] | Pack) -> list[int]:
    """The size of each in bytes."""
    if isinstance(messages, Pack):
        rows, more = messages.run.rows, len(messages.publisher) + _OVERHEAD_BYTES
        found: list[int] = (rows[:, END] - rows[:, TEXT] + more).tolist()
        return found
    return [len(m.attributes) + len(m.body) + len(m.publisher) + _OVERHEAD_BYTES for m in messages]


_encoder = msgspec.msgpack.Encoder()
_batch_decoder: msgspec.msgpack.Decoder[list[Message | None] | _StoredPack] = (
    msgspec.msgpack.Decoder(list[Message | None] | _StoredPack)
)


def to_bytes(found: list[Message | None] | Pack) -> bytes:
    if isinstance(found, Pack):
        return _encoder.encode(_StoredPack(found.publisher, found.stored, found.run.frames()))
    return _encoder.encode(found)


def from_bytes(data: bytes) -> list[Message | None] | Pack:
    """What was stored; without what cannot be read any more."""
    found = _batch_decoder.decode(data)
    if not isinstance(found, _StoredPack):
        return found
    run, _ = scan(found.frames, 0, _ANY)
    return [] if run is None else Pack(found.publisher, found.stored, run)
