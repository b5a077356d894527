"""The links to other brokers, and the messages that wait for each.

A link has credit: so many messages may be in flight. The receiver says how many in the handshake, and
grants more as messages arrive. Further messages wait in queues, which are bounded in messages and
bytes. When the queue of live messages is full, the oldest is dropped; when that of carried ones is full,
the new one is refused and its origin resends it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from palio.protocol.broker.effects import Output
from palio.protocol.broker.links import Link, Links
from palio.protocol.broker.settings import Settings
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.control import CloseCode, ControlMessage, Credit
from palio.protocol.wire.encode import EncodedFrames

DEDUP_WINDOW = 100_000
"""How many live messages are remembered."""


class _FrameQueue:
    """Frames that wait for credit."""

    __slots__ = ("bytes", "frames")

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.frames)

    def add(self, frame: bytes) -> None:
        self.frames.append(frame)
        self.bytes += len(frame)

    def take(self) -> bytes:
        frame = self.frames.popleft()
        self.bytes -= len(frame)
        return frame


class NeighbourLinks:
    def __init__(self, settings: Settings, links: Links, output: Output) -> None:
        self._settings = settings
        self._all = links
        self._output = output
        self._links: dict[str, Link] = {}
        self._waiting: dict[str, _FrameQueue] = {}
        self._carrying: dict[str, _FrameQueue] = {}
        self.refused = 0
        """Carried messages for which the queue of a neighbour had no room."""

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, name: str) -> bool:
        return name in self._links

    @property
    def weights(self) -> dict[str, float]:
        """The linked neighbours, with the weights of their links."""
        return {name: self._settings.neighbours[name].weight for name in self._links}

    @property
    def master(self) -> str:
        """The linked master of this broker in a hierarchy; empty: there is none."""
        return next((n for n in self._links if self.role(n) is NeighbourRole.MASTER), "")

    @property
    def roles(self) -> dict[str, int]:
        """How many linked neighbours there are of each role."""
        found = [self.role(name) for name in self._links]
        return {role.value: found.count(role) for role in NeighbourRole}

    def role(self, name: str) -> NeighbourRole:
        """What a neighbour is to this broker."""
        return self._settings.role_of(name)

    @property
    def waiting_bytes(self) -> int:
        """Of all queues."""
        return sum(x.bytes for x in (*self._waiting.values(), *self._carrying.values()))

    # ---- coming and going

    def join(self, link: Link, name: str, now_us: int) -> bool:
        """Add the link of an authenticated neighbour. False: the existing link is kept instead."""
        known = self._links.get(name)
        if known is not None and self._is_preferred(known, link, name, now_us):
            reason = f"broker {self._settings.name!r} keeps the connection that it has"
            self._all.close(link, CloseCode.REPLACED, reason)
            return False
        if known is not None:
            self._all.close(known, CloseCode.REPLACED, f"broker {name!r} has a newer connection")
        link.neighbour, link.handshake = name, None
        self._links[name] = link
        self._waiting[name], self._carrying[name] = _FrameQueue(), _FrameQueue()
        return True

    def _is_preferred(self, known: Link, new: Link, name: str, now_us: int) -> bool:
        """Whether to keep the older connection. If both ends dialled and the older is not silent,
        keep the one dialled by the smaller name; otherwise the newer."""
        is_crossed = (known.dialled is None) != (new.dialled is None)
        mine_first = self._settings.name < name
        is_fresh = now_us - known.heard_us < self._settings.keepalive_us
        return is_crossed and is_fresh and (known.dialled is not None) is mine_first

    def leave(self, link: Link) -> bool:
        """Remove a link. False: the neighbour already has another one."""
        name = link.neighbour
        if self._links.get(name) is not link:
            return False
        del self._links[name], self._waiting[name], self._carrying[name]
        return True

    def close(self, name: str, code: CloseCode, reason: str) -> None:
        """Close the link to a neighbour."""
        link = self._links.get(name)
        if link is not None:
            self._all.close(link, code, reason)

    # ---- sending

    def say(self, name: str, message: ControlMessage) -> None:
        link = self._links.get(name)
        if link is not None:
            self._output.say(link.number, message)

    def send(self, name: str, frames: EncodedFrames) -> int:
        """Send live messages, or queue them for credit. Returns how many were not dropped."""
        link, count = self._links.get(name), len(frames.ends)
        if link is None:
            return 0
        if link.credit >= count and not link.is_congested:
            link.credit -= count
            self._output.write(link.number, frames.data)
            return count
        waiting = self._waiting[name]
        for begin, end in pairwise([0, *frames.ends]):
            if link.credit > 0 and not link.is_congested:
                link.credit -= 1
                self._output.write(link.number, frames.data[begin:end])
            else:
                waiting.add(frames.data[begin:end])
        messages_max, bytes_max = self._settings.waiting_max, self._settings.waiting.queue_bytes
        dropped = 0
        while len(waiting.frames) > messages_max or waiting.bytes > bytes_max:
            waiting.take()
            dropped += 1
        return max(0, count - dropped)

    def carry(self, name: str, frame: bytes) -> bool:
        """Send a carried message, or queue it for credit. Queued frames keep their order; when the
        queue is full the new frame is refused (False)."""
        link = self._links.get(name)
        if link is None:
            return False
        if link.credit > 0 and not link.is_congested:
            link.credit -= 1
            self._output.write(link.number, frame)
            return True
        waiting = self._carrying[name]
        size = waiting.bytes + len(frame)
        if (
            len(waiting.frames) >= self._settings.waiting_max
            or size > self._settings.waiting.queue_bytes
        ):
            self.refused += 1
            return False
        waiting.add(frame)
        return True

    # ---- flow control

    def grant_credit(self, link: Link, count: int) -> None:
        """Add credit from a neighbour, and send what waits for it."""
        link.credit += count
        for waiting in (self._carrying[link.neighbour], self._waiting[link.neighbour]):
            while link.credit > 0 and waiting.frames and not link.is_congested:
                link.credit -= 1
                self._output.write(link.number, waiting.take())

    def congest(self, link: Link, is_congested: bool) -> None:
        """The host has too many unsent bytes for this link, or no longer."""
        link.is_congested = is_congested
        self.grant_credit(link, 0)

    def received(self, link: Link, count: int) -> None:
        """Count received messages; grant the neighbour new credit when half of it is used."""
        link.received += count
        if 2 * link.received >= self._settings.link_credit:
            self._output.say(link.number, Credit(0, link.received))
            link.received = 0


class NewMessages(NamedTuple):
    """What is to be done with messages of a neighbour."""

    new: MessageBatch
    """Not here before."""
    candidates: MessageBatch | None
    """Delivered here before, and to be forwarded if this copy is on the right path."""


class DedupWindow:
    """Drops live messages that neighbours send twice.

    While brokers see different topologies, a message may arrive twice. It is recognised by its
    publisher and number while it is among the last DEDUP_WINDOW messages. If no copy was forwarded
    yet, because all arrived on a wrong path, the next copy is a candidate for that.
    """

    def __init__(self) -> None:
        self.duplicates = 0
        self._recent: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._refused: set[tuple[str, int]] = set()
        """Those among them of which only refused copies came."""

    def note(self, batch: MessageBatch) -> None:
        """Remember messages that were published here and sent to neighbours."""
        keys = zip(batch.publishers(), batch.numbers(), strict=True)
        self._recent.update(dict.fromkeys(keys))
        self._shrink()

    def refuse(self, batch: MessageBatch, rows: Sequence[int]) -> None:
        """These copies were delivered here and are not forwarded."""
        publishers, numbers = batch.publishers(), batch.numbers()
        self._refused.update([(publishers[row], numbers[row]) for row in rows])

    def new(self, batch: MessageBatch, flush: Callable[[], None]) -> NewMessages:
        """The messages that did not arrive before; remembers them. `flush` processes those that are
        known already: it decides which of them are refused."""
        recent = self._recent
        keys = list(zip(batch.publishers(), batch.numbers(), strict=True))
        if recent.keys().isdisjoint(keys) and len(set(keys)) == len(keys):
            recent.update(dict.fromkeys(keys))
            self._shrink()
            return NewMessages(batch, None)
        flush()
        rows, candidates = [], []
        for row, key in enumerate(keys):
            if key not in recent:
                recent[key] = None
                rows.append(row)
            elif key in self._refused:
                self._refused.remove(key)
                candidates.append(row)
        self.duplicates += len(keys) - len(rows)
        self._shrink()
        return NewMessages(batch.pick(rows), batch.pick(candidates) if candidates else None)

    def _shrink(self) -> None:
        while len(self._recent) > DEDUP_WINDOW:
            key, _ = self._recent.popitem(last=False)
            self._refused.discard(key)
