"""Runs: many messages that came together on one connection, as arrays (run_kernels.py).

    data ──scan──▶ Run ──attributes──▶ one Arrow column ──▶ matched ─┬─deliver──▶ bytes for each link
    PUBLISH, FORWARD                                                 └─forward──▶ FORWARD frames

What Python does per message is most of what a broker does; for a run it does nothing per message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from palio.protocol import run_codes
from palio.protocol.frames import Forward, Limits, Publish, letter_frame
from palio.protocol.run_codes import BODY, COLUMNS, END, NAME, NAME_END, NUMBER, TEXT

RUN_MAX = 8192

Publication: TypeAlias = tuple[int, int, bytes, bytes]
"""A new message, as its publisher sent it: number, time, attributes, body."""


@cache
def _kernels() -> ModuleType:
    from palio.protocol import run_kernels

    return run_kernels


class Run:
    """New messages of one client, all durable or none."""

    __slots__ = ("_column", "begin", "bytes", "data", "durable", "names", "publisher", "rows")

    def __init__(self, bytes: bytes, begin: int, data: Any, rows: Any) -> None:
        self.bytes = bytes
        self.begin = begin
        self.data = data
        self.rows = rows
        self.durable = bool(data[rows[0, TEXT] - 1] == run_codes.YES)
        self.publisher = ""
        self.names = data[:0]
        self._column: pa.Array | None = None

    def sign(self, publisher: str) -> None:
        """Say who published them."""
        self.publisher = publisher
        self.names = np.frombuffer(msgspec.msgpack.encode(publisher), np.uint8)
        self.rows[:, NAME], self.rows[:, NAME_END] = 0, len(self.names)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, r: int) -> Publication:
        number, time, text, body, end = self.rows[r, :NAME].tolist()
        return number, time, self.bytes[text:body], self.bytes[body:end]

    def __iter__(self) -> Iterator[Publication]:
        data = self.bytes
        return iter(
            [
                (n, time, data[a:b], data[b:end])
                for n, time, a, b, end in self.rows[:, :NAME].tolist()
            ]
        )

    def numbers(self) -> list[int]:
        found: list[int] = self.rows[:, NUMBER].tolist()
        return found

    def publishers(self) -> Iterator[str]:
        """Who published each."""
        return repeat(self.publisher, len(self.rows))

    def trails(self) -> list[tuple[bytes | None, Any]]:
        """What a routing scheme wrote on them, None: they are new; and the places of those."""
        return [(None, np.arange(len(self.rows)))]

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
        rows[:, TEXT:NAME] -= self.begin
        return Run(data, 0, np.frombuffer(data, np.uint8), rows)

    def attributes(self) -> pa.Array:
        """A column of JSON objects."""
        if self._column is None:
            rows = self.rows
            size = int((rows[:, BODY] - rows[:, TEXT]).sum())
            blob, begin = np.empty(size, np.uint8), np.empty(len(rows) + 1, np.int32)
            _kernels().gather(self.data, rows, blob, begin)
            self._column = pa.StringArray.from_buffers(
                len(rows), pa.py_buffer(begin), pa.py_buffer(blob)
            )
        return self._column


class Forwarded(Run):
    """Messages from a neighbour, all durable or none."""

    __slots__ = ("_publishers", "_trails")

    def __init__(self, whole: bytes, begin: int, data: Any, rows: Any) -> None:
        super().__init__(whole, begin, data, rows)
        self.names = data
        spans = rows[:, NAME:COLUMNS].tolist()
        self._trails = [whole[trail:name] for name, _, trail in spans]
        names = [whole[name:end] for name, end, _ in spans]
        decoded = {name: _name_decoder.decode(name) for name in set(names)}
        self._publishers = [decoded[name] for name in names]

    def publishers(self) -> Iterator[str]:
        return iter(self._publishers)

    def trails(self) -> list[tuple[bytes | None, Any]]:
        known: dict[bytes, int] = {}
        codes = np.array([known.setdefault(one, len(known)) for one in self._trails])
        return [(trail, np.flatnonzero(codes == code)) for trail, code in known.items()]

    def trail(self, r: int) -> bytes:
        return self._trails[r]


_name_decoder = msgspec.msgpack.Decoder(str)


def scan(data: bytes, at: int, limits: Limits) -> tuple[Run | None, int]:
    """The run of PUBLISH frames that begins here, if there is one, and where it ends."""
    array, rows = _room(data, at)
    count = _kernels().scan(array, at, _bounds(limits), rows)
    if not count:
        return None, at
    return Run(data, at, array, rows[:count]), int(rows[count - 1, END])


def scan_forwards(data: bytes, at: int, limits: Limits) -> tuple[Forwarded | None, int]:
    """The same for FORWARD frames."""
    array, rows = _room(data, at)
    count = _kernels().scan_forwards(array, at, _bounds(limits), rows)
    if not count:
        return None, at
    try:
        run = Forwarded(data, at, array, rows[:count])
    except ValueError:  # a publisher that is no text; who reads it by itself says so
        return None, at
    return run, int(rows[count - 1, END])


def _room(data: bytes, at: int) -> tuple[Any, Any]:
    """The bytes as an array, and rows for as many messages as there may be."""
    count = min(RUN_MAX, 1 + (len(data) - at) // run_codes.PREFIX)
    return np.frombuffer(data, np.uint8), np.empty((count, COLUMNS), np.int64)


def _bounds(limits: Limits) -> Any:
    return np.array([limits.header, limits.attributes, limits.body], np.int64)


class Lines:
    """Where the interfaces of a table lead; found out for those that messages match.

    `lines` has for each its connection (a place in `links`), its id, its place in the credits.
    """

    __slots__ = ("_places", "lines", "links")

    def __init__(self) -> None:
        self.links: list[int] = []
        self.lines = np.full((64, 3), run_codes.UNKNOWN, np.int64)
        self._places: dict[int, int] = {}

    def unknown(self, found: Any) -> list[int]:
        """Those of the interfaces of which it is to be said where they lead."""
        self.lines = with_room(self.lines, found)
        is_unknown = self.lines[found, run_codes.LINK] == run_codes.UNKNOWN
        missing: list[int] = np.unique(found[is_unknown]).tolist()
        return missing

    def lead(self, interface: int, link: int, id: int, credit: int) -> None:
        """It is this subscription of a connection."""
        place = self._places.setdefault(link, len(self.links))
        if place == len(self.links):
            self.links.append(link)
        self.lines[interface] = place, id, credit

    def set(self, interface: int, code: int) -> None:
        """It leads nowhere that kernels know (NONE), or to nobody (NOBODY)."""
        self.lines[interface] = code


def with_room(known: Any, found: Any) -> Any:
    """What is known of interfaces, with room for these: of the new ones it is UNKNOWN."""
    last = int(found.max(initial=-1))
    if last < len(known):
        return known
    more = np.full((1 + last, *known.shape[1:]), run_codes.UNKNOWN, np.int64)
    return np.concatenate([known, more])


class Delivered(NamedTuple):
    writes: list[tuple[int, bytes]]
    """Bytes for connections."""
    messages: int
    left: list[tuple[int, int]]
    """Rows and interfaces that are not for kernels, or have no credit."""


def deliver(run: Run, ends: Any, found: Any, lines: Lines, credits: Any) -> Delivered:
    """What goes out at once, to the interfaces found[ends[i]:ends[i + 1]] of row i."""
    found = found.copy()
    if not len(found):
        return Delivered([], 0, [])
    sizes, slow = np.zeros(len(lines.links) + 1, np.int64), np.empty(len(found), np.int64)
    rows = run.rows
    left = _kernels().weigh(rows, ends, found, lines.lines, credits, sizes, slow)
    begin = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begin[1:])
    out = np.empty(int(begin[-1]), np.uint8)
    _kernels().write(run.data, run.names, rows, ends, found, lines.lines, begin[:-1].copy(), out)
    at = begin.tolist()
    writes = [
        (lines.links[i], out[at[i] : at[i + 1]].tobytes()) for i in np.flatnonzero(sizes).tolist()
    ]
    places = slow[:left]
    where = np.searchsorted(ends, places, "right") - 1
    pairs = zip(where.tolist(), (-1 - found[places]).tolist(), strict=True)
    return Delivered(writes, len(found) - left, list(pairs))


def deliver_entries(
    run: Run, places: list[int], positions: list[int], id: int, again: bool
) -> bytes:
    """Some rows as frames of a durable subscription, with their positions in its queue."""
    chosen, numbers = np.array(places, np.int64), np.array(positions, np.int64)
    out = np.empty(_kernels().weigh_entries(run.rows, chosen, numbers, id), np.uint8)
    flag = run_codes.YES if again else run_codes.NO
    _kernels().write_entries(run.data, run.names, run.rows, chosen, numbers, id, flag, out)
    return out.tobytes()


class Written(NamedTuple):
    """Frames, one after the other, and where each ends."""

    data: bytes
    ends: list[int]


def forward(run: Run, trails: Mapping[bytes, Sequence[int]]) -> Written:
    """Some rows as FORWARD frames, in their order; each row with its trail."""
    places = np.concatenate([np.array(own, np.int64) for own in trails.values()])
    which = np.repeat(np.arange(len(trails)), [len(own) for own in trails.values()])
    order = np.argsort(places, kind="stable")
    places, which = places[order], which[order]
    trail_at = np.cumsum([0, *map(len, trails)])
    ends = np.empty(len(places), np.int64)
    _kernels().weigh_forwards(run.rows, places, which, trail_at, ends)
    out = np.empty(int(ends[-1]), np.uint8)
    flag = run_codes.YES if run.durable else run_codes.NO
    blob = np.frombuffer(b"".join(trails), np.uint8)
    _kernels().write_forwards(
        run.data, run.names, run.rows, places, which, blob, trail_at, flag, ends, out
    )
    return Written(out.tobytes(), ends.tolist())


def warm() -> None:
    """Load these kernels, or compile them, by one message: a broker that did so later would stop."""
    from palio.matching.table import ForwardingTable

    run, _ = scan(letter_frame(Publish(1, 1, False), b'{"x":1}', b""), 0, Limits())
    assert run is not None
    run.sign("p")
    table = ForwardingTable.compile({"a": "TRUE"})
    ends, found = table.match_json(run.attributes())
    lines = Lines()
    lines.lead(0, 0, 1, 0)
    deliver(run, ends, found, lines, np.ones(1, np.int64))
    deliver_entries(run, [0], [1], 1, False)
    header = Forward(msgspec.Raw(b"\xc0"), "p", 1, 1, False)
    again, _ = scan_forwards(letter_frame(header, b'{"x":1}', b""), 0, Limits())
    assert again is not None
    forward(again, {b"\xc0": [0]})
