"""POST /v1/events: CloudEvents in binary, structured and batched mode; and events as an answer.

Each event becomes a message (`protocol/cloudevents/messages.py`). All are checked before the first is
published. A long poll that accepts application/cloudevents-batch+json gets events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from palio.errors import InvalidValue
from palio.net.client.attributes import to_bytes
from palio.net.client.subscription import Note
from palio.net.listeners.http.api import Api
from palio.net.listeners.http.exchange import Exchange, Request
from palio.net.listeners.http.json_form import Posted, check_body, read_attributes
from palio.net.listeners.http.messages import MESSAGES_MAX, store
from palio.net.listeners.http.problems import Problem
from palio.protocol.cloudevents import json_format
from palio.protocol.cloudevents.event import Event, media_type
from palio.protocol.cloudevents.http_binding import Mode, is_event, mode_of, read_http
from palio.protocol.cloudevents.messages import Defaults, event_of, message_of

_SLICE_EVENTS = 50
_SLICE_BYTES = 64 << 10


async def publish_events(exchange: Exchange, api: Api) -> None:
    await store(exchange, api, _read)


async def _read(request: Request, api: Api) -> list[Posted]:
    headers = list(request.headers.items())
    if not is_event(headers):
        raise Problem(
            415, "content_type",
            f"it is no CloudEvent: send ce-specversion and the other attributes as header fields, or "
            f"{json_format.CONTENT_TYPE} or {json_format.BATCH_TYPE}; messages go to /v1/messages",
        )  # fmt: skip
    if twice := [name for name in request.repeated if name.startswith("ce-")]:
        raise InvalidValue(f"the field {twice[0][:60]} is given twice")
    if mode_of(request.headers.get("content-type")) is not Mode.BATCHED:
        (event,) = read_http(headers, request.body)
        return [_posted(event, api)]
    found: list[Posted] = []
    size = 0
    elements = json_format.batch_elements(request.body, MESSAGES_MAX)
    for number, element in enumerate(elements, 1):
        try:
            found.append(_posted(json_format.read_event(element), api))
        except InvalidValue as error:
            detail = f"event {number}: {error}; nothing is published"
            raise Problem(400, "invalid", detail, event=number) from None
        size += len(element)
        if size > _SLICE_BYTES or number % _SLICE_EVENTS == 0:
            size = 0
            await asyncio.sleep(0)
    return found


def _posted(event: Event, api: Api) -> Posted:
    message = message_of(event)
    attributes = read_attributes(to_bytes(message.attributes), api.limits)
    check_body(message.body, api.limits)
    return Posted(attributes, message.body, dict(message.headers))


def accepts_events(request: Request) -> bool:
    kinds = request.headers.get("accept", "").split(",")
    return any(media_type(kind) == json_format.BATCH_TYPE for kind in kinds)


def batch_of(notes: Iterable[Note]) -> bytes:
    return json_format.write_batch([_event(note) for note in notes])


def _event(note: Note) -> Event:
    id = f"{note.publisher}/{note.session}/{note.number}"
    return event_of(note.attributes, note.headers, note.body, Defaults(id))
