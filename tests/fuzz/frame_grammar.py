"""Streams of frames for readers to disagree on: every kind, headers written in every way of msgpack.

The same random numbers give the same streams. A part of the frames is exactly what brokers write;
the others have numbers at the edges, other encodings of the same value, fields too many or too few,
lengths that do not fit, and bytes that were changed.
"""

from __future__ import annotations

import struct
from random import Random

from palio.protocol.wire.frames import FrameKind, Limits
from tests.protocol.broker.noise import FORWARDS, GREETINGS, MESSAGES, REPORTS, REQUESTS
from tests.protocol.wire.mutation import mutated
from tests.protocol.wire.test_frames import good_frames

GOOD = [
    *good_frames(),
    *GREETINGS,
    *MESSAGES,
    *FORWARDS[:6],
    *(f for f in REPORTS + REQUESTS if len(f) < 400),
]
NUMBERS = [
    0,
    1,
    127,
    128,
    255,
    256,
    2**16 - 1,
    2**16,
    2**31,
    2**32 - 1,
    2**32,
    2**53,
    2**62,
    2**63 - 1,
]
BAD_NUMBERS = [-1, -32, -33, -(2**31), -(2**63), 2**63, 2**64 - 1]
NAMES = ["", "ann/1", "é", "x" * 31, "x" * 32, "x" * 255, "x" * 256, "😀" * 20, "\0"]
ROUTES = [
    b"\xc0", b"\x00", b"\x7f", b"\xa0", b"\xa3abc", b"\x90", b"\x92\x03\xa1n", b"\x92\x03\x92\xa1a\xa1c",
    b"\xcd\x01\x00", b"\xcf" + bytes(8), b"\xd9\x03abc", b"\xdc\x00\x02\x01\x02", b"\x91" * 40 + b"\xc0",
    b"\xa2\xff\xfe", b"\xc2", b"\xc4\x01x", b"\x81\x01\x02", b"\xff", b"\xcb" + bytes(8), b"\xda\x00\x01x",
    b"\xdd\x00\x00\x00\x01\x01", b"\xd4\x01x", b"\xc1", b"", b"\x91", b"\xa5ab", b"\xdc\xff\xff", b"\x91" * 2_000 + b"\xc0",
]  # fmt: skip
TEXTS = [b"", b"{}", b'{"x": 1}', b'{"x": 1', b"\xff\xfe", b"x" * 300]


