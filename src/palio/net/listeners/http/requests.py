"""POST /v1/requests: publish a message, wait for the first reply to it, and answer with that.

The body is one message, in any form of /v1/messages; `timeout` is in seconds. The message expires with its
timeout. Whoever receives it replies to its header reply_to, with its header correlation (`note.reply`, MQTT 5).

The requests of one credential share a client, whose subscription gets all replies. So they do not count as
connections of their identity, and `room.ReplyRoom` bounds how many of an identity wait at once.
"""

from __future__ import annotations

from palio.errors import InvalidValue
from palio.net.listeners.http.api import Api, credential, flag, number
from palio.net.listeners.http.exchange import Exchange, as_json
from palio.net.listeners.http.json_form import Posted, form_of
from palio.net.listeners.http.messages import read_messages
from palio.protocol.wire.message_headers import EXPIRES_US, NOT_BEFORE_US

_TIMEOUT_S = 10.0
_TIMEOUT_S_MAX = 60.0


async def ask(exchange: Exchange, api: Api) -> None:
    request = exchange.request
    asked = request.parameters("timeout", "durable")
    timeout_s = number(asked, "timeout", _TIMEOUT_S, _TIMEOUT_S_MAX)
    if not timeout_s:
        raise InvalidValue("timeout is a number of seconds, more than 0")
    durable = flag(asked, "durable", True)
    async with api.clients.shared(credential(request, api)) as client:
        with api.replies.waiting(client.identity):
            posted = _only(await read_messages(request, api))
            note = await client.request(
                posted.attributes, posted.body,
                timeout=timeout_s, headers=posted.headers, durable=durable,
            )  # fmt: skip
    api.counts.published += 1
    api.counts.delivered += 1
    await exchange.respond(as_json(200, form_of(note)))


def _only(messages: list[Posted]) -> Posted:
    if len(messages) != 1:
        raise InvalidValue("a request is one message")
    posted = messages[0]
    for name in (EXPIRES_US, NOT_BEFORE_US):
        if name in posted.headers:
            raise InvalidValue(
                f"a request has no {name}: it is published now, and expires with its timeout"
            )
    return posted
