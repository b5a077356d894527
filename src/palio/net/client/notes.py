"""A message as an application receives it: attributes, headers, body, and the fields of its header.

Both clients, for asyncio and for threads, derive their notes from it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.net.client.attributes import from_bytes
from palio.protocol.wire.control import PatternItem
from palio.protocol.wire.headers import DeliverHeader
from palio.protocol.wire.last_values import unstamped
from palio.protocol.wire.message_headers import RETAIN, RETAINED, Headers, body_of, headers_of
from palio.protocol.wire.publishers import split_key

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(time_us: int) -> datetime:
    """Microseconds since 1970 as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=time_us)


def microseconds(time: object) -> int:
    """A datetime as microseconds since 1970; an int is returned as it is."""
    if isinstance(time, int):
        return time
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise InvalidValue(
            f"the time {time!r} is not a datetime with a time zone, nor microseconds since 1970",
            remedy="give it a zone, for example value.replace(tzinfo=datetime.UTC)",
        )
    return (time - _EPOCH) // timedelta(microseconds=1)


class ReceivedMessage:
    """A message that arrived. Its attributes are parsed when they are first asked for."""

    __slots__ = ("_attributes", "_header", "_payload", "_text")

    def __init__(
        self, header: DeliverHeader | PatternItem, text: bytes | str, payload: bytes
    ) -> None:
        self._header = header
        self._text = text
        self._attributes: Message | None = None
        self._payload = payload

    @property
    def body(self) -> bytes:
        return body_of(self._payload)

    @property
    def headers(self) -> Headers:
        """What it carries beside its attributes; empty if there is nothing."""
        headers = headers_of(self._payload)
        return unstamped(headers) if RETAIN in headers else headers

    @property
    def retained(self) -> bool:
        """It was there before the subscription: the last value of its key."""
        return bool(headers_of(self._payload).get(RETAINED, False))

    @property
    def attributes(self) -> Message:
        if self._attributes is None:
            self._attributes = from_bytes(self._text)
        return self._attributes

    @property
    def json(self) -> bytes:
        """The attributes, as the JSON object in which they arrived."""
        return self._text if isinstance(self._text, bytes) else self._text.encode()

    @property
    def publisher(self) -> str:
        """Identity and name of the client that published it."""
        return split_key(self._header.publisher)[0]

    @property
    def session(self) -> str:
        """Which of the clients with that name: each has a session; empty: it was named by `first`."""
        return split_key(self._header.publisher)[1]

    @property
    def number(self) -> int:
        """The publisher's number for it; the numbers of one session grow."""
        return self._header.number

    @property
    def time(self) -> datetime:
        """When it was published, by the publisher's clock."""
        return instant(self._header.time)

    @property
    def position(self) -> int:
        """Its position in the queue of a durable subscription; 0: it came from no queue."""
        return self._header.position if isinstance(self._header, DeliverHeader) else 0

    @property
    def deliveries(self) -> int:
        """How often it has been delivered, this time included; 1: for the first time. What a broker may
        have sent before a restart counts once. At most 127 are told."""
        return self._header.deliveries if isinstance(self._header, DeliverHeader) else 1

    @property
    def again(self) -> bool:
        """It is redelivered: it was sent before, and nobody acknowledged it."""
        return self._header.redelivered if isinstance(self._header, DeliverHeader) else False

    def __repr__(self) -> str:
        return f"<note {self.number} of {self.publisher}: {dict(self.attributes)}>"
