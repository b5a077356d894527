"""Message batches as frames: for clients (DELIVER) and for neighbours (FORWARD).

Python writes small batches, kernels write large ones; the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from palio.protocol.wire.batch import KERNEL_MIN, Entry, MessageBatch, kernels
from palio.protocol.wire.frames import message_head, payload_frame
from palio.protocol.wire.headers import DELIVERIES_TOLD, DeliverHeader, ForwardHeader
from palio.protocol.wire.layout import END, NO, TEXT, YES, MatchArrays

SHARED_BYTES_MIN = 16 << 10
"""A payload with fewer bytes is copied into the frame of each client."""
NO_ROUTE = b"\xc0"
"""The routing header of a policy that needs none: nil."""


class EncodedFrames(NamedTuple):
    """Frames, one after the other, and where each ends."""

    data: bytes
    ends: list[int]


class Delivered(NamedTuple):
    """What `deliver` did."""

    writes: list[tuple[int, bytes]]
    """Bytes for links."""
    messages: int
    left: list[tuple[int, int]]
    """Rows and interfaces that are not for kernels, or have no credit."""


def deliver_pieces(m: Entry, ids: tuple[int, ...]) -> list[bytes]:
    """A live message for subscriptions of one client: a frame, in pieces. A large payload is a piece of
    its own, the same for all clients, so that it is in memory once."""
    header = DeliverHeader(ids, 0, m.publisher, m.number, m.time)
    if len(m.payload) < SHARED_BYTES_MIN:
        return [payload_frame(header, m.attributes, m.payload)]
    return [message_head(header, m.attributes, len(m.payload)), m.payload]


def is_large(batch: MessageBatch) -> bool:
    """Whether clients share the payloads of its messages; of small ones a kernel writes copies."""
    least, rows = SHARED_BYTES_MIN * batch.count, batch.rows
    if len(batch.data) < least:
        return False
    return bool((rows[:, END] - rows[:, TEXT]).sum() >= least)


def entry_frames(
    batch: MessageBatch, positions: Sequence[int], id: int, deliveries: Sequence[int] = ()
) -> bytes:
    """The messages of a batch for a durable subscription, with their positions in its queue, and how often
    each has been delivered; nothing: for the first time."""
    told = np.ones(batch.count, np.uint8)
    if deliveries:
        np.minimum(deliveries, DELIVERIES_TOLD, out=told, casting="unsafe")
    if batch.count < KERNEL_MIN:
        return b"".join(
            [
                payload_frame(
                    DeliverHeader((id,), position, m.publisher, m.number, m.time, count),
                    m.attributes,
                    m.payload,
                )
                for position, m, count in zip(positions, batch, told.tolist(), strict=True)
            ]
        )
    arrays, numbers = batch.arrays(), np.array(positions, np.int64)
    out = np.empty(kernels().entries_size(arrays.rows, numbers, id), np.uint8)
    kernels().write_entries(arrays, numbers, id, told, out)
    return out.tobytes()


def forward_frames(batch: MessageBatch, routes: Mapping[bytes, Sequence[int]]) -> EncodedFrames:
    """Some messages of a batch for a neighbour, in their order; each with its routing header."""
    if batch.count < KERNEL_MIN or sum(map(len, routes.values())) < KERNEL_MIN:
        return _forward_few(batch, routes)
    places = np.concatenate([np.array(rows, np.int64) for rows in routes.values()])
    which = np.repeat(np.arange(len(routes)), [len(rows) for rows in routes.values()])
    order = np.argsort(places, kind="stable")
    places, which = places[order], which[order]
    route_at = np.cumsum([0, *map(len, routes)])
    arrays, ends = batch.arrays(), np.empty(len(places), np.int64)
    kernels().forward_ends(arrays.rows, places, which, route_at, ends)
    out = np.empty(int(ends[-1]), np.uint8)
    flag = YES if batch.durable else NO
    joined = np.frombuffer(b"".join(routes), np.uint8)
    kernels().write_forward(arrays, places, which, joined, route_at, flag, ends, out)
    return EncodedFrames(out.tobytes(), ends.tolist())


def _forward_few(batch: MessageBatch, routes: Mapping[bytes, Sequence[int]]) -> EncodedFrames:
    chosen = [(row, route) for route, rows in routes.items() for row in rows]
    chosen.sort()
    frames: list[bytes] = []
    ends: list[int] = []
    size = 0
    for row, route in chosen:
        m = batch.entry(row)
        header = ForwardHeader(msgspec.Raw(route), m.publisher, m.number, m.time, batch.durable)
        frame = payload_frame(header, m.attributes, m.payload)
        size += len(frame)
        frames.append(frame)
        ends.append(size)
    return EncodedFrames(b"".join(frames), ends)


def deliver(
    batch: MessageBatch, matches: MatchArrays, destinations: Any, links: list[int], credits: Any
) -> Delivered:
    """Deliver to live subscriptions with credit, by kernels.

    `destinations` has for each interface its place in `links`, its id and its place in `credits`.
    """
    matches = MatchArrays(matches.ends, matches.found.copy())  # the kernel marks what it did
    found = matches.found
    if not len(found):
        return Delivered([], 0, [])
    arrays = batch.arrays()
    sizes, places = np.zeros(len(links) + 1, np.int64), np.empty(len(found), np.int64)
    count = kernels().reserve(arrays.rows, matches, destinations, credits, sizes, places)
    begin = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begin[1:])
    out = np.empty(int(begin[-1]), np.uint8)
    kernels().write_deliver(arrays, matches, destinations, begin[:-1].copy(), out)
    at = begin.tolist()
    writes = [(links[i], out[at[i] : at[i + 1]].tobytes()) for i in np.flatnonzero(sizes).tolist()]
    places = places[:count]
    rows = np.searchsorted(matches.ends, places, "right") - 1
    left = list(zip(rows.tolist(), (-1 - found[places]).tolist(), strict=True))
    messages = int((found >= 0).sum())
    return Delivered(writes, messages, left)


def warm() -> None:
    """Load or compile these kernels by one use of each. Later this would block the broker."""
    entry = Entry("p", 1, 1, b'{"x":1}', b"")
    batch = MessageBatch.of([entry] * KERNEL_MIN)
    batch.column()
    row = np.arange(KERNEL_MIN + 1)
    matches = MatchArrays(row, np.zeros(KERNEL_MIN, np.int64))
    deliver(batch, matches, np.array([[0, 1, 0]]), [0], np.ones(1, np.int64))
    entry_frames(batch, list(range(KERNEL_MIN)), 1)
    data, _ = forward_frames(batch, {NO_ROUTE: range(KERNEL_MIN)})
    limits = np.array([1 << 20] * 3, np.int64)
    rows = np.empty((KERNEL_MIN, batch.rows.shape[1]), np.int64)
    kernels().scan_forward(np.frombuffer(data, np.uint8), 0, limits, rows)
    kernels().scan_publish(np.frombuffer(data, np.uint8), 0, limits, rows)
