"""Ways around a grant, tried at the core: what nobody may have or send, nobody gets or sends.

Wider filters, disjunctions and patterns are in test_broker.py and test_access.py; the proofs of
brokers in test_handshake.py; tokens and certificates over TLS in tests/net/test_broker_grants.py.
"""

from __future__ import annotations

import msgspec
import pytest

from palio import Message, parse
from palio.errors import PalioError
from palio.protocol.broker.access import EVERYTHING, Access, Identity, token_hash
from palio.protocol.wire.control import (
    VERSION,
    Bye,
    CarryAck,
    Confirm,
    ControlMessage,
    Done,
    Hello,
    LinkState,
    LinkStates,
    Refused,
    Rejected,
    RouterPacket,
    Subscribed,
    SubscriptionEnded,
    Wanted,
    Welcome,
)
from palio.protocol.wire.frames import FrameReader, control_frame, message_frame
from palio.protocol.wire.handshake import NONCE_BYTES, answer, dial
from palio.protocol.wire.headers import CarryHeader, CarryTarget, ForwardHeader
from palio.protocol.wire.headers import PublishHeader as PublishHeader
from palio.protocol.wire.packets import to_bytes
from palio.routing.packets import Restate
from tests.protocol.exchange import Client, Exchange

ANN = Identity("ann", parse("price < 500"), parse("price < 500"))
BOB = Identity("bob", EVERYTHING, EVERYTHING)
EVE = Identity("eve", parse("price < 10"), parse("price < 10"))
MUTE = Identity("mute")
ROOT = Identity("root", EVERYTHING, EVERYTHING, admin=True)
PEOPLE = (ANN, BOB, EVE, MUTE, ROOT)
ACCESS = Access({token_hash(f"{one.name}'s"): one for one in PEOPLE})


def exchange_of(*names: str) -> tuple[Exchange, list[Client]]:
    exchange = Exchange()
    exchange.add("a", ["b"], access=ACCESS)
    return exchange, [exchange.client("a", name, f"{name}'s") for name in names]


# ---- having


def test_the_durable_name_of_somebody_else() -> None:
    exchange, (ann, eve, bob) = exchange_of("ann", "eve", "bob")
    first = ann.session.subscriptions.subscribe("price < 500", durable="desk")
    exchange.run()
    exchange.disconnect(ann)  # her queue waits
    for price in (5, 50):
        bob.publish({"price": price})
    exchange.advance(1_000_000)
    ids = [
        eve.session.subscriptions.subscribe("price < 10", durable=name)
        for name in ("desk", "ann/desk", "../ann/desk")
    ]
    exchange.run()
    assert [eve.got(id) for id in ids] == [[], [], []]
    eve.session.subscriptions.unsubscribe(ids[1], forget=True)
    exchange.run()
    exchange.connect(ann, "a")
    exchange.run()
    assert ann.got(first) == [{"price": 5}, {"price": 50}]


def test_the_group_of_somebody_else() -> None:
    exchange, (ann, eve, bob) = exchange_of("ann", "eve", "bob")
    first = ann.session.subscriptions.subscribe("price < 10", group="desks")
    second = eve.session.subscriptions.subscribe("price < 10", group="desks")
    exchange.run()
    for price in range(4):
        bob.publish({"price": price}, durable=False)
    exchange.run()
    assert len(ann.got(first)) == len(eve.got(second)) == 4, "nobody takes from another's group"


def test_acknowledging_for_somebody_else() -> None:
    exchange, (ann, eve, bob) = exchange_of("ann", "eve", "bob")
    ann.acks = False
    id = ann.session.subscriptions.subscribe("price < 500", durable="desk")
    assert eve.session.subscriptions.subscribe("price < 10", durable="desk") == id, (
        "the same number, by the way"
    )
    exchange.run()
    bob.publish({"price": 50})
    bob.publish({"price": 5})
    exchange.run()
    assert len(eve.got(id)) == 1
    exchange.disconnect(ann)
    exchange.connect(ann, "a")
    exchange.run()
    queues = exchange.brokers["a"].parts.messages.statistics().queues
    assert queues == {"ann/desk": 2, "eve/desk": 0}


