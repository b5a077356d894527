"""Received messages as lines of text or of JSON."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from palio.printable import printable

if TYPE_CHECKING:
    from palio.net.client.notes import ReceivedMessage
    from palio.protocol.wire.message_headers import HeaderValue


def line_of(note: ReceivedMessage | list[Any], as_json: bool) -> str:
    """A message, or the messages that match a pattern, on one line."""
    if isinstance(note, list):
        if not as_json:
            return "  ".join(printable(part.json.decode()) for part in note)
        return json.dumps({"messages": [fields_of(part) for part in note]}, ensure_ascii=False)
    if as_json:
        return json.dumps(fields_of(note), ensure_ascii=False)
    body = f"  ({len(note.body):,} bytes)" if note.body else ""
    return printable(note.json.decode()) + body


def fields_of(note: ReceivedMessage) -> dict[str, object]:
    """A message as a JSON object."""
    fields: dict[str, object] = {
        "attributes": json.loads(note.json),
        "publisher": note.publisher,
        "session": note.session,
        "number": note.number,
        "time": note.time.isoformat().replace("+00:00", "Z"),
    }
    if note.position:
        fields |= {"position": note.position, "again": note.again, "deliveries": note.deliveries}
    if note.retained:
        fields["retained"] = True
    if note.headers:
        fields["headers"] = {name: _shown(value) for name, value in note.headers.items()}
    if note.body:
        fields |= _body_fields(note.body)
    return fields


def _shown(value: HeaderValue) -> object:
    """The value of a header in JSON: bytes as an object, as they are in attributes."""
    return {"$binary": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _body_fields(body: bytes) -> dict[str, object]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}
