"""How long and with how many bytes a connection may keep the broker waiting.

    silence        Ping after `keepalive`, the end after three times that
    stranger       not known yet: it has a place among few, bytes and a time for its handshake
    frame          begun and not complete: it must go on, and all of them together are bounded

A stranger's time begins with the connection, and nothing that it sends extends it. When all places of
strangers are taken, the newest connection gets that of the oldest. So whoever completes the handshake at
once gets in, even while an attacker holds all places and refills them; a broker that refused the newest
would let in only whoever hits the moment at which a place is free.

When unfinished frames have too many bytes, the largest of those end that send most.

Times in which the broker does not read count for nobody.
"""

from __future__ import annotations

from collections.abc import Container

from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Link, Links
from palio.protocol.broker.settings import ConnectionBounds
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import Ping

STRANGER_BYTES_MAX = 64 << 10
"""What a connection may send before its handshake is complete."""
FRAME_PROGRESS_BYTES = 64 << 10
"""So much of a frame must arrive in `frame_us`: 2 KB a second, if that is 30 s."""
_ROOM = 32
"""When unfinished frames are too large, this fraction is freed at once: it takes a look at all."""


class _Stranger:
    __slots__ = ("bytes", "due_us", "link")

    def __init__(self, link: Link, due_us: int) -> None:
        self.link = link
        self.due_us = due_us
        self.bytes = 0


class _UnfinishedFrame:
    __slots__ = ("bytes", "due_us", "link", "progress")

    def __init__(self, link: Link, due_us: int) -> None:
        self.link = link
        self.due_us = due_us
        self.bytes = 0
        self.progress = 0
        """Its bytes when `due_us` was set."""


