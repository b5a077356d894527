"""The data path: a broker does the same with one batch of many messages and with many of one."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from palio.errors import InvalidFile
from palio.model.language import parse
from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.failure import BrokerFailed
from palio.protocol.broker.uncommitted import UncommittedMessages
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.control import (
    VERSION,
    ControlMessage,
    Hello,
    Occurred,
    Ping,
    Published,
    SubscribeRequest,
)
from palio.protocol.wire.frames import FrameReader, MessageFrame, control_frame, message_frame
from palio.protocol.wire.headers import DeliverHeader, PublishHeader
from palio.routing import interest_table
from palio.routing.interest_table import InterestTable
from tests.protocol.exchange import Exchange, network


def _sent(
    texts: list[str], whole: bool, credit: int, durable: bool = False, grant: str = "TRUE"
) -> dict[int, list[tuple[object, ...]]]:
    """What clients get of these messages, sent in one piece or frame by frame."""
    exchange = Exchange()
    anybody = Identity("anybody", EVERYTHING, parse(grant), admin=True)
    broker = exchange.add("a", access=Access(anonymous=anybody), waiting_max=50)
    subscriptions = {2: ["x >= 1", "y = 2"], 3: ["x = 3 OR y >= 1"], 4: ["z IS NOT NULL", "x < 2"]}
    for link, own in {1: [], **subscriptions}.items():
        control_messages: list[ControlMessage] = [
            Hello(VERSION, "client", f"client {link}"),
            Ping(1),
        ]
        control_messages += [
            SubscribeRequest(i, predicate, credit=credit) for i, predicate in enumerate(own, 1)
        ]
        if link == 4:
            control_messages.append(SubscribeRequest(9, "x >= 0", group="shared"))
        if link != 1:
            control_messages.append(
                SubscribeRequest(11, "y >= 1 OR z = 0", durable=f"queue {link}", credit=credit)
            )
        broker.open(link, exchange.now_us)
        broker.receive(link, b"".join(map(control_frame, control_messages)), exchange.now_us)
    broker.receive(
        4, control_frame(SubscribeRequest(10, "x >= 0", group="shared")), exchange.now_us
    )
    _settle(broker, exchange.now_us)
    frames = [
        message_frame(PublishHeader(i, 5, durable), text.encode(), b"b" * 40)
        for i, text in enumerate(texts, 1)
    ]
    out: dict[int, bytes] = {}
    for piece in [b"".join(frames)] if whole else frames:
        broker.receive(1, piece, exchange.now_us)
        for link, written in _settle(broker, exchange.now_us):
            out[link] = out.get(link, b"") + written
    return {link: _notes(data) for link, data in out.items()}


def _settle(broker: Broker, now_us: int) -> list[tuple[int, bytes]]:
    """What is written until nothing is to be committed."""
    found: list[tuple[int, bytes]] = []
    while True:
        effects = broker.take()
        found += [(link, b"".join(data)) for link, data in effects.writes.items()]
        if effects.commit is None:
            return found
        broker.committed(effects.commit, now_us)


def _notes(data: bytes) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for item in FrameReader().feed(data):
        if isinstance(item, MessageFrame):
            header = item.header
            found += [
                (id, *msgspec.structs.astuple(header)[1:], item.attributes, item.body)
                for id in header.subscriptions  # type: ignore[union-attr]
            ]
        elif not isinstance(item, Published):  # as often as there are commits
            found.append((type(item).__name__, item))
    return sorted(found, key=str)


@pytest.mark.parametrize("durable", [False, True])
def test_one_batch_is_as_many_messages(monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    rng = np.random.default_rng(7)
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    for credit in (1_000_000, 20):
        texts = [
            json.dumps({name: int(rng.integers(0, 5)) for name in "xyz" if rng.random() < 0.6})
            for _ in range(200)
        ]
        assert _sent(texts, True, credit, durable) == _sent(texts, False, credit, durable)
    texts[50] = '{"x": [1]}'
    texts[51] = '{"x": 1'
    assert _sent(texts, True, 10**6, durable) == _sent(texts, False, 10**6, durable)


@pytest.mark.parametrize("durable", [False, True])
def test_a_grant_decides_for_a_batch_as_for_each_message(
    monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    texts = [json.dumps({"x": i % 4, "y": i % 5}) for i in range(200)]
    for grant in ("x < 4 AND y >= 0", "x < 3 OR y = 1", "z = 1"):
        found = _sent(texts, True, 10**6, durable, grant)
        assert found == _sent(texts, False, 10**6, durable, grant)
        rejected = sum(note[0] == "Rejected" for note in found.get(1, ()))
        allowed = parse(grant)
        assert rejected == sum(not allowed.matches(json.loads(text)) for text in texts)


def test_durable_messages_come_live_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some come by themselves and some in large batches; live subscriptions get them in one order."""
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    exchange = Exchange()
    broker = exchange.add("a")
    for link in (1, 2):
        broker.open(link, exchange.now_us)
        broker.receive(link, control_frame(Hello(VERSION, "client", str(link))), exchange.now_us)
    subscriptions = [
        SubscribeRequest(1, "x >= 0", credit=1000),
        SubscribeRequest(2, "x >= 0", durable="q", credit=1000),
    ]
    broker.receive(2, b"".join(map(control_frame, subscriptions)), exchange.now_us)
    _settle(broker, exchange.now_us)
    frames = [
        message_frame(PublishHeader(i, 5, True), b'{"x": 1}', bytes(40)) for i in range(1, 301)
    ]
    for piece in ([frames[0]], frames[1:150], [frames[150]], frames[151:]):
        broker.receive(1, b"".join(piece), exchange.now_us)
    data = b"".join(data for link, data in _settle(broker, exchange.now_us) if link == 2)
    headers = [item.header for item in FrameReader().feed(data) if isinstance(item, MessageFrame)]
    for id in (1, 2):
        numbers = [
            h.number for h in headers if isinstance(h, DeliverHeader) and h.subscriptions == (id,)
        ]
        assert numbers == list(range(1, 301))


