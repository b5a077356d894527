"""Readers of frames on the same bytes, cut in any way: they must agree.

    one by one      every frame by itself, as a client reads them
    Python          batches of PUBLISH and FORWARD frames, read by Python
    kernels         the same by kernels
    pieces          each of these, for the stream as it was cut

Compared is what comes out, in order: control messages, frames, the messages of batches; and how it
ends: the reason of BrokenFrame, or how many bytes wait for more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import msgspec

from palio.protocol.wire import frames as wire_frames
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.frames import (
    BrokenFrame,
    FrameKind,
    FrameReader,
    Limits,
    MessageFrame,
    scan_forward,
    scan_publish,
)
from palio.protocol.wire.headers import ForwardHeader, PublishHeader
from tests.fuzz.findings import Finding

NEVER = 1 << 40
READERS = {"one by one": None, "Python": NEVER, "kernels": 0}
"""From how many bytes on kernels read batches; None: there are no batches."""
BATCHES = {int(FrameKind.PUBLISH): scan_publish, int(FrameKind.FORWARD): scan_forward}


@contextmanager
def reading(kernel_bytes: int | None, batch_max: int) -> Iterator[None]:
    """Who reads batches, and of how many messages."""
    before = wire_frames.KERNEL_BYTES_MIN, wire_frames.BATCH_MAX
    wire_frames.KERNEL_BYTES_MIN = NEVER if kernel_bytes is None else kernel_bytes
    wire_frames.BATCH_MAX = batch_max
    try:
        yield
    finally:
        wire_frames.KERNEL_BYTES_MIN, wire_frames.BATCH_MAX = before


def outcome(
    data: bytes, cuts: Sequence[int], limits: Limits, kernel_bytes: int | None, batch_max: int
) -> tuple[list[object], str]:
    """What a reader makes of a stream, and how that ends."""
    reader = FrameReader(limits)
    if kernel_bytes is not None:
        reader.batches = dict(BATCHES)
    found: list[object] = []
    with reading(kernel_bytes, batch_max):
        try:
            for begin, end in pairwise((0, *cuts, len(data))):
                for item in reader.feed(data[begin:end]):
                    found += _plain(item)
        except BrokenFrame as error:
            return found, f"broken: {error}"
    return found, f"{reader.waiting} bytes wait"


def _plain(item: object) -> list[object]:
    """The messages of a batch as frames would have them, everything else as it is."""
    if isinstance(item, MessageFrame):
        header, kind = item.header, type(item.header)
        if kind is PublishHeader:
            return [(kind, header.number, header.time, header.durable, *item[1:])]
        if kind is ForwardHeader:
            plain = msgspec.structs.astuple(header)
            return [(kind, bytes(plain[0]), *plain[1:], *item[1:])]
        return [item]
    if not isinstance(item, MessageBatch):
        return [item]
    if not item.names:
        item.sign("", 2**63 - 1)
        return [
            (PublishHeader, e.number, e.time, item.durable, e.attributes, e.payload) for e in item
        ]
    return [
        (
            ForwardHeader,
            e.route,
            e.publisher,
            e.number,
            e.time,
            item.durable,
            e.attributes,
            e.payload,
        )
        for e in item
    ]


def check(frames: Sequence[bytes], cuts: Sequence[int], limits: Limits, batch_max: int) -> int:
    """How many frames came out; raises a Finding where readers do not agree."""
    data = b"".join(frames)
    wanted = outcome(data, (), limits, None, batch_max)
    for name, kernel_bytes in READERS.items():
        for where in (cuts, ()) if cuts else ((),):
            found = outcome(data, where, limits, kernel_bytes, batch_max)
            if found != wanted:
                raise Finding(
                    f"{name}, cut at {list(where)}, {limits}, batches of {batch_max}: "
                    f"{_first_difference(found, wanted)}",
                    frames,
                )
    return len(wanted[0])


def _first_difference(found: tuple[list[object], str], wanted: tuple[list[object], str]) -> str:
    for at, (a, b) in enumerate(zip(found[0], wanted[0], strict=False)):
        if a != b:
            return f"frame {at} is read as {a!r}, one by one as {b!r}"
    return f"{len(found[0])} frames, then {found[1]}; one by one {len(wanted[0])}, then {wanted[1]}"
