"""/v1/subscriptions/NAME: a durable subscription, for the simplest clients.

    GET or POST .../messages?where=...&wait=20&after=ID   what waits in its queue; `after` acknowledges all up to ID
    DELETE                                                ends it for good

The first request makes the subscription. What is not acknowledged comes again with the next request. With
Accept: application/cloudevents-batch+json the messages come as CloudEvents, and `last` in the field Palio-Last.
"""

from __future__ import annotations

import asyncio

from palio.net.client.home_brokers import name_and_home
from palio.net.client.subscription import Note, Subscription
from palio.net.listeners.http.api import Api, count, credential, deliveries, number
from palio.net.listeners.http.clients import StreamClient
from palio.net.listeners.http.cloudevents import accepts_events, batch_of
from palio.net.listeners.http.exchange import Exchange, Response, as_json
from palio.net.listeners.http.json_form import form_of
from palio.net.listeners.http.problems import Problem
from palio.net.listeners.http.subscribing import ResumedSubscription, subscribe
from palio.protocol.cloudevents.json_format import BATCH_TYPE

_WAIT_S_MAX = 60.0
_MESSAGES = 100
_MESSAGES_MAX = 1000
_BYTES_MAX = 4 << 20
"""An answer ends when it has more."""
_MORE_S = 0.02
"""How long it waits for more messages after the first."""


async def poll(exchange: Exchange, api: Api, name: str) -> None:
    request = exchange.request
    asked = request.parameters("where", "wait", "max", "after", "since", "full", "deliveries_max")
    most = count(asked, "max", _MESSAGES, _MESSAGES_MAX)
    wait_s = number(asked, "wait", 0.0, _WAIT_S_MAX)
    who = credential(request, api, takes_cookie=request.method == "GET")
    async with api.clients.stream(who, request.peer) as stream:
        subscription = await subscribe(
            stream.client, asked.get("where"), durable=name, since=asked.get("since"),
            full=asked.get("full"), credit=most, deliveries_max=deliveries(asked),
        )  # fmt: skip
        resumed = ResumedSubscription(subscription, asked.get("after", ""))
        found = await _collect(stream, subscription, resumed, most, wait_s)
        api.counts.delivered += len(found)
        ids = [resumed.id_of(note) for note in found]
        last = next(filter(None, reversed(ids)), asked.get("after", ""))
        if accepts_events(request):
            await exchange.respond(
                Response(200, batch_of(found), BATCH_TYPE, (("Palio-Last", last),))
            )
            return
        messages = [form_of(note, id) for note, id in zip(found, ids, strict=True)]
        await exchange.respond(as_json(200, {"messages": messages, "last": last}))


async def _collect(
    stream: StreamClient,
    subscription: Subscription,
    resumed: ResumedSubscription,
    most: int,
    wait_s: float,
) -> list[Note]:
    found: list[Note] = []
    loop = asyncio.get_running_loop()
    until_s, size = loop.time() + max(wait_s, _MORE_S), 0
    while len(found) < most and size < _BYTES_MAX:
        try:
            async with asyncio.timeout_at(until_s):
                notes = await subscription.many(most - len(found))
        except TimeoutError:
            break
        if not notes:
            break
        if not subscription.waiting:
            stream.taken()
        for note in notes:
            if not resumed.is_had(note):
                found.append(note)
                size += len(note.json) + len(note.body)
        if found:
            until_s = min(until_s, loop.time() + _MORE_S)
    return found


async def forget(exchange: Exchange, api: Api, name: str) -> None:
    request = exchange.request
    group = request.parameters("group").get("group")
    async with api.clients.shared(credential(request, api)) as client:
        plain, home = name_and_home(name)
        if home not in ("", client.broker):
            raise Problem(421, "elsewhere", f"it lives at {home}: ask there", broker=home)
        await client.forget_durable(plain, group)
    await exchange.respond(Response(204))
