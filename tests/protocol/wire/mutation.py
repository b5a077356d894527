"""Good bytes made bad, for whoever must survive them."""

from __future__ import annotations

import random


def mutated(draw: random.Random, good: list[bytes]) -> bytes:
    """A good text with a few bytes changed, dropped, doubled or taken from another; or noise."""
    if draw.random() < 0.1:
        return draw.randbytes(draw.randrange(60))
    data = bytearray(draw.choice(good))
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(6)
        if kind == 0:
            data[at : at + 1] = bytes((draw.randrange(256),))
        elif kind == 1:
            data[at : at + 1] = bytes(
                (draw.choice(b"\x00\x7f\x80\x90\xc0\xc1\xd9\xdc\xdd\xdf\xff"),)
            )
        elif kind == 2:
            del data[at : at + draw.randrange(1, 5)]
        elif kind == 3:
            data[at:at] = draw.randbytes(draw.randrange(1, 5))
        elif kind == 4:
            data[at:at] = data[draw.randrange(len(data) + 1) :][:12]
        else:
            other = draw.choice(good)
            data[at:] = other[draw.randrange(len(other) + 1) :]
    return bytes(data)