def test_runs_travel_to_other_brokers() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    ids = [
        ann.session.subscriptions.subscribe("x > 0"),
        ann.session.subscriptions.subscribe("x > 0", durable="d"),
    ]
    exchange.run()
    for durable in (True, False):
        for x in range(1, 200):
            bob.publish({"x": x}, b"a body that makes them enough bytes for a run", durable)
    exchange.run()
    for id in ids:
        assert sorted(m["x"] for m in ann.got(id)) == sorted([*range(1, 200)] * 2)  # type: ignore[type-var]


def test_slots_of_subscriptions_that_have_gone_are_reused() -> None:
    """A broker without durable messages never commits."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann = exchange.client("a", "ann")
    for _ in range(50):
        id = ann.session.subscriptions.subscribe("x > 1")
        exchange.run()
        ann.session.subscriptions.unsubscribe(id)
        exchange.run()
    assert len(broker.parts.table.interfaces) < 5


def test_slots_are_reused_while_durable_messages_keep_coming() -> None:
    """There is always a message that is stored and not committed."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    bob.session.subscriptions.subscribe("x = 1")
    exchange.run()
    for _ in range(50):
        id = ann.session.subscriptions.subscribe("x > 1")
        ann.publish({"x": 1})
        exchange.round()
        ticket = exchange.commits.pop("a", None)
        ann.session.subscriptions.unsubscribe(id)
        ann.publish({"x": 1})
        exchange.round()  # the commit is under way
        if ticket is not None:
            exchange.commits["a"] = ticket
    assert len(broker.parts.table.interfaces) < 10
    exchange.run()
    assert len(bob.arrivals) == 100


def test_a_damaged_store_stops_the_broker_and_is_nobodys_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bob's request causes the flush in which Ann's messages are lost: going on would leave a gap."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")

    def damaged(*_: object) -> None:
        raise InvalidFile("segment 1 of the journal is damaged")

    monkeypatch.setattr(type(broker.parts.messages), "publish", damaged)
    ann.publish({"x": 1})
    broker.receive(ann.link, b"".join(ann.session.take()), exchange.now_us)
    bob.session.subscriptions.subscribe("x > 0")
    with pytest.raises(BrokerFailed, match="segment 1 of the journal is damaged"):
        broker.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)


def test_a_damaged_store_is_no_reason_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    bob = exchange.client("a", "bob")

    def damaged(*_: object) -> None:
        raise InvalidFile("segment 1 of the journal is damaged")

    monkeypatch.setattr(type(broker.parts.messages), "create", damaged)
    bob.session.subscriptions.subscribe("x > 0", durable="d")
    with pytest.raises(BrokerFailed, match="segment 1 of the journal is damaged"):
        broker.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)


def test_a_commit_lets_go_all_that_was_sealed_before_it() -> None:
    """As the message store does: a ticket stands for itself and all before."""
    table = InterestTable()
    uncommitted = UncommittedMessages(table)
    batches = []
    for ticket in (1, 2, 3):
        batch = MessageBatch.of([Entry("ann/1", ticket, 7, b'{"x":1}', b"")], durable=True)
        uncommitted.add(batch, table.lookup(batch))
        uncommitted.seal(ticket)
        batches.append(batch)
    assert [batch for batch, _ in uncommitted.take(2)] == batches[:2]
    assert uncommitted.take(2) == []
    assert [batch for batch, _ in uncommitted.take(3)] == batches[2:]
    assert len(uncommitted) == 0


def test_a_publisher_whose_clock_is_ahead_does_not_blind_those_who_watch_patterns() -> None:
    exchange = Exchange()
    exchange.add("a", skew_us=2_000_000)
    watcher, eve, bob = (exchange.client("a", name) for name in ("watcher", "eve", "bob"))
    id = watcher.session.subscriptions.subscribe(pattern="[x = 1] THEN [x = 2] WITHIN 10 seconds")
    all_ = watcher.session.subscriptions.subscribe("x > 0")
    exchange.run()
    for x in (1, 2, 3):
        eve.session.publisher.publish(f'{{"x": {x}}}'.encode(), b"", 2**63 - 1, False)
        exchange.run()
    times = [arrival.header.time for arrival in watcher.arrivals if arrival.id == all_]
    assert times == [exchange.now_us + 2_000_000] * 3
    exchange.advance(3_000_000)
    for x in (1, 2):
        bob.publish({"x": x}, durable=False)
        exchange.advance(1_000)
    exchange.advance(20_000_000)
    occurred = [one for one in watcher.heard(Occurred) if one.id == id]  # type: ignore[attr-defined]
    publishers = [[item.publisher for item in one.items] for one in occurred]  # type: ignore[attr-defined]
    assert ["anybody/bob"] * 2 in publishers
