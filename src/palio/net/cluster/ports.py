"""Free ports of this machine's loopback address."""

from __future__ import annotations

import random
import socket
from collections import deque

from palio.errors import PalioError

HOST = "127.0.0.1"
_PORTS = range(20_000, 32_000)
"""Where free ports are looked for: below those that the system gives to outgoing connections."""


_reserved: deque[socket.socket] = deque()
"""Bound and never listening: brokers may listen beside them, and no other process reserves them."""
_RESERVED_MAX = 256


def free_ports(first: int, count: int) -> list[int]:
    """So many ports in a row that are free now; with `first` = 0 any that are free, and reserved."""
    if first == 0:
        candidates = random.SystemRandom().sample(_PORTS, len(_PORTS))
        free = (port for port in candidates if _reserve(port))
        return [next(free) for _ in range(count)]
    for port in range(first, first + count):
        if (reason := _why_taken(port)) is not None:
            raise PalioError(
                f"port {port} cannot be used: {reason}. The brokers need {count} ports from {first} "
                f"on: choose another first port, or 0 for any that are free"
            )
    return list(range(first, first + count))


def _reserve(port: int) -> bool:
    reservation = socket.socket()
    try:
        reservation.bind((HOST, port))
    except OSError:
        reservation.close()
        return False
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # whoever listens sets it too
    _reserved.append(reservation)
    if len(_reserved) > _RESERVED_MAX:
        _reserved.popleft().close()
    return True


def _why_taken(port: int) -> str | None:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except OverflowError:
        return "ports end at 65535"
    except OSError as error:
        return error.strerror
    return None


def answers(port: int) -> bool:
    """Somebody listens there."""
    try:
        with socket.create_connection((HOST, port), timeout=1.0):
            return True
    except OSError:
        return False
