"""Why a broker takes nothing for the time being: a full disk, a database or a lease that is away.

Each kind of outage begins with its error and ends by itself; the broker takes messages when none is
left.
"""

from __future__ import annotations

import logging
from typing import Final

from palio.net.listeners.listener import Dismissal
from palio.net.monitoring.logs import log_event
from palio.net.storage.store import LeaseExpired, StoreFull, StoreOutage, StoreUnreachable
from palio.protocol.wire.codes import CloseCode

_KINDS: Final[dict[type[StoreOutage], tuple[CloseCode, str]]] = {
    StoreFull: (CloseCode.STORE_FULL, "the broker takes nothing: the store is full"),
    StoreUnreachable: (
        CloseCode.STORE_UNREACHABLE,
        "the broker takes nothing: the store cannot be reached",
    ),
    LeaseExpired: (CloseCode.LEASE_EXPIRED, "the broker takes nothing: its lease has expired"),
}
"""By the error that begins it: the code for connections, and the log event."""
OF_COMMITS: Final = (StoreFull, StoreUnreachable)
"""Those that end when a commit succeeds."""


class Outages:
    def __init__(self) -> None:
        self._current: dict[type[StoreOutage], Dismissal] = {}

    @property
    def current(self) -> Dismissal | None:
        """One that is not over; None: the broker takes messages."""
        return next(iter(self._current.values()), None)

    def begin(self, error: StoreOutage) -> Dismissal:
        """It begins or goes on; gives what connections are told."""
        code, event = _KINDS[type(error)]
        if type(error) not in self._current:
            log_event(logging.ERROR, event, reason=error)
        self._current[type(error)] = outage = Dismissal(code, str(error))
        return outage

    def end(self, *kinds: type[StoreOutage]) -> None:
        had_any = self.current is not None
        for kind in kinds:
            self._current.pop(kind, None)
        if had_any and self.current is None:
            log_event(logging.INFO, "the outage is over: the broker takes messages")