def test_a_watch_ends_when_its_grant_does() -> None:
    exchange, (ann,) = exchange_of("ann")
    kept = ann.session.subscriptions.subscribe(
        pattern="[price < 10] THEN [price < 20] WITHIN 1 minute"
    )
    ended = ann.session.subscriptions.subscribe(
        pattern="[price < 10] THEN [price < 200] WITHIN 1 minute"
    )
    exchange.run()
    narrow = Identity("ann", parse("price < 100"))
    exchange.brokers["a"].reload_access(Access({token_hash("ann's"): narrow}), exchange.now_us)
    exchange.run()
    assert [one.id for one in ann.heard(SubscriptionEnded)] == [ended]  # type: ignore[union-attr]
    assert kept in [one.id for one in ann.heard(Subscribed)]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["ann", "bob", "mute"])
def test_only_operators_look_into_the_broker(name: str) -> None:
    exchange, (ann, client) = exchange_of("ann", name if name != "ann" else "eve")
    ann.session.subscriptions.subscribe("price < 400", durable="secret-desk")
    client.session.requests.explain('{"price": 5}', "ann/secret-desk")
    client.session.requests.show()
    exchange.run()
    assert len(client.heard(Refused)) == 2
    assert not any("400" in str(one) for one in client.control_messages)


def test_quenching_tells_what_concerns_the_publisher_only() -> None:
    exchange, (ann, bob, eve, mute) = exchange_of("ann", "bob", "eve", "mute")
    bob.session.subscriptions.subscribe("project = 'secret' AND price > 100")
    ann.session.subscriptions.subscribe("price < 5 AND dest = 'MXP'")
    exchange.run()
    for client in (bob, eve, mute):
        client.session.quenching.switch(True)
    exchange.run()
    exchange.advance(1_000_000)
    assert len(mute.heard(Refused)) == 1
    assert not eve.heard(Refused)
    assert len(eve.heard(Done)) == 1
    assert not eve.session.quenching.wants(Message({"price": 50}))
    assert eve.session.quenching.wants(Message({"price": 1, "dest": "MXP"}))
    assert bob.session.quenching.wants(Message({"price": 500, "project": "secret"}))
    told = {
        client.session.name: str(client.session.quenching.wanted) for client in (bob, eve, mute)
    }
    assert "secret" in told["bob"]
    assert "secret" not in told["eve"]
    assert told["mute"] == "None"
    assert not any(isinstance(one, Wanted) for one in mute.control_messages)


# ---- sending


def test_publishing_under_the_name_of_somebody_else() -> None:
    exchange, (ann, bob) = exchange_of("ann", "bob")
    eve = exchange.client("a", "bob", "eve's")  # the name of bob's client
    id = ann.session.subscriptions.subscribe("price < 500")
    exchange.run()
    assert len(exchange.clients) == 3, "bob's connection stays"
    eve.publish({"price": 1})
    bob.publish({"price": 2})
    bob.publish({"price": 400})
    eve.publish({"price": 400})
    exchange.run()
    found = [(a.header.publisher, a.frame.attributes) for a in ann.arrivals if a.id == id]
    assert sorted(found) == [
        ("bob/bob", b'{"price": 2}'), ("bob/bob", b'{"price": 400}'), ("eve/bob", b'{"price": 1}'),
    ]  # fmt: skip
    assert len(eve.heard(Rejected)) == 1


@pytest.mark.parametrize("name", ["../bob/bob", "/bob", "bob/", "", "b\nob", "x" * 10_000])
def test_names_that_would_be_another_publisher(name: str) -> None:
    exchange, _ = exchange_of()
    broker = exchange.brokers["a"]
    broker.open(1, exchange.now_us)
    broker.receive(1, control_frame(Hello(VERSION, "client", name, "eve's")), exchange.now_us)
    assert [link for link, _ in broker.take().closes] == [1]


@pytest.mark.parametrize("many", [1, 90])
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        b'{"price": 400}',
        b'{"price": 1, "price": 400}',
        b'{"price": 400, "price": 1}',
        b'{"price": 1, "pr\\u0069ce": 400}',
        b'{"price": "1"}',
        b'{"Price": 1}',
        b'{"price": null}',
        b'{"price": {"": 1}}',
        b'{"price": 1} {"price": 400}',
        b'{"price": 1e400}',
        b"{}",
        b"",
    ],
)
def test_messages_that_look_like_others(text: bytes, durable: bool, many: int) -> None:
    """Alone, and as many as kernels read at once."""
    exchange, (eve, root) = exchange_of("eve", "root")
    ids = [
        root.session.subscriptions.subscribe("TRUE"),
        root.session.subscriptions.subscribe("price IS NOT NULL"),
    ]
    exchange.run()
    frames = [
        message_frame(PublishHeader(number, 5, durable), text, b"body that is long enough")
        for number in range(1, many + 1)
    ]
    exchange.brokers["a"].receive(eve.link, b"".join(frames), exchange.now_us)
    exchange.run()
    assert [root.got(id) for id in ids] == [[], []]
    assert len(eve.heard(Rejected)) == many


