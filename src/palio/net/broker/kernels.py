"""Loads the numba kernels before a broker needs them.

Loading takes seconds and compiling half a minute. A broker that did either when its first batch
arrives would be silent for too long, and its neighbours would take it for dead.
"""

from __future__ import annotations

import logging
import os
from functools import cache

from palio.net.monitoring.logs import log_event


@cache  # once a process, and not again in what it forks
def prepare() -> None:
    """Load in a broker's process what its first clients would wait for, before it listens."""
    from palio.matching import warmup
    from palio.net.broker.rehearsal import rehearse
    from palio.protocol.wire import encode

    reason = warmup.waiting()
    if reason is not None:
        log_event(logging.INFO, reason)
    encode.warm()
    rehearse(os.urandom)


@cache
def prepare_mqtt() -> None:
    """The same for a broker that listens for clients of MQTT."""
    from palio.protocol.mqtt import runs

    runs.warm()


def load() -> None:
    """Load all kernels from the cache, or compile them."""
    from palio.matching import warmup
    from palio.net.broker.rehearsal import rehearse
    from palio.protocol.wire import encode

    warmup.warm()
    encode.warm()
    prepare_mqtt()
    rehearse(os.urandom)
