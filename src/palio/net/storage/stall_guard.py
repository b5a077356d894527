"""Ends statements that take too long, whatever the server waits for.

A commit whose synchronous standby is gone waits for ever, and no timeout of the server ends that. So a
thread looks at the statements that are under way. It first cancels one that is late: the server then
gives up its wait, and the session can end, so that repeated commits do not fill the server with
sessions. If that does not help either, it shuts the socket down.

A commit that was cancelled while it waited for a standby is committed on the primary alone. The server
says so with a warning; whoever commits must treat any warning as "not acknowledged".
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

_LOOK_S = 0.25
_CANCEL_S = 1.0


class _Statement:
    __slots__ = ("connection", "deadline", "is_cancelled")

    def __init__(self, connection: psycopg.Connection[Any], deadline: float) -> None:
        self.connection, self.deadline = connection, deadline
        self.is_cancelled = False


class StallGuard:
    def __init__(self) -> None:
        self._under_way: dict[int, _Statement] = {}  # by thread: each has at most one
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="palio-stall-guard", daemon=True).start()

    @contextmanager
    def watching(self, connection: psycopg.Connection[Any], limit_s: float) -> Iterator[None]:
        """Statements of the block end within `limit_s` seconds and a little; then with an error."""
        me = threading.get_ident()
        self._under_way[me] = _Statement(connection, time.monotonic() + limit_s)
        try:
            yield
        finally:
            del self._under_way[me]

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(_LOOK_S):
            now = time.monotonic()
            for statement in list(self._under_way.values()):
                if now > statement.deadline:
                    _end(statement)
                    statement.deadline = now + _CANCEL_S


def _end(statement: _Statement) -> None:
    if not statement.is_cancelled:
        statement.is_cancelled = True
        with contextlib.suppress(psycopg.Error):
            statement.connection.cancel_safe(timeout=_CANCEL_S)
        return
    try:
        # The thread that waits owns the descriptor: a copy is shut down, which wakes the thread.
        with socket.socket(fileno=os.dup(statement.connection.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)
    except (psycopg.Error, OSError):  # it ended by itself
        return
