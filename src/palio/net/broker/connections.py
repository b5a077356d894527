"""The open connections of a broker, by link number.

Every connection that the host accepts gets the next number and keeps it until it is closed; no
number is used twice. What always holds: the bytes that wait for one connection are bounded, because
one that stays congested with more than `stuck_bytes` waiting is closed.
"""

from __future__ import annotations

import asyncio
import logging

from palio.net.listeners.listener import Dismissal, ServedConnection
from palio.net.monitoring.counts import HostCounts
from palio.net.monitoring.logs import log_event
from palio.protocol.broker.effects import Close


class Connections:
    """`stop_s`: how long a connection that is closed may take to send its last bytes."""

    def __init__(self, stuck_bytes: int, counts: HostCounts, stop_s: float) -> None:
        self._stuck_bytes, self._counts, self._stop_s = stuck_bytes, counts, stop_s
        self._open: dict[int, ServedConnection] = {}
        self._sockets: set[asyncio.Future[None]] = set()  # also of connections that are closing
        self._unread: set[int] = set()  # links that are not read for now
        self._last_link = 0
        self.is_reading_paused = False

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, link: int) -> bool:
        return link in self._open

    # ---- coming and going

    def add(self, connection: ServedConnection) -> int:
        """Accept a connection; gives its link number."""
        self._track(connection)
        self._last_link = link = self._last_link + 1
        self._open[link] = connection
        if connection.dials is None:
            self._counts.accepted += 1
        else:
            self._counts.dialled += 1
        log_event(logging.DEBUG, "connection open", link=link, peer=connection.peer)
        if self.is_reading_paused:
            connection.pause_reading()
        return link

    def refuse(self, connection: ServedConnection, why: Dismissal) -> None:
        self._track(connection)
        self._counts.refused += 1
        log_event(
            logging.WARNING, "connection refused",
            peer=connection.peer, code=why.code.value, reason=why.reason,
        )  # fmt: skip
        connection.dismiss(why, self._stop_s)

    def remove(self, link: int, error: Exception | None) -> bool:
        """The socket is closed; tells whether the connection was still open for the host."""
        connection = self._open.pop(link, None)
        self._unread.discard(link)
        if connection is None:
            return False
        reason = error or ""
        log_event(logging.INFO, "connection lost", link=link, peer=connection.peer, reason=reason)
        return True

    def close(self, link: int, close: Close) -> None:
        """Close a connection whose other end has been told why."""
        connection = self._open.pop(link, None)
        if connection is not None:
            log_event(
                logging.INFO,
                "connection closed",
                link=link,
                peer=connection.peer,
                code=close.code,
                reason=close.reason,
            )
            connection.finish(self._stop_s)

    def dismiss_all(self, why: Dismissal) -> list[int]:
        """Close all connections, telling the other ends why. Returns their link numbers."""
        links = list(self._open)
        for link in links:
            self._open.pop(link).dismiss(why, self._stop_s)
        return links

    async def wait_closed(self) -> None:
        """Wait, within bounds, until all sockets are closed."""
        if self._sockets:
            await asyncio.wait(self._sockets, timeout=2 * self._stop_s)

    def _track(self, connection: ServedConnection) -> None:
        self._sockets.add(connection.closed)
        connection.closed.add_done_callback(self._sockets.discard)

    # ---- bytes

    def write(self, link: int, frames: list[bytes]) -> bool:
        """Send frames; False: the connection was stuck and is closed."""
        connection = self._open.get(link)
        if connection is None:
            return True
        # Only one that was congested before can be stuck: a single turn may bring that much.
        was_congested = connection.is_congested
        self._counts.writes += 1
        self._counts.bytes_out += connection.write(frames)
        if not was_congested or connection.waiting_bytes <= self._stuck_bytes:
            return True
        del self._open[link]
        self._counts.closed_stuck += 1
        log_event(
            logging.WARNING, "connection closed: the other end does not read",
            link=link, peer=connection.peer, waiting_bytes=connection.waiting_bytes,
        )  # fmt: skip
        connection.abort()
        return False

    def set_reading(self, link: int, is_read: bool) -> None:
        """Read from a connection, or not for now: too much that came over it waits."""
        connection = self._open.get(link)
        if connection is None:
            return
        if not is_read:
            self._unread.add(link)
            connection.pause_reading()
        else:
            self._unread.discard(link)
            if not self.is_reading_paused:
                connection.resume_reading()

    def pause_reading(self) -> None:
        if not self.is_reading_paused:
            self.is_reading_paused = True
            self._counts.reading_pauses += 1
            for connection in self._open.values():
                connection.pause_reading()

    def resume_reading(self) -> None:
        if self.is_reading_paused:
            self.is_reading_paused = False
            for link, connection in self._open.items():
                if link not in self._unread:
                    connection.resume_reading()
