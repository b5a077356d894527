"""/v1/cloudevents/subscriptions: the Subscriptions API of CloudEvents.

    POST   .../subscriptions         201, and Location: events are pushed to its sink from now on
    GET    .../subscriptions         all of the identity
    GET, PUT, DELETE .../{id}

An identity sees and changes only its own. Cookies are not taken: a page would make the broker send requests.
"""

from __future__ import annotations

from palio.errors import PalioError
from palio.net.listeners.http.api import Api, credential
from palio.net.listeners.http.exchange import JSON, Exchange, Response, as_json
from palio.net.listeners.http.problems import Problem
from palio.net.sinks.service import SinkService
from palio.protocol.cloudevents.subscriptions import (
    InvalidSubscription,
    TooManySubscriptions,
    UnknownSubscription,
)

PATH = "/v1/cloudevents/subscriptions"


async def create(exchange: Exchange, api: Api) -> None:
    identity, service = await _asked(exchange, api)
    try:
        made = await service.create(identity, exchange.request.body)
    except PalioError as error:
        raise _problem(error) from None
    location = (("Location", f"{PATH}/{made.id}"),)
    await exchange.respond(as_json(201, made.shown(), location))


async def query(exchange: Exchange, api: Api) -> None:
    identity, service = await _asked(exchange, api)
    await exchange.respond(as_json(200, [one.shown() for one in service.query(identity)]))


async def retrieve(exchange: Exchange, api: Api, id: str) -> None:
    identity, service = await _asked(exchange, api)
    try:
        await exchange.respond(as_json(200, service.retrieve(identity, id).shown()))
    except UnknownSubscription as error:
        raise _problem(error) from None


async def update(exchange: Exchange, api: Api, id: str) -> None:
    identity, service = await _asked(exchange, api)
    try:
        made = await service.update(identity, id, exchange.request.body)
    except PalioError as error:
        raise _problem(error) from None
    await exchange.respond(as_json(200, made.shown()))


async def delete(exchange: Exchange, api: Api, id: str) -> None:
    identity, service = await _asked(exchange, api)
    try:
        await service.delete(identity, id)
    except PalioError as error:
        raise _problem(error) from None
    await exchange.respond(Response(204))


async def _asked(exchange: Exchange, api: Api) -> tuple[str, SinkService]:
    """Who asks, as the broker knows it; raises Problem where there is nothing to ask."""
    request = exchange.request
    request.parameters()
    if api.sinks is None:
        raise Problem(404, "sinks", "this broker pushes events to no sinks: it has no [sinks]")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method in ("POST", "PUT") and kind != JSON:
        raise Problem(415, "content_type", f"the content type is {JSON}")
    async with api.clients.shared(credential(request, api)) as client:
        return client.identity, api.sinks


def _problem(error: PalioError) -> PalioError:
    match error:
        case UnknownSubscription():
            return Problem(404, "unknown", str(error))
        case TooManySubscriptions():
            return Problem(429, "limit", str(error))
        case InvalidSubscription():
            return Problem(400, "invalid", str(error), place=error.place)
    return error
