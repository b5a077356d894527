"""POST /v1/messages: publish one message, or many. An answer of 2xx means: all are stored.

    application/json       one message: {"attributes": {...}, "body": "..."}
    application/x-ndjson   one in each line; all are checked before the first is published
    anything else          the body of one message; its attributes are in the field Palio-Attributes, as
                           JSON, and its header content_type is the content type

With ?durable=false messages are only sent: 202. ?expires_in= and ?delay=, in seconds, are for each message of
the request that does not say it itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from palio.errors import InvalidValue, PalioError, RefusedByBroker, Unreachable
from palio.net.listeners.http.api import Api, credential, flag, seconds
from palio.net.listeners.http.exchange import JSON, Exchange, Request, as_json
from palio.net.listeners.http.json_form import (
    Posted,
    check_body,
    check_times,
    read_attributes,
    read_message,
    with_times,
)
from palio.net.listeners.http.problems import Problem, as_problem
from palio.protocol.wire.message_headers import CONTENT_TYPE

ATTRIBUTES = "palio-attributes"
_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_SLICE_BYTES = 64 << 10
_SLICE_LINES = 100
MESSAGES_MAX = 10_000
"""Of one request: what is published at once holds the event loop when it is stored."""


Reader: TypeAlias = Callable[[Request, Api], Awaitable[list[Posted]]]


async def publish(exchange: Exchange, api: Api) -> None:
    await store(exchange, api, read_messages)


async def store(exchange: Exchange, api: Api, read: Reader) -> None:
    """Publish the messages of a request, and answer."""
    request = exchange.request
    asked = request.parameters("durable", "expires_in", "delay")
    durable = flag(asked, "durable", True)
    times = with_times({}, seconds(asked, "expires_in"), seconds(asked, "delay"))
    who = credential(request, api)
    async with api.clients.shared(who) as client:  # who it is comes first: reading costs time
        messages = await read(request, api)
        if times:
            messages = [one._replace(headers={**times, **one.headers}) for one in messages]
        for posted in messages:
            check_times(posted, durable)
        try:
            async with asyncio.timeout(api.clients.answer_s):
                sent = await client.publish_many(messages, durable=durable)
        except TimeoutError:
            raise Unreachable(
                "the messages were not all stored in time; some may be: publish them again, or ask"
            ) from None
        except RefusedByBroker as error:
            raise Problem(403, error.code or "rejected", error.detail) from None
    api.counts.published += sent
    await exchange.respond(
        as_json(200, {"stored": sent}) if durable else as_json(202, {"sent": sent})
    )


async def read_messages(request: Request, api: Api) -> list[Posted]:
    """What a request holds, by its content type."""
    kind = _content_type(request)
    if kind == JSON:
        return [read_message(request.body, api.limits)]
    if kind in _LINES:
        return await _read_lines(request.body, api)
    if ATTRIBUTES not in request.headers:
        raise Problem(
            415, "content_type",
            f"the content type is {JSON} for one message, {_LINES[0]} for many, or anything else with "
            "the attributes of the message in the field Palio-Attributes, as JSON",
        )  # fmt: skip
    check_body(request.body, api.limits)
    text = request.headers[ATTRIBUTES].encode("latin-1")
    headers = {CONTENT_TYPE: request.headers["content-type"]} if kind else {}
    return [Posted(read_attributes(text, api.limits), request.body, dict(headers))]


def _content_type(request: Request) -> str:
    """The media type; raises Problem for what is not UTF-8, or is compressed."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "content_encoding", "a body is not compressed")
    kind, *parameters = request.headers.get("content-type", "").lower().split(";")
    kind = kind.strip()
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        is_text = kind == JSON or kind in _LINES
        if is_text and name.strip() == "charset" and value.strip(' "') not in ("utf-8", "utf8"):
            raise Problem(415, "charset", "JSON is in UTF-8")
    return kind


async def _read_lines(body: bytes, api: Api) -> list[Posted]:
    found: list[Posted] = []
    lines = size = 0
    for number, line in _lines(body):
        lines += 1
        size += len(line)
        if size > _SLICE_BYTES or lines > _SLICE_LINES:
            lines = size = 0
            await asyncio.sleep(0)
        if not line or line.isspace():
            continue
        if len(found) >= MESSAGES_MAX:
            raise Problem(413, "too_large", f"a request has at most {MESSAGES_MAX:,} messages")
        try:
            found.append(read_message(line, api.limits))
        except PalioError as error:
            wrong = as_problem(error)
            detail = f"line {number}: {wrong.detail}; nothing is published"
            raise Problem(wrong.status, wrong.code, detail, line=number) from None
    if not found:
        raise InvalidValue("there is no message in the body")
    return found


def _lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    at, number = 0, 1
    while at < len(body):
        end = body.find(b"\n", at)
        end = len(body) if end < 0 else end
        yield number, body[at:end]
        at, number = end + 1, number + 1
