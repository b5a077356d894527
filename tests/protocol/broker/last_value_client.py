"""What tests of last values do with a client of an exchange."""

from __future__ import annotations

import json

from palio.protocol.wire.last_values import retaining
from palio.protocol.wire.message_headers import EXPIRES_US, RETAINED, Headers, packed
from tests.protocol.exchange import Client


def retain(
    client: Client, names: str, *, forget: bool = False, durable: bool = True,
    headers: Headers | None = None, **attributes: object,
) -> int:  # fmt: skip
    """Publish the last value of a key; `names`: with spaces between them."""
    text = json.dumps(attributes).encode()
    block = packed({**retaining(names.split(), forget=forget), **(headers or {})}, 16_384)
    return client.session.publisher.publish(text, b"", client.exchange.now_us, durable, block)


def expiring(client: Client, after_us: int) -> Headers:
    return {EXPIRES_US: client.exchange.now_us + after_us}


def last(client: Client, predicate: str = "v >= 0", credit: int = 1000) -> int:
    """Subscribe with last values."""
    return client.session.subscriptions.subscribe(predicate, last=True, credit=credit)


def given(client: Client, id: int) -> list[dict[str, object]]:
    """What was there before the subscription, in any order of keys."""
    found = [a for a in client.arrivals if a.id == id and a.frame.headers.get(RETAINED)]
    return sorted([json.loads(a.frame.attributes) for a in found], key=str)
