"""File descriptors: a broker needs one for each connection, and some for itself.

The soft limit of the process is raised to the hard one. If that is too small for [limits] connections,
the broker takes fewer connections: with no descriptor left, it could not answer /healthz, open the
files of its store, or refuse a connection with a reason.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from palio.net.config.values import HostLimits

RESERVED: Final = 128
"""For the store, listeners, neighbours, pages for machines, and connections that are refused."""


def raise_soft_limit() -> None:
    """Let this process open as many files as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _is_less(soft, hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # macOS takes less than its hard limit says
            return


def bounded(limits: HostLimits) -> HostLimits:
    """The limits with no more connections than there are descriptors for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits
    return replace(limits, connections=max(1, min(limits.connections, soft - RESERVED)))


def warnings(limits: HostLimits) -> Iterator[str]:
    """A sentence if the limit of the system is too small for [limits] connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.connections + RESERVED
    if hard != resource.RLIM_INFINITY and hard < needed:
        yield (
            f"this process may open {hard:,} files, and {limits.connections:,} connections ([limits] "
            f"connections) need {needed:,}: it takes {max(1, hard - RESERVED):,} connections; raise "
            f"the limit (ulimit -n, LimitNOFILE in systemd) or lower connections"
        )


def _is_less(soft: int, hard: int) -> bool:
    if soft == resource.RLIM_INFINITY:
        return False
    return hard == resource.RLIM_INFINITY or soft < hard
