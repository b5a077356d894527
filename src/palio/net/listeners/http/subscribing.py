"""What the three ways to subscribe share: the request, and ids that acknowledge."""

from __future__ import annotations

from datetime import datetime

from palio.errors import InvalidValue
from palio.net.client.client import Client
from palio.net.client.subscription import Note, Subscription
from palio.net.listeners.http.json_form import event_id, parse_event_id
from palio.net.listeners.http.problems import Problem


def since_of(text: str | None) -> datetime | None:
    """An instant, such as 2026-01-31T12:00:00Z."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise InvalidValue("since is an instant, for example 2026-01-31T12:00:00Z")
    return found


class ResumedSubscription:
    """A durable subscription whose client says by an id what it has: all up to that are acknowledged.

    They come from the queue once more, in order, and go no further. This rests on the order of the queue, so
    the subscription has no group: there, another member's messages have lower positions too.
    """

    def __init__(self, subscription: Subscription, last: str) -> None:
        self._subscription = subscription
        self._last = parse_event_id(last) if last and subscription.durable else (0, 0)

    def id_of(self, note: Note) -> str:
        """Empty: it needs no acknowledgement."""
        confirmed = self._subscription.subscribed
        if not note.position or confirmed is None:
            return ""
        return event_id(confirmed.version, note.position)

    def is_had(self, note: Note) -> bool:
        """The client has it: it is acknowledged now."""
        confirmed = self._subscription.subscribed
        version, position = self._last
        if confirmed is None or confirmed.version != version:
            return False
        if not 0 < note.position <= position:
            return False
        note.ack_soon()
        return True


async def subscribe(
    client: Client,
    where: str | None,
    *,
    durable: str | None = None,
    since: str | None = None,
    group: str | None = None,
    full: str | None = None,
    credit: int,
    deliveries_max: int | None = None,
    last: bool = False,
) -> Subscription:
    """A subscription that the broker has accepted."""
    if where is None:
        raise Problem(
            400, "invalid", "a predicate is needed: where=...; TRUE selects every message"
        )
    subscription = client.subscribe(
        where, durable=durable, since=since_of(since), group=group or None, full=full or None,
        credit=credit, deliveries_max=deliveries_max, last=last,
    )  # fmt: skip
    await subscription.ready()
    return subscription
