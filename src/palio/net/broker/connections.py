"""The open connections of a broker, by link number.

Every connection that the host accepts gets the next number and keeps it until it is closed; no
number is used twice. What always holds: the bytes that wait to be sent are bounded. One connection that
stays congested with more than `stuck_bytes` waiting is closed; when more than `unsent_bytes` wait on all
congested ones, those with most are closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from palio.net.config.values import HostLimits
from palio.net.listeners.listener import Dismissal, ServedConnection
from palio.net.monitoring.counts import HostCounts
from palio.net.monitoring.logs import log_event
from palio.protocol.broker.effects import Close

_LOOK_S = 0.1
"""How often the bytes that wait on all congested connections are added up."""
_CONGESTED_S = 1.0
"""A connection that is congested for so long is slow."""

TURN_BYTES_MAX = 256 << 10
"""Bytes that a turn gets, besides one read of each socket."""
LOST_AT_ONCE = 64
"""Connections whose loss one turn processes."""


class Connections:
    """`stop_s`: how long a connection that is closed may take to send its last bytes."""

    def __init__(self, limits: HostLimits, counts: HostCounts, stop_s: float) -> None:
        self._limits, self._counts, self._stop_s = limits, counts, stop_s
        self._open: dict[int, ServedConnection] = {}
        self._sockets: set[asyncio.Future[None]] = set()  # also of connections that are closing
        self._unread: set[int] = set()  # links that are not read for now
        self.lost: deque[tuple[int, Exception | None]] = deque()
        """Links whose sockets are closed, and why; `remove_lost` removes them."""
        self._resting: set[int] = set()
        """Links that are read again in the next turn."""
        self._turn_bytes = 0
        self._congested: dict[int, float] = {}  # since when
        self._looked_s = 0.0  # when the unsent bytes of all were last added up
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
        if self._is_closing_much():
            connection.abort()
        else:
            connection.dismiss(why, self._stop_s)

    def _is_closing_much(self) -> bool:
        """Sockets of refused or closed connections must not use up the descriptors."""
        return len(self._sockets) - len(self._open) > self._limits.closing

    def remove_lost(self) -> list[int]:
        """Remove some of the connections whose sockets are closed. Gives the link numbers of those that
        were still open for the host."""
        links = []
        for _ in range(min(len(self.lost), LOST_AT_ONCE)):
            link, error = self.lost.popleft()
            connection = self._pop(link)
            if connection is not None:
                links.append(link)
                log_event(
                    logging.INFO, "connection lost",
                    link=link, peer=connection.peer, reason=error or "",
                )  # fmt: skip
        return links

    def close(self, link: int, close: Close) -> None:
        """Close a connection whose other end has been told why."""
        connection = self._pop(link)
        if connection is not None:
            self._counts.closed[close.code] += 1
            log_event(
                logging.INFO,
                "connection closed",
                link=link,
                peer=connection.peer,
                code=close.code,
                reason=close.reason,
            )
            if self._is_closing_much():
                connection.abort()
            else:
                connection.finish(self._stop_s)

    def _pop(self, link: int) -> ServedConnection | None:
        self._unread.discard(link)
        self._congested.pop(link, None)
        return self._open.pop(link, None)

    def dismiss_all(self, why: Dismissal) -> list[int]:
        """Close all connections, telling the other ends why. Returns their link numbers."""
        links = list(self._open)
        for link in links:
            connection = self._pop(link)
            if connection is not None:
                connection.dismiss(why, self._stop_s)
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
        if not was_congested or connection.waiting_bytes <= self._limits.stuck_bytes:
            return True
        self._counts.closed_stuck += 1
        self._cut(link, connection)
        return False

    def _cut(self, link: int, connection: ServedConnection) -> None:
        log_event(
            logging.WARNING, "connection closed: the other end does not read",
            link=link, peer=connection.peer, waiting_bytes=connection.waiting_bytes,
        )  # fmt: skip
        self._pop(link)
        connection.abort()

    def set_congested(self, link: int, is_congested: bool) -> None:
        if is_congested:
            self._congested.setdefault(link, asyncio.get_running_loop().time())
        else:
            self._congested.pop(link, None)

    def cut_unsent(self) -> list[int]:
        """Close connections if too much waits to be sent on all congested ones: first those with most,
        unless they are congested only now, as all receivers of a large message are. Gives their link
        numbers."""
        if not self._congested:
            return []
        now_s = asyncio.get_running_loop().time()
        if now_s < self._looked_s + _LOOK_S:
            return []
        self._looked_s = now_s
        waiting = {link: self._open[link].waiting_bytes for link in self._congested}
        excess = sum(waiting.values()) - self._limits.unsent_bytes
        closed = []
        for link in sorted(waiting, key=lambda x: -waiting[x]):
            if excess > 0 and now_s >= self._congested[link] + _CONGESTED_S:
                excess -= waiting[link]
                self._counts.closed_unsent += 1
                self._cut(link, self._open[link])
                closed.append(link)
        return closed

    def received(self, link: int, size: int) -> None:
        """So many bytes came over a connection. When a turn has got much, each connection that gives
        more waits for the next one: a socket can give 8 MiB in one poll."""
        self._counts.bytes_in += size
        self._turn_bytes += size
        if self._turn_bytes > TURN_BYTES_MAX and link not in self._resting:
            self._resting.add(link)
            self._open[link].pause_reading()

    def end_turn(self) -> None:
        """The next turn may get as much again."""
        self._turn_bytes = 0
        if self._resting:
            resting, self._resting = self._resting, set()
            for link in resting - self._unread:
                if link in self._open and not self.is_reading_paused:
                    self._open[link].resume_reading()

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
