"""What a reply to a message says, and to whom (requesting.py)."""

from __future__ import annotations

from collections.abc import Mapping

from palio.errors import InvalidValue
from palio.model.topics import topic_attributes
from palio.net.client.notes import ReceivedMessage
from palio.protocol.wire.message_headers import CORRELATION, REPLY_TO, Headers


def reply_to(
    note: ReceivedMessage, attributes: Mapping[str, object] | None, headers: Headers | None
) -> tuple[dict[str, object], Headers]:
    """Attributes and headers of a reply; raises InvalidValue if the message asks for none."""
    asked = note.headers
    topic = asked.get(REPLY_TO)
    if not isinstance(topic, str) or not topic:
        raise InvalidValue(
            f"message {note.number} of {note.publisher} asks for no reply: it has no header "
            f"{REPLY_TO!r}",
            remedy="ask with `client.request`, or publish with headers={'reply_to': TOPIC}",
        )
    named = dict(headers or {})
    if CORRELATION in asked:
        named[CORRELATION] = asked[CORRELATION]
    return {**(attributes or {}), **topic_attributes(topic)}, named
