"""GET /v1/events: messages as Server-Sent Events.

    retry: 1000                                          how long an EventSource waits before it connects again

    id: 3-17                                             of a durable subscription
    data: {"attributes": ..., "body": ..., ...}

    :                                                    a heartbeat

A durable subscription is acknowledged by Last-Event-ID, which an EventSource sends when it connects again. So
the answer ends when `credit` messages are sent; the next request acknowledges them. An event `ended` holds a
problem: the broker ended the subscription.
"""

from __future__ import annotations

import asyncio

from palio.errors import SubscriptionEnded
from palio.net.client.subscription import Note, Subscription
from palio.net.listeners.http.api import (
    CREDIT,
    CREDIT_MAX,
    Api,
    count,
    credential,
    deliveries,
    flag,
)
from palio.net.listeners.http.clients import StreamClient
from palio.net.listeners.http.exchange import Exchange
from palio.net.listeners.http.json_form import as_line, form_of
from palio.net.listeners.http.problems import Problem, as_problem
from palio.net.listeners.http.subscribing import ResumedSubscription, subscribe

_AT_ONCE = 32
"""Messages of one write."""
_RETRY = b"retry: 1000\n\n"
_AGAIN = b"retry: 50\n\n"
_HEADERS = (
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("X-Accel-Buffering", "no"),  # nginx must not collect them
)


async def events(exchange: Exchange, api: Api) -> None:
    request = exchange.request
    asked = request.parameters(
        "where", "durable", "group", "since", "credit", "full", "after", "deliveries_max", "last"
    )
    credit = count(asked, "credit", CREDIT, CREDIT_MAX)
    durable, group = asked.get("durable"), asked.get("group")
    if durable is not None and group:
        raise Problem(400, "invalid", "a durable subscription with a group needs the WebSocket")
    who = credential(request, api, takes_cookie=True)
    async with api.clients.stream(who, request.peer) as stream:
        subscription = await subscribe(
            stream.client, asked.get("where"), durable=durable, since=asked.get("since"),
            group=group, full=asked.get("full"), credit=credit, deliveries_max=deliveries(asked),
            last=flag(asked, "last", False),
        )  # fmt: skip
        last = request.headers.get("last-event-id") or asked.get("after", "")
        resumed = ResumedSubscription(subscription, last)
        await exchange.begin(200, _HEADERS)
        await exchange.write(_RETRY)
        await _send(exchange, api, stream, subscription, resumed, credit)


async def _send(
    exchange: Exchange,
    api: Api,
    stream: StreamClient,
    subscription: Subscription,
    resumed: ResumedSubscription,
    credit: int,
) -> None:
    unacknowledged = 0
    heartbeat_s = api.settings.heartbeat_us / 1e6
    try:
        while unacknowledged < credit:
            try:
                async with asyncio.timeout(heartbeat_s):
                    notes = await subscription.many(_AT_ONCE)
            except TimeoutError:
                await exchange.write(b":\n\n")
                continue
            if not notes:
                break
            new = [note for note in notes if not resumed.is_had(note)]
            if new:
                unacknowledged += sum(1 for note in new if note.position)
                await exchange.write(b"".join(_event(note, resumed.id_of(note)) for note in new))
                api.counts.delivered += len(new)
            if not subscription.waiting:
                stream.taken()
        else:
            await exchange.write(_AGAIN)
    except SubscriptionEnded as error:
        problem = as_line(as_problem(error).members())
        await exchange.write(b"event: ended\ndata: " + problem + b"\n\n")
    await exchange.end()


def _event(note: Note, id: str) -> bytes:
    head = f"id: {id}\n".encode() if id else b""
    return head + b"data: " + as_line(form_of(note, id)) + b"\n\n"
