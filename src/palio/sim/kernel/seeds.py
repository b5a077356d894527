"""Many seeds: run them in their order, in several processes when they are many."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from palio.errors import PalioError

SEEDS_MIN = 20
"""Fewer are not worth a second process."""
CHUNK_MAX = 16

T = TypeVar("T")


def over_seeds(
    task: Callable[[int], T], seeds: range, *, processes: int | None = None
) -> Iterator[T]:
    """What a task gives for each seed; with several processes it must be picklable."""
    count = processes or (1 if len(seeds) < SEEDS_MIN else os.cpu_count() or 1)
    if count < 1:
        raise PalioError(f"a simulation needs at least 1 process, not {count}")
    if count == 1:
        yield from map(task, seeds)
        return
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(count, initializer=_ignore_interrupts) as pool:
        try:
            chunk = max(1, min(CHUNK_MAX, len(seeds) // (8 * count)))
            yield from pool.map(task, seeds, chunksize=chunk)
        except BaseException:  # an interrupt, or nobody wants the rest
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; the one that waits for the others ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
