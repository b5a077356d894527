"""The connections of a broker, and who is at the other end of each.

Any part may close a link (`Links.close`), which removes it from `open` at once. Before the turn ends,
the broker tells the other parts and the other end (`take_closed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from palio.errors import PalioError
from palio.protocol.broker.access import Forbidden, Identity
from palio.protocol.broker.effects import Close
from palio.protocol.wire.control import CloseCode
from palio.protocol.wire.frames import BEFORE_HELLO, BrokenFrame, FrameReader
from palio.protocol.wire.handshake import Answering, Dialling, Unwelcome


class LinkOrigin(NamedTuple):
    """What the host knows of the other end."""

    certificate: str = ""
    """The name in its certificate, verified."""
    is_in_process: bool = False
    """There is no socket: it cannot vanish without a word, and is not pinged."""


ANYWHERE = LinkOrigin()


class Link:
    """A connection, and who is at the other end once that is known."""

    __slots__ = ("client", "credit", "dialled", "handshake", "heard_us", "identity",
                 "is_congested", "is_restricted", "neighbour", "number", "origin", "pinged_us", "publisher",
                 "reader", "received")  # fmt: skip

    def __init__(self, number: int, now_us: int, origin: LinkOrigin) -> None:
        self.number = number
        self.origin = origin
        self.reader = FrameReader(BEFORE_HELLO)
        self.heard_us = self.pinged_us = now_us
        self.dialled: str | None = None
        """The neighbour that this broker dialled; None: the other end dialled."""
        self.handshake: Dialling | Answering | None = None
        self.neighbour = ""
        """The name of a broker, once it has proved it."""
        self.identity: Identity | None = None
        """Of a client, after its handshake; before it, if the listener vouches for it."""
        self.publisher = ""
        """Of a client: identity, name and session."""
        self.client = ""
        """Of a client: its name."""
        self.is_restricted = True
        """Whether some messages are outside the client's grant to publish."""
        self.credit = 0
        """How many more messages a neighbour takes."""
        self.is_congested = False
        """Whether too many bytes wait to be sent on it."""
        self.received = 0
        """Messages from a neighbour since it was last granted credit."""

    def move_clock(self, missed_us: int, now_us: int) -> None:
        """This process was paused, or read nothing: do not count that as silence."""
        self.heard_us = min(now_us, self.heard_us + missed_us)


def close_code(error: PalioError) -> CloseCode:
    """Why a connection ends on which this error was raised."""
    if isinstance(error, Unwelcome):
        return error.code
    return CloseCode.DENIED if isinstance(error, Forbidden) else CloseCode.PROTOCOL


class Links:
    """All links by number, and those of clients by the publisher's name."""

    def __init__(self) -> None:
        self.open: dict[int, Link] = {}
        """By number."""
        self.pinged: dict[int, Link] = {}
        """Those over sockets, by number."""
        self.publishers: dict[str, Link] = {}
        """Those of clients, by the name of the publisher."""
        self.closed: list[tuple[Link, Close]] = []
        """Closed locally, not yet detached."""

    def __len__(self) -> int:
        return len(self.open)

    def __iter__(self) -> Iterator[Link]:
        return iter(list(self.open.values()))

    def add(self, link: Link) -> None:
        self.open[link.number] = link
        if not link.origin.is_in_process:
            self.pinged[link.number] = link

    def remove(self, number: int) -> Link | None:
        self.pinged.pop(number, None)
        return self.open.pop(number, None)

    def close(self, link: Link, code: CloseCode, reason: str) -> None:
        """Close a connection locally."""
        if self.remove(link.number) is not None:
            self.closed.append((link, Close(code, reason)))

    def take_closed(self) -> list[tuple[Link, Close]]:
        """The links closed since the last call, with the reasons."""
        closed, self.closed = self.closed, []
        return closed

    # ---- publishers

    def name_publisher(self, link: Link) -> None:
        """Register the link of a client under its publisher name."""
        self.publishers[link.publisher] = link

    def forget_publisher(self, link: Link) -> bool:
        """Remove the link of a client. False: another link has taken its name."""
        if self.publishers.get(link.publisher) is not link:
            return False
        del self.publishers[link.publisher]
        return True


def wrong_frame(link: Link, header: object) -> BrokenFrame:
    """The error for a message frame of a kind that this end does not send."""
    who, sent = ("a broker", "FORWARD or CARRY") if link.neighbour else ("a client", "PUBLISH")
    return BrokenFrame(f"{who} sends {sent} frames, and this one has a {type(header).__name__}")