class FrameStreams:
    def __init__(self, random: Random) -> None:
        self._random = random

    def stream(self) -> list[bytes]:
        """Frames, one after the other; the last may be cut off, and any may be broken."""
        random = self._random
        count = random.choice((1, 2, 3, 5, 8, 12))
        kind = random.choice((FrameKind.PUBLISH, FrameKind.FORWARD))
        frames = [self._frame(kind) for _ in range(count)]
        roll = random.random()
        if roll < 0.25:
            at = random.randrange(count)
            frames[at] = mutated(random, [frames[at]])
        if roll > 0.9:
            frames[-1] = frames[-1][: random.randrange(len(frames[-1]) + 1)]
        return frames

    def cuts(self, size: int) -> list[int]:
        """Where the stream is cut into what a socket brings."""
        random = self._random
        if size < 60 and random.random() < 0.1:
            return list(range(size))
        return sorted(random.randrange(size + 1) for _ in range(random.choice((0, 1, 2, 6))))

    def limits(self, frames: list[bytes]) -> Limits:
        """Default ones mostly, or such as one of the frames just fits, or just not."""
        random = self._random
        if random.random() < 0.7:
            return Limits()
        frame = random.choice(frames)
        near = random.choice((-1, 0, 1))
        if len(frame) < 13 or frame[4] == FrameKind.CONTROL:
            return Limits(control=max(0, len(frame) - 5 + near))
        size, _, head, text = struct.unpack_from("<IBII", frame)
        body = max(0, size - 9 - head - text)
        edges = {"header": head, "attributes": text, "body": body}
        name = random.choice(list(edges))
        limits = {name: min(max(0, edges[name] + near), 1 << 20)}
        if random.random() < 0.3:
            limits["control"] = 0  # then the frame is bounded by its parts alone
        return Limits(**limits)

    # ---- frames

    def _frame(self, kind: int) -> bytes:
        random = self._random
        roll = random.random()
        if roll < 0.12:
            return random.choice(GOOD)
        if roll < 0.16:
            kind = random.randrange(7)
        if kind == FrameKind.FORWARD:
            fields = [self._route(), self._text(), self._number(), self._number(), self._flag()]
        else:
            fields = [self._number(), self._number(), self._flag()]
        roll = random.random()
        if roll < 0.02:
            fields.append(self._number())
        elif roll < 0.04:
            fields.pop(random.randrange(len(fields)))
        head = self._array(len(fields)) + b"".join(fields)
        if roll > 0.98:
            head += b"\xc0"
        text, body = random.choice(TEXTS), random.randbytes(random.choice((0, 0, 3, 40)))
        lengths = [9 + len(head) + len(text) + len(body), len(head), len(text)]
        if random.random() < 0.02:
            lengths[random.randrange(3)] += random.choice((-9, -1, 1, 2**31))
        size, first, second = (length % 2**32 for length in lengths)
        return struct.pack("<IBII", size, kind, first, second) + head + text + body

    def _array(self, count: int) -> bytes:
        roll = self._random.random()
        if roll < 0.97:
            return bytes((0x90 + count,))
        return struct.pack(">BH", 0xDC, count) if roll < 0.985 else struct.pack(">BI", 0xDD, count)

    def _number(self) -> bytes:
        random = self._random
        roll = random.random()
        if roll < 0.97:
            value = random.choice(NUMBERS) if roll < 0.8 else random.randrange(2**63)
            return _unsigned(value, random.choice((0, 0, 0, 1, 2, 4, 8)))
        value = random.choice(BAD_NUMBERS)
        if roll < 0.98:
            return _unsigned(value, 8) if value > 0 else struct.pack(">Bq", 0xD3, value)
        others = (
            b"\xc0",
            b"\xca\x3f\x80\x00\x00",
            b"\xcb" + struct.pack(">d", 7.0),
            b"\xd0\x05",
            b"\xa11",
        )
        return random.choice(others)

    def _flag(self) -> bytes:
        roll = self._random.random()
        if roll < 0.98:
            return b"\xc2" if roll < 0.7 else b"\xc3"
        return self._random.choice((b"\xc0", b"\x00", b"\x01", b"\xc1", b""))

    def _route(self) -> bytes:
        random = self._random
        return random.choice(ROUTES[:12] if random.random() < 0.98 else ROUTES)

    def _text(self) -> bytes:
        random = self._random
        data = random.choice(NAMES).encode() if random.random() < 0.5 else b"ann/1"
        roll = random.random()
        if roll > 0.99:
            data = random.choice((b"\xff", b"\xc0\x80", b"a\xed\xa0\x80", b"\xe2\x82"))
        if len(data) < 32 and roll < 0.9:
            return bytes((0xA0 + len(data),)) + data
        if len(data) < 256 and roll < 0.95:
            return bytes((0xD9, len(data))) + data
        if roll < 0.985:
            return struct.pack(">BH", 0xDA, len(data)) + data
        return struct.pack(">BI", random.choice((0xDB, 0xC6)), len(data)) + data


def _unsigned(value: int, least: int) -> bytes:
    """A number in msgpack, in at least so many bytes behind the first."""
    if value < 128 and not least:
        return bytes((value,))
    for code, size in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)):
        if size >= least and value < 256**size:
            return bytes((code,)) + value.to_bytes(size, "big")
    raise AssertionError(value)
