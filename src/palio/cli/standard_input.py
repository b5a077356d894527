"""Standard input as lines for asyncio."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from threading import Thread

_PIECE_BYTES = 1 << 16


async def input_lines() -> AsyncIterator[bytes]:
    """The lines of standard input, as they come."""
    pieces: asyncio.Queue[bytes] = asyncio.Queue(1)
    loop = asyncio.get_running_loop()
    # The thread blocks and the loop does not: the connection stays alive, and Ctrl-C works.
    Thread(target=_pump, args=(pieces, loop), daemon=True).start()
    rest = b""
    while piece := await pieces.get():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest


def _pump(pieces: asyncio.Queue[bytes], loop: asyncio.AbstractEventLoop) -> None:
    descriptor = sys.stdin.fileno()
    piece = b"-"
    while piece and not loop.is_closed():
        piece = os.read(descriptor, _PIECE_BYTES)
        asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()