class LinkGuard:
    """`backlogs` has the links that may not be read because their requests wait."""

    def __init__(
        self,
        links: Links,
        output: Output,
        backlogs: Container[int],
        bounds: ConnectionBounds,
        keepalive_us: int,
    ) -> None:
        self.watched: set[int] = set()
        """Links for which `arrived` must be called, whatever arrives; also if `reader.waiting` is set."""
        self.unfinished_bytes = 0
        self._links, self._output, self._backlogs = links, output, backlogs
        self._bounds, self._keepalive_us = bounds, keepalive_us
        self._strangers: dict[int, _Stranger] = {}  # the oldest first
        self._frames: dict[int, _UnfinishedFrame] = {}
        self._paused_us: int | None = None  # since when the host reads from no connection

    @property
    def strangers(self) -> int:
        """How many connections have not completed their handshake."""
        return len(self._strangers)

    # ---- coming and going

    def opened(self, link: Link, now_us: int) -> None:
        """A connection is open that this broker did not dial."""
        if len(self._strangers) >= self._bounds.strangers_max:
            oldest = self._strangers[next(iter(self._strangers))].link
            reason = (
                f"{self._bounds.strangers_max} newer connections came before this one completed its "
                "handshake"
            )
            self._close(oldest, CloseCode.DISPLACED, reason)
        self._strangers[link.number] = _Stranger(link, now_us + self._bounds.handshake_us)
        self.watched.add(link.number)

    def forget(self, link: Link) -> None:
        """A connection is closed."""
        self._strangers.pop(link.number, None)
        frame = self._frames.pop(link.number, None)
        if frame is not None:
            self.unfinished_bytes -= frame.bytes
        self.watched.discard(link.number)

    def _close(self, link: Link, code: CloseCode, reason: str) -> None:
        self.forget(link)
        self._links.close(link, code, reason)

    # ---- bytes

    def arrived(self, link: Link, size: int, now_us: int) -> None:
        """So many bytes came over a connection. Its reader has read them, or will (scheduler.py)."""
        if link.reader.waiting or link.number in self.watched:
            self._received(link, size, now_us)

    def _received(self, link: Link, size: int, now_us: int) -> None:
        number = link.number
        if number not in self._links.open:
            return
        stranger = self._strangers.get(number)
        if stranger is not None:
            stranger.bytes += size
            if link.publisher or link.neighbour:
                del self._strangers[number]
            elif stranger.bytes > STRANGER_BYTES_MAX:
                reason = f"more than {STRANGER_BYTES_MAX:,} bytes before the handshake was complete"
                self._close(link, CloseCode.PROTOCOL, reason)
                return
        self._note_frame(link, now_us)
        if number in self._frames or number in self._strangers:
            self.watched.add(number)
        else:
            self.watched.discard(number)
        if self.unfinished_bytes > self._bounds.unfinished_bytes:
            self._relieve()

    def _note_frame(self, link: Link, now_us: int) -> None:
        waiting, is_continued = link.reader.waiting, link.reader.is_continued
        frame = self._frames.get(link.number)
        due_us = now_us + self._bounds.frame_us
        if frame is not None and not (waiting and is_continued):
            self.unfinished_bytes -= self._frames.pop(link.number).bytes
            frame = None
        if not waiting:
            return
        if frame is None:
            frame = self._frames[link.number] = _UnfinishedFrame(link, due_us)
        self.unfinished_bytes += waiting - frame.bytes
        frame.bytes = waiting
        if waiting - frame.progress >= FRAME_PROGRESS_BYTES:
            frame.progress, frame.due_us = waiting, due_us

    def _relieve(self) -> None:
        """Close connections with large unfinished frames, first of those that have most of them."""
        bytes_max = self._bounds.unfinished_bytes
        totals: dict[str, int] = {}
        for frame in self._frames.values():
            owner = _owner(frame.link)
            totals[owner] = totals.get(owner, 0) + frame.bytes
        order = sorted(self._frames.values(), key=lambda x: (-totals[_owner(x.link)], -x.bytes))
        for frame in order:
            if self.unfinished_bytes <= bytes_max - bytes_max // _ROOM:
                return
            reason = (
                f"unfinished frames of all connections have more than {bytes_max:,} bytes, and this "
                "one is among the largest"
            )
            self._close(frame.link, CloseCode.OVERLOAD, reason)

    # ---- time

    def pause(self, now_us: int) -> None:
        """The host reads from nobody for a while."""
        if self._paused_us is None:
            self._paused_us = now_us

    @property
    def is_listening(self) -> bool:
        """Whether the host reads."""
        return self._paused_us is None

    def resume(self, now_us: int) -> int:
        """The host reads again: what was not heard meanwhile is no silence of the other ends. Returns
        for how long it did not read."""
        if self._paused_us is None:
            return 0
        missed_us, self._paused_us = now_us - self._paused_us, None
        self.listen_from(now_us, missed_us)
        return missed_us

    def listen_from(self, now_us: int, missed_us: int) -> None:
        """This broker has not listened for so long until now."""
        for link in self._links:
            link.move_clock(missed_us, now_us)
        for stranger in self._strangers.values():
            stranger.due_us += missed_us
        for frame in self._frames.values():
            frame.due_us += missed_us

    @property
    def deadlines_us(self) -> list[int]:
        """When to call `wake`, at the first of these."""
        found = [
            max(x.heard_us, x.pinged_us) + self._keepalive_us for x in self._links.pinged.values()
        ]
        if self._paused_us is None:
            found += [frame.due_us for frame in self._frames.values()]
            for stranger in self._strangers.values():
                found.append(stranger.due_us)
                break
        return found

    def wake(self, now_us: int) -> None:
        """Ping who is silent, and close who keeps the broker waiting for too long."""
        keepalive_us, is_listening = self._keepalive_us, self._paused_us is None
        for link in [*self._links.pinged.values()]:
            if link.number in self._backlogs:  # it may not be read, so it is not silent
                link.heard_us = now_us
                if link.number in self._frames:
                    self._frames[link.number].due_us = now_us + self._bounds.frame_us
            elif is_listening and now_us - link.heard_us >= 3 * keepalive_us:
                reason = f"nothing was heard for {3 * keepalive_us / 1e6:g} s"
                self._close(link, CloseCode.SILENT, reason)
            elif now_us - max(link.heard_us, link.pinged_us) >= keepalive_us:
                link.pinged_us = now_us
                self._output.say(link.number, Ping(0))
        if is_listening:
            self._end_late(now_us)

    def _end_late(self, now_us: int) -> None:
        bounds = self._bounds
        for stranger in list(self._strangers.values()):
            if stranger.due_us > now_us:
                break
            reason = f"the handshake was not complete after {bounds.handshake_us / 1e6:g} s"
            self._close(stranger.link, CloseCode.HANDSHAKE_TIMEOUT, reason)
        late = [frame for frame in self._frames.values() if frame.due_us <= now_us]
        for frame in late:
            reason = (
                f"a frame was not complete, and did not grow by {FRAME_PROGRESS_BYTES:,} bytes, in "
                f"{bounds.frame_us / 1e6:g} s"
            )
            self._close(frame.link, CloseCode.FRAME_TIMEOUT, reason)


def _owner(link: Link) -> str:
    """Whose frame it is: a client's identity, or a neighbour."""
    return link.identity.name if link.identity is not None else f"/{link.neighbour}"
