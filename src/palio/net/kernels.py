"""Kernels, before a broker needs them: one that loads them when a batch comes is silent for seconds,
which is too long for links; one that compiles them, for half a minute."""

from __future__ import annotations

import logging
from threading import Thread

from palio.net.logs import told


def prepare() -> None:
    """In a broker's process. Where compiling is once, it begins when that is done."""
    from palio.matching import warmup

    reason = warmup.waiting()
    if reason is not None:
        told(logging.INFO, reason)
    if reason == warmup.ONCE:
        load()
    else:
        Thread(target=load, daemon=True).start()


def compile_once() -> None:
    """Where several brokers are to be started: here, and not in each of them."""
    from palio.matching import warmup

    if warmup.waiting() == warmup.ONCE:
        load()


def load() -> None:
    """Load them, or compile them."""
    from palio.matching import warmup
    from palio.protocol import runs

    warmup.warm()
    runs.warm()
