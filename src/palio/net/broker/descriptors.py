"""File descriptors: a broker needs one for each connection, and some for itself.

The soft limit of the process is raised to the hard one. If that is too small for [limits] connections
and strangers, the broker takes fewer: with no descriptor left, it could not answer /healthz, open the
files of its store, or refuse a connection with a reason. A stranger needs two descriptors: one for its
place, and one while the socket of the last stranger in this place is closed.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec

from palio.net.config.values import Config
from palio.protocol.broker.settings import ConnectionBounds

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


def bounded(config: Config) -> Config:
    """The configuration with no more connections than there are descriptors for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return config
    bounds = _fitting(config.settings.connections, soft - RESERVED)
    return replace(
        config,
        settings=msgspec.structs.replace(config.settings, connections=bounds),
        limits=replace(config.limits, closing=bounds.strangers_max),
    )


def warnings(bounds: ConnectionBounds) -> Iterator[str]:
    """A sentence if the limit of the system is too small for [limits] connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _needed(bounds) + RESERVED
    if hard != resource.RLIM_INFINITY and hard < needed:
        fitting = _fitting(bounds, hard - RESERVED)
        yield (
            f"this process may open {hard:,} files, and {bounds.clients_max:,} connections and "
            f"{bounds.strangers_max:,} strangers ([limits]) need {needed:,}: it takes "
            f"{fitting.clients_max:,} connections and {fitting.strangers_max:,} strangers; raise the "
            f"limit (ulimit -n, LimitNOFILE in systemd) or lower connections and strangers"
        )


def _needed(bounds: ConnectionBounds) -> int:
    return bounds.clients_max + 2 * bounds.strangers_max


def _fitting(bounds: ConnectionBounds, room: int) -> ConnectionBounds:
    """Bounds that need so many descriptors; an identity keeps its part."""
    if _needed(bounds) <= room:
        return bounds
    strangers = max(1, min(bounds.strangers_max, room // 8))
    clients = max(1, min(bounds.clients_max, room - 2 * strangers))
    identity = -(-bounds.identity_max * clients // bounds.clients_max)
    return msgspec.structs.replace(
        bounds, clients_max=clients, identity_max=max(1, identity), strangers_max=strangers
    )


def _is_less(soft: int, hard: int) -> bool:
    if soft == resource.RLIM_INFINITY:
        return False
    return hard == resource.RLIM_INFINITY or soft < hard
