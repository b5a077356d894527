"""Loads the numba kernels before a broker needs them.

Loading takes seconds and compiling half a minute. A broker that did either when its first batch
arrives would be silent for too long, and its neighbours would take it for dead.
"""

from __future__ import annotations

import logging
from threading import Thread

from palio.net.monitoring.logs import log_event


def prepare() -> None:
    """Load the kernels in a broker's process.

    If they have to be compiled and the cache can keep them, the broker waits for it: that happens
    once on a machine. Otherwise a thread loads or compiles them while the broker starts.
    """
    from palio.matching import warmup

    reason = warmup.waiting()
    if reason is not None:
        log_event(logging.INFO, reason)
    if reason == warmup.ONCE:
        load()
    else:
        Thread(target=load, daemon=True).start()


def compile_once() -> None:
    """Compile the kernels here, so that several brokers that start next do not each do it."""
    from palio.matching import warmup

    if warmup.waiting() == warmup.ONCE:
        load()


def load() -> None:
    """Load the kernels from the cache, or compile them."""
    from palio.matching import warmup
    from palio.protocol.wire import encode

    warmup.warm()
    encode.warm()
