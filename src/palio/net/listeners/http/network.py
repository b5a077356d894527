"""POST /v1/explain, GET /v1/topology: what operators see of the network. The broker says who may."""

from __future__ import annotations

import msgspec

from palio.errors import InvalidValue
from palio.net.listeners.http.api import Api, credential
from palio.net.listeners.http.exchange import JSON, Exchange, as_json
from palio.net.listeners.http.json_form import read_attributes
from palio.net.listeners.http.problems import Problem
from palio.protocol.wire.control import Hop, Place


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    attributes: msgspec.Raw
    subscription: str = ""


async def explain(exchange: Exchange, api: Api) -> None:
    request = exchange.request
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Problem(415, "content_type", f"the content type is {JSON}")
    async with api.clients.shared(credential(request, api)) as client:
        try:
            question = msgspec.json.decode(request.body, type=_Asked)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise InvalidValue(f"it is no question in JSON: {error}") from None
        attributes = read_attributes(bytes(question.attributes), api.limits)
        answer = await client.explain(attributes, question.subscription)
    hops = [_hop(hop) for hop in answer.hops]
    await exchange.respond(as_json(200, {"hops": hops, "silent": answer.silent}))


async def topology(exchange: Exchange, api: Api) -> None:
    request = exchange.request
    request.parameters()
    async with api.clients.shared(credential(request, api)) as client:
        places = await client.topology()
    await exchange.respond(as_json(200, {"brokers": [_place(place) for place in places]}))


def _hop(hop: Hop) -> dict[str, object]:
    return {
        "broker": hop.broker,
        "came_from": hop.came_from,
        "delivers": [{"subscription": name, "reason": why} for name, why in hop.delivers],
        "sends": [{"broker": name, "reason": why} for name, why in hop.sends],
    }


def _place(place: Place) -> dict[str, object]:
    return {
        "broker": place.broker,
        "links": [{"broker": name, "weight": weight} for name, weight in place.links],
        "subscriptions": place.subscriptions,
        "durable": place.durable,
        "reachable": place.reachable,
    }
