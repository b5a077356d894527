"""Runs: many PUBLISH frames of one client that came together, as arrays (run_kernels.py).

    data ──scan──▶ Run ──attributes──▶ one Arrow column ──▶ matched ──deliver──▶ bytes for each link

What Python does per message is most of what a broker does; for a run it does nothing per message.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from palio.protocol import run_codes
from palio.protocol.frames import Limits, Publish, letter_frame
from palio.protocol.run_codes import BODY, END, NUMBER, TEXT
from palio.routing.data_path import Matches

RUN_MAX = 8192

Publication: TypeAlias = tuple[int, int, bytes, bytes]
"""A new message, as its publisher sent it: number, time, attributes, body."""


@cache
def _kernels() -> ModuleType:
    from palio.protocol import run_kernels

    return run_kernels


class Run:
    """New messages of one client, all durable or none."""

    __slots__ = ("begin", "bytes", "data", "durable", "rows")

    def __init__(self, bytes: bytes, begin: int, data: Any, rows: Any) -> None:
        self.bytes = bytes
        self.begin = begin
        self.data = data
        self.rows = rows
        self.durable = bool(data[rows[0, TEXT] - 1] == 0xC3)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, r: int) -> Publication:
        number, time, text, body, end = self.rows[r].tolist()
        return number, time, self.bytes[text:body], self.bytes[body:end]

    def __iter__(self) -> Iterator[Publication]:
        data = self.bytes
        return iter(
            [(n, time, data[a:b], data[b:end]) for n, time, a, b, end in self.rows.tolist()]
        )

    def grows(self, last: int) -> bool:
        """Each number is larger than the one before, and the first than this."""
        numbers = self.rows[:, NUMBER]
        return bool(numbers[0] > last and (numbers[1:] > numbers[:-1]).all())

    def frames(self) -> bytes:
        """The frames that it was read from."""
        return self.bytes[self.begin : int(self.rows[-1, END])]

    def alone(self) -> Run:
        """The same without what came with it, if that is more than the run itself."""
        end = int(self.rows[-1, END])
        if 2 * (end - self.begin) >= len(self.bytes):
            return self
        data, rows = self.frames(), self.rows.copy()
        rows[:, TEXT:] -= self.begin
        return Run(data, 0, np.frombuffer(data, np.uint8), rows)

    def attributes(self) -> pa.Array:
        """A column of JSON objects."""
        rows = self.rows
        size = int((rows[:, BODY] - rows[:, TEXT]).sum())
        blob, begin = np.empty(size, np.uint8), np.empty(len(rows) + 1, np.int32)
        _kernels().gather(self.data, rows, blob, begin)
        return pa.StringArray.from_buffers(len(rows), pa.py_buffer(begin), pa.py_buffer(blob))


def scan(data: bytes, at: int, limits: Limits) -> tuple[Run | None, int]:
    """The run that begins here, if there is one, and where it ends."""
    array = np.frombuffer(data, np.uint8)
    room = min(RUN_MAX, 1 + (len(data) - at) // run_codes.PREFIX)
    rows = np.empty((room, 5), np.int64)
    bounds = np.array([limits.header, limits.attributes, limits.body], np.int64)
    count = _kernels().scan(array, at, bounds, rows)
    if not count:
        return None, at
    return Run(data, at, array, rows[:count]), int(rows[count - 1, END])


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
    left = _kernels().weigh(rows, ends, found, lines.lines, credits, name, sizes, slow)
    begin = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begin[1:])
    out = np.empty(int(begin[-1]), np.uint8)
    _kernels().write(run.data, rows, ends, found, lines.lines, name, begin[:-1].copy(), out)
    at = begin.tolist()
    writes = [
        (lines.links[i], out[at[i] : at[i + 1]].tobytes()) for i in np.flatnonzero(sizes).tolist()
    ]
    places = slow[:left]
    where = np.searchsorted(ends, places, "right") - 1
    pairs = zip(where.tolist(), (-1 - found[places]).tolist(), strict=True)
    return Delivered(writes, len(found) - left, list(pairs))


def deliver_entries(
    run: Run, publisher: bytes, places: list[int], positions: list[int], id: int, again: bool
) -> bytes:
    """Some rows as frames of a durable subscription, with their positions in its queue."""
    name = np.frombuffer(publisher, np.uint8)
    chosen, numbers = np.array(places, np.int64), np.array(positions, np.int64)
    size = _kernels().weigh_entries(run.rows, chosen, numbers, id, name)
    out = np.empty(size, np.uint8)
    flag = run_codes.YES if again else run_codes.NO
    _kernels().write_entries(run.data, run.rows, chosen, numbers, id, name, flag, out)
    return out.tobytes()


def packed(publisher: str) -> bytes:
    return msgspec.msgpack.encode(publisher)


def warm() -> None:
    """Load these kernels, or compile them, by one message: a broker that did so later would stop."""
    from palio.matching.table import ForwardingTable

    run, _ = scan(letter_frame(Publish(1, 1, False), b'{"x":1}', b""), 0, Limits())
    assert run is not None
    table = ForwardingTable.compile({"a": "TRUE"})
    matches = Matches(*table.match_json(run.attributes()), ["a"])
    lines = Lines([0], np.array([[0, 1, 0]], np.int64))
    deliver(run, packed("p"), matches, lines, np.ones(1, np.int64))