# ---- brokers


def closed_with(exchange: Exchange, *data: bytes, link: int = 99) -> str:
    """What the broker says when it closes; empty: it does not."""
    broker = exchange.brokers["a"]
    if link not in broker.parts.links.open:
        broker.open(link, exchange.now_us)
    said = b""
    for part in data:
        broker.receive(link, part, exchange.now_us)
        effects = broker.take()
        said += b"".join(effects.writes.get(link, ()))
    byes = [item for item in FrameReader().feed(said) if isinstance(item, Bye)]
    assert not broker.is_linked("b")
    return byes[-1].reason if byes else ""


def test_a_client_that_says_to_be_a_broker() -> None:
    exchange, _ = exchange_of()
    nonce = bytes(range(NONCE_BYTES))
    for name in ("b", "eve", "a"):
        hello = Hello(VERSION, "broker", name, "root's", nonce)
        reason = closed_with(exchange, control_frame(hello), control_frame(Confirm(bytes(32))))
        assert "does not prove it" in reason or "no neighbour" in reason or "own name" in reason
        exchange.brokers["a"].close(99, exchange.now_us)


def test_a_neighbour_with_the_secret_of_another() -> None:
    exchange = Exchange()
    exchange.add("a", ["b", "c"], access=ACCESS)
    broker = exchange.brokers["a"]
    of_c = broker.settings.neighbours["c"].secret
    for secret in (of_c, b"a guess that is long enough"):
        dialling, hello = dial("b", "a", secret, bytes(range(NONCE_BYTES)))
        broker.open(5, exchange.now_us)
        broker.receive(5, control_frame(hello), exchange.now_us)
        (welcome,) = FrameReader().feed(b"".join(broker.take().writes[5]))
        assert isinstance(welcome, Welcome)
        with pytest.raises(PalioError, match="does not prove it"):
            dialling.welcome(welcome)  # an honest one would leave
        # What the right broker would say, signed with this secret.
        forged = answer("a", hello, {"b": secret}, welcome.nonce)[0].proof
        broker.receive(5, control_frame(Confirm(forged)), exchange.now_us)
        ((_, (_, reason)),) = broker.take().closes
        assert "does not prove it" in reason
        assert not broker.snapshot().neighbours


_NIL = msgspec.Raw(b"\xc0")
FOR_BROKERS: list[ControlMessage] = [
    LinkStates((LinkState("b", "e", 1, 0, (("a", 1.0),), ("price > 0",)),)),
    RouterPacket(to_bytes(Restate(subscriptions=tuple(parse("price > 0"))))),
    CarryAck("a", "e", "b", 1),
]


@pytest.mark.parametrize("is_welcomed", [False, True])
def test_what_only_brokers_say(is_welcomed: bool) -> None:
    frames = [
        message_frame(ForwardHeader(_NIL, "bob/bob", 1, 2, False), b'{"price": 1}', b""),
        message_frame(
            CarryHeader("b", "e", (CarryTarget("a", 1, 1, ("1@root/d",)),), "bob/bob", 1, 2),
            b"{}",
            b"",
        ),
    ]
    for data in [*map(control_frame, FOR_BROKERS), *frames]:
        exchange, (eve,) = exchange_of("eve")
        link = eve.link if is_welcomed else 99
        assert closed_with(exchange, data, link=link)


def test_nobody_becomes_another_on_the_way() -> None:
    exchange, (eve,) = exchange_of("eve")
    again = control_frame(Hello(VERSION, "client", "eve", "root's"))
    assert "Hello" in closed_with(exchange, again, link=eve.link)


def test_a_connection_outlives_its_token_and_not_its_identity() -> None:
    """As docs/concepts/security.md says."""
    ann = Identity("ann", EVERYTHING, EVERYTHING)
    exchange = Exchange()
    broker = exchange.add("a", access=Access({token_hash("old"): ann}))
    client = exchange.client("a", "ann", token="old")
    broker.reload_access(Access({token_hash("new"): ann}), exchange.now_us)
    exchange.run()
    assert client.link in exchange.clients
    broker.reload_access(Access({token_hash("new"): Identity("bob", EVERYTHING)}), exchange.now_us)
    exchange.run()
    assert client.link not in exchange.clients
