"""Notes: messages as an application gets them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from palio.model.message import Message
from palio.net.attributes import from_bytes
from palio.protocol.frames import Deliver
from palio.protocol.words import Item

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(time_us: int) -> datetime:
    """Microseconds since 1970 as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=time_us)


def microseconds(time: datetime | int) -> int:
    """The other way round; an int is taken as it is."""
    return time if isinstance(time, int) else (time - _EPOCH) // timedelta(microseconds=1)


class Received:
    """A message that came, with what the network says about it."""

    __slots__ = ("_attributes", "_header", "_text", "body")

    def __init__(self, header: Deliver | Item, text: bytes | str, body: bytes) -> None:
        self._header = header
        self._text = text
        self._attributes: Message | None = None
        self.body = body

    @property
    def attributes(self) -> Message:
        if self._attributes is None:
            self._attributes = from_bytes(self._text)
        return self._attributes

    @property
    def json(self) -> bytes:
        """The attributes as the JSON object that came."""
        return self._text if isinstance(self._text, bytes) else self._text.encode()

    @property
    def publisher(self) -> str:
        return self._header.publisher

    @property
    def number(self) -> int:
        """The publisher's number of it; numbers of one publisher grow."""
        return self._header.number

    @property
    def time(self) -> datetime:
        """When it was published, by the publisher's clock."""
        return instant(self._header.time)

    @property
    def position(self) -> int:
        """In the queue of a durable subscription; 0: there is none."""
        return self._header.position if isinstance(self._header, Deliver) else 0

    @property
    def again(self) -> bool:
        """It was sent to somebody before, who did not acknowledge it."""
        return self._header.again if isinstance(self._header, Deliver) else False

    def __repr__(self) -> str:
        return f"<note {self.number} of {self.publisher}: {dict(self.attributes)}>"
