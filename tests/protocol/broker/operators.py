"""A broker with identities and an operator, for tests of what operators see and do."""

from __future__ import annotations

from palio.model.language import parse
from palio.protocol.broker.access import EVERYTHING, Access, Identity, token_hash
from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import ControlMessage, Refused, Subscribed
from palio.protocol.wire.queue_control import (
    ListQueues,
    ListSubscriptions,
    QueueRow,
    QueuesListed,
    SubscriptionRow,
    SubscriptionsListed,
)
from tests.protocol.exchange import Client, Exchange

PEOPLE = {
    "ann": Identity("ann", EVERYTHING, EVERYTHING),
    "bob": Identity("bob", EVERYTHING, EVERYTHING),
    "cy": Identity("cy", parse("x < 5"), None),
    "root": Identity("root", EVERYTHING, EVERYTHING, admin=True),
}
BOUNDS = Bounds(queue=4)


def access(*names: str) -> Access:
    return Access({token_hash(name): PEOPLE[name] for name in names or PEOPLE})


def office(**options: object) -> Exchange:
    """The broker `a`; queues hold four messages."""
    exchange = Exchange()
    exchange.add("a", access=access(), **{"bounds": BOUNDS, **options})
    return exchange


def enter(exchange: Exchange, identity: str, name: str = "") -> Client:
    return exchange.client("a", name or f"{identity}-1", token=identity)


def subscribe(client: Client, durable: str, **options: object) -> Subscribed | Refused:
    """Ask for a durable subscription: the answer."""
    id = client.session.subscriptions.subscribe("x > 0", durable=durable, **options)  # type: ignore[arg-type]
    client.exchange.run()
    return answer(client, id)  # type: ignore[return-value]


def answer(client: Client, id: int) -> ControlMessage:
    """The last one that has this id."""
    found = [one for one in client.control_messages if getattr(one, "id", None) == id]
    return found[-1]


def ask(client: Client, kind: type, *fields: object) -> ControlMessage:
    id = client.session.requests.ask(kind, *fields)  # type: ignore[arg-type]
    client.exchange.run()
    return answer(client, id)


def refusal(found: ControlMessage) -> tuple[RefusalCode, str]:
    assert isinstance(found, Refused), found
    return found.code, found.reason


def queues(client: Client) -> dict[str, QueueRow]:
    """All, page by page."""
    rows: list[QueueRow] = []
    after = 0
    while True:
        page = ask(client, ListQueues, after)
        assert isinstance(page, QueuesListed)
        rows += page.rows
        after = page.next
        if not after:
            return {row.name: row for row in rows}


def subscriptions(client: Client) -> list[SubscriptionRow]:
    rows: list[SubscriptionRow] = []
    after = 0
    while True:
        page = ask(client, ListSubscriptions, after)
        assert isinstance(page, SubscriptionsListed)
        rows += page.rows
        after = page.next
        if not after:
            return rows


def restart(exchange: Exchange, *clients: Client) -> None:
    """Lose what is not committed; these clients connect again."""
    for client in list(exchange.clients.values()):
        client.exchange.clients.pop(client.link)
        client.control_messages += client.session.closed()  # type: ignore[arg-type]
    exchange.crash("a")
    exchange.start("a")
    for client in clients:
        exchange.connect(client, "a")
