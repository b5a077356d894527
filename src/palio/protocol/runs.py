"""Runs: many PUBLISH frames of one client that came together, as arrays (run_kernels.py).

    data ──scan──▶ Run ──attributes──▶ one Arrow column ──▶ matched ──deliver──▶ bytes for each link

What Python does per message is most of what a broker does; for a run it does nothing per message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from palio.protocol import run_kernels
from palio.protocol.frames import Limits
from palio.protocol.run_kernels import BODY, END, TEXT
from palio.routing.data_path import Matches

RUN_MAX = 8192


class Run:
    """New messages of one client, all durable or none."""

    __slots__ = ("bytes", "data", "durable", "rows")

    def __init__(self, bytes: bytes, data: Any, rows: Any) -> None:
        self.bytes = bytes
        self.data = data
        self.rows = rows
        self.durable = bool(data[rows[0, TEXT] - 1] == 0xC3)  # numpy's own cannot be encoded

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, r: int) -> tuple[int, int, bytes, bytes]:
        """Number, time, attributes and body of a message."""
        number, time, text, body, end = self.rows[r].tolist()
        return number, time, self.bytes[text:body], self.bytes[body:end]

    def __iter__(self) -> Iterator[tuple[int, int, bytes, bytes]]:
        data = self.bytes
        for number, time, text, body, end in self.rows.tolist():
            yield number, time, data[text:body], data[body:end]

    def attributes(self) -> pa.Array:
        """A column of JSON objects."""
        rows = self.rows
        size = int((rows[:, BODY] - rows[:, TEXT]).sum())
        blob, begin = np.empty(size, np.uint8), np.empty(len(rows) + 1, np.int32)
        run_kernels.gather(self.data, rows, blob, begin)
        return pa.StringArray.from_buffers(len(rows), pa.py_buffer(begin), pa.py_buffer(blob))


def scan(data: bytes, at: int, limits: Limits) -> tuple[Run | None, int]:
    """The run that begins here, if there is one, and where it ends."""
    array = np.frombuffer(data, np.uint8)
    room = min(RUN_MAX, 1 + (len(data) - at) // run_kernels.PREFIX)
    rows = np.empty((room, 5), np.int64)
    bounds = np.array([limits.header, limits.attributes, limits.body], np.int64)
    count = run_kernels.scan(array, at, bounds, rows)
    if not count:
        return None, at
    return Run(data, array, rows[:count]), int(rows[count - 1, END])


class Lines(NamedTuple):
    """Where the interfaces of a table lead."""

    links: list[int]
    """The connections."""
    lines: Any
    """Of each interface: its connection (a place in `links`), its id, its place in the credits."""


class Delivered(NamedTuple):
    writes: list[tuple[int, bytes]]
    """Bytes for connections."""
    messages: int
    left: list[tuple[int, int]]
    """Rows and interfaces that are not for kernels, or have no credit."""


def deliver(run: Run, publisher: bytes, matches: Matches, lines: Lines, credits: Any) -> Delivered:
    """What goes out at once; `publisher` is in msgpack."""
    ends, found = matches.ends, matches.found.copy()
    if not len(found):
        return Delivered([], 0, [])
    name = np.frombuffer(publisher, np.uint8)
    sizes, slow = np.zeros(len(lines.links) + 1, np.int64), np.empty(len(found), np.int64)
    rows = run.rows
    left = run_kernels.weigh(rows, ends, found, lines.lines, credits, name, sizes, slow)
    begin = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begin[1:])
    out = np.empty(int(begin[-1]), np.uint8)
    run_kernels.write(run.data, rows, ends, found, lines.lines, name, begin[:-1].copy(), out)
    at = begin.tolist()
    writes = [
        (lines.links[i], out[at[i] : at[i + 1]].tobytes()) for i in np.flatnonzero(sizes).tolist()
    ]
    places = slow[:left]
    where = np.searchsorted(ends, places, "right") - 1
    pairs = zip(where.tolist(), (-1 - found[places]).tolist(), strict=True)
    return Delivered(writes, len(found) - left, list(pairs))


def packed(publisher: str) -> bytes:
    return msgspec.msgpack.encode(publisher)
