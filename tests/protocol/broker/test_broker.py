"""The broker as a whole, with the real session of a client, on perfect links."""

from __future__ import annotations

import gc

import msgspec
import pytest

from palio import Message, parse
from palio.protocol.broker.access import Access, Identity, token_hash
from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.control import (
    VERSION,
    CloseCode,
    Explained,
    Hello,
    Occurred,
    Published,
    Refused,
    Rejected,
    Shown,
    Subscribed,
    SubscribeRequest,
    SubscriptionEnded,
)
from palio.protocol.wire.frames import control_frame, message_frame
from palio.protocol.wire.headers import ForwardHeader
from tests.protocol.exchange import ANYBODY, Exchange, network

RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a")]
LINE = [("a", "b"), ("b", "c"), ("c", "d")]
POLICIES = ["forwarding", "PSF", "iPS", "PIF", "DRP"]


def _shape(routing: str) -> list[tuple[str, str]]:
    return LINE if routing == "forwarding" else RING


def test_one_broker() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    cheap = ann.session.subscriptions.subscribe("price < 500")
    exchange.run()
    bob.publish({"price": 450}, b"body", durable=False)
    bob.publish({"price": 550}, durable=False)
    last = bob.publish({"price": 460})
    exchange.run()
    assert ann.got(cheap) == [{"price": 450}, {"price": 460}]
    assert ann.arrivals[0].frame.body == b"body"
    assert bob.heard(Published)[-1] == Published(last)


def test_an_answer_tells_where_a_queue_begins_and_ends() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    first = ann.session.subscriptions.subscribe("x > 0", durable="all")
    exchange.run()
    made = ann.session.subscriptions.confirmation(first)
    assert made is not None
    assert (made.position, made.last) == (0, 0)
    for x in range(1, 6):
        bob.publish({"x": x})
        if x == 2:
            exchange.run()  # the client acknowledges what it gets
            exchange.disconnect(ann)
    exchange.run()
    again = bob.session.subscriptions.subscribe("x > 0", durable="all")
    exchange.run()
    assert bob.session.subscriptions.confirmation(again) == Subscribed(again, 2, 5, made.version)
    bob.session.subscriptions.unsubscribe(again, forget=True)
    exchange.advance(1000)
    anew = bob.session.subscriptions.subscribe("x > 0", durable="all")
    exchange.run()
    answer = bob.session.subscriptions.confirmation(anew)
    assert answer is not None
    assert answer.version > made.version


def test_a_name_is_used_again_before_it_is_safe_that_it_was_forgotten() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann = exchange.client("a", "ann")
    first = ann.session.subscriptions.subscribe("x > 0", durable="all")
    exchange.run()
    exchange.advance(1000)
    ann.session.subscriptions.unsubscribe(first, forget=True)
    again = ann.session.subscriptions.subscribe("x > 1", durable="all")
    exchange.run()
    ann.publish({"x": 2})
    exchange.run()
    assert ann.heard(SubscriptionEnded) == []
    assert ann.got(again) == [{"x": 2}]


@pytest.mark.parametrize("routing", POLICIES)
@pytest.mark.parametrize("durable", [False, True])
def test_messages_find_all_who_want_them(routing: str, durable: bool) -> None:
    exchange = network(_shape(routing), routing=routing)
    clients = {name: exchange.client(name, f"client {name}") for name in exchange.brokers}
    ids = {
        name: client.session.subscriptions.subscribe(
            f"x >= {i}", durable=f"own {i}" if i % 2 else ""
        )
        for i, (name, client) in enumerate(clients.items())
    }
    exchange.run()
    for sender in clients.values():
        for x in range(7):
            sender.publish({"x": x}, durable=durable)
        exchange.run()
    for i, (name, client) in enumerate(clients.items()):
        assert client.got(ids[name]) == [{"x": x} for x in range(i, 7)] * len(clients), name


def test_a_message_for_an_absent_client_waits() -> None:
    exchange = network(RING)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    id = ann.session.subscriptions.subscribe("x > 0", durable="all")
    exchange.run()
    exchange.disconnect(ann)
    for x in range(5):
        bob.publish({"x": x})
    exchange.run()
    assert ann.got(id) == []
    exchange.connect(ann, "a")
    exchange.run()
    assert ann.got(id) == [{"x": x} for x in range(1, 5)]


def test_a_message_for_an_absent_broker_waits() -> None:
    exchange = network(RING)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    id = ann.session.subscriptions.subscribe("x > 0", durable="all")
    exchange.run()
    exchange.disconnect(ann)
    exchange.crash("a")
    exchange.advance(1_000_000)
    numbers = [bob.publish({"x": x}) for x in range(5)]
    exchange.run()
    assert bob.heard(Published)[-1] == Published(numbers[-1])
    exchange.disconnect(bob)
    exchange.crash("c")  # what is acknowledged is not lost
    exchange.start("c")
    exchange.start("a")
    for edge in (("a", "b"), ("b", "c")):
        exchange.join(*edge)
    exchange.connect(ann, "a")
    exchange.advance(20_000_000)
    assert ann.got(id) == [{"x": x} for x in range(1, 5)]


def test_a_broker_that_never_comes_back_is_forgotten() -> None:
    exchange = network(RING)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    ann.session.subscriptions.subscribe("x > 0", durable="all")
    exchange.run()
    bob.session.requests.forget("a")
    exchange.run()
    assert len(bob.heard(Refused)) == 1  # it is there
    exchange.disconnect(ann)
    exchange.crash("a")
    exchange.advance(1_000_000)
    bob.publish({"x": 1})
    exchange.run()
    assert exchange.brokers["c"].parts.messages.statistics().backlogs == {"a": 1}
    bob.session.requests.forget("a")
    exchange.advance(1_000_000)
    for name in "bcde":
        broker = exchange.brokers[name]
        assert not list(broker.parts.view.database.durables())
        assert not any(broker.parts.messages.statistics().backlogs.values())
    for name in "bcd":  # and it stays so after a restart
        exchange.crash(name)
        exchange.start(name)
        assert not list(exchange.brokers[name].parts.view.database.durables())


def test_a_ring_heals() -> None:
    exchange = network(RING)
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    live, kept = (
        ann.session.subscriptions.subscribe("x > 0"),
        ann.session.subscriptions.subscribe("x > 0", durable="all"),
    )
    exchange.run()
    exchange.part("a", "b")
    exchange.run()
    bob.publish({"x": 1})
    bob.publish({"x": 2}, durable=False)
    exchange.run()
    assert ann.got(kept) == [{"x": 2}, {"x": 1}]
    assert sorted(m["x"] for m in ann.got(live)) == [1, 2]  # type: ignore[type-var]


def test_a_broker_that_was_asleep_keeps_its_links() -> None:
    exchange = network(RING)
    exchange.now_us += 60_000_000
    exchange.advance(500_000)
    assert all(broker.snapshot().neighbours == 2 for broker in exchange.brokers.values())


def test_a_broker_that_was_asleep_keeps_what_it_knows_of_the_others() -> None:
    """Or whose clock was set: the others may have refreshed their link states all the time."""
    exchange = network(RING)
    ann = exchange.client("c", "ann")
    ann.session.subscriptions.subscribe("x > 0")
    exchange.run()
    asleep = exchange.brokers["a"]
    database = asleep.parts.view.database
    asleep.wake(exchange.now_us + 3_600_000_000)
    asleep.take()
    assert database.reachable_brokers() == {"b", "c", "d", "e"}
    assert database.wanted("c").filters
    asleep.wake(asleep.now_us + 500_000)
    assert database.reachable_brokers() == {"b", "c", "d", "e"}


def test_what_is_not_read_for_long_does_not_age() -> None:
    exchange = network(RING)
    paused = exchange.brokers["a"]
    now_us = exchange.now_us
    paused.pause(now_us)
    for seconds in range(1, 120):
        paused.wake(now_us + seconds * 1_000_000)
        paused.take()
    paused.resume(now_us + 120_000_000)
    paused.wake(now_us + 120_500_000)
    assert paused.parts.view.database.reachable_brokers() == {"b", "c", "d", "e"}


def test_brokers_that_dial_each_other_keep_one_link() -> None:
    for a, b in (("a", "b"), ("b", "a")):
        exchange = Exchange()
        exchange.add("a", ["b"])
        exchange.add("b", ["a"])
        exchange.cross(a, b)
        exchange.advance(5_000_000)
        for name, other in (("a", "b"), ("b", "a")):
            assert exchange.brokers[name].is_linked(other)
            assert len(exchange.brokers[name].parts.links) == 1


def test_a_neighbour_that_is_silent_is_dead() -> None:
    exchange = network(LINE)
    exchange.brokers["d"].receive = lambda *_: None  # type: ignore[method-assign]
    exchange.advance(4_000_000)
    assert exchange.brokers["c"].is_linked("b")


def test_a_subscription_that_starts_in_the_past() -> None:
    exchange = network(RING)
    bob = exchange.client("c", "bob")
    bob.publish({"x": 1})
    exchange.run()
    exchange.advance(1_000_000)
    since = exchange.now_us
    bob.publish({"x": 2})
    exchange.run()
    ann = exchange.client("a", "ann")
    id = ann.session.subscriptions.subscribe("x > 0", durable="late", since=since)
    exchange.run()
    bob.publish({"x": 3})
    exchange.run()
    assert ann.got(id) == [{"x": 2}, {"x": 3}]


def test_a_group_shares() -> None:
    exchange = network(RING)
    workers = [exchange.client("a", f"worker {i}") for i in range(3)]
    for durable in ("", "jobs"):
        ids = [
            w.session.subscriptions.subscribe("x > 0", durable=durable, group="g") for w in workers
        ]
        exchange.run()
        sender = exchange.client("b", f"sender {durable}")
        for x in range(1, 10):
            sender.publish({"x": x}, durable=bool(durable))
            exchange.run()
        found = [w.got(id) for w, id in zip(workers, ids, strict=True)]
        assert sorted(m["x"] for part in found for m in part) == list(range(1, 10))  # type: ignore[type-var]
        assert all(found)
        for worker, id in zip(workers, ids, strict=True):
            worker.session.subscriptions.unsubscribe(id, forget=True)
        exchange.run()


def test_a_group_is_no_durable_subscription_whatever_their_names() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    shared = ann.session.subscriptions.subscribe("x > 0", group="g")
    kept = bob.session.subscriptions.subscribe("x > 0", durable="g/x > 0")
    exchange.run()
    for _ in range(4):
        bob.publish({"x": 1}, durable=False)
    exchange.run()
    assert len(ann.got(shared)) == len(bob.got(kept)) == 4


@pytest.mark.parametrize("routing", POLICIES)
def test_patterns(routing: str) -> None:
    exchange = network(_shape(routing), routing=routing)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    id = ann.session.subscriptions.subscribe(pattern="[x = 1] THEN [x = 2] WITHIN 1 minute")
    exchange.run()
    first = bob.publish({"x": 1}, durable=False)
    exchange.run()
    exchange.now_us += 10
    second = bob.publish({"x": 2})
    exchange.advance(10_000_000)
    (found,) = ann.heard(Occurred)
    assert isinstance(found, Occurred)
    assert found.id == id
    assert [item.number for item in found.items] == [first, second]


def test_quenching() -> None:
    exchange = network(RING)
    bob = exchange.client("c", "bob")
    bob.session.quenching.switch(True)
    exchange.advance(500_000)
    assert not bob.session.quenching.wants(Message({"price": 1}))
    ann = exchange.client("a", "ann")
    ann.session.subscriptions.subscribe("price < 500")
    exchange.run()
    exchange.advance(500_000)
    assert bob.session.quenching.wants(Message({"price": 1}))
    assert not bob.session.quenching.wants(Message({"price": 501}))


@pytest.mark.parametrize("routing", POLICIES)
def test_explain_names_every_hop(routing: str) -> None:
    exchange = network(_shape(routing), routing=routing)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    ann.session.subscriptions.subscribe("price < 500", durable="desk")
    exchange.run()
    bob.session.requests.explain('{"price": 450}')
    exchange.run()
    (answer,) = bob.heard(Explained)
    assert isinstance(answer, Explained)
    assert [hop.broker for hop in answer.hops] == ["c", "b", "a"]
    assert answer.hops[-1].delivers[0][0] == "anybody/desk"
    assert "450" in answer.hops[-1].delivers[0][1]
    assert not answer.silent


@pytest.mark.parametrize("routing", POLICIES)
@pytest.mark.parametrize(("price", "says"), [(450, "kept here until a has it"), (550, "not sent")])
def test_explain_knows_of_absent_subscribers(routing: str, price: int, says: str) -> None:
    exchange = network(_shape(routing), routing=routing)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    id = ann.session.subscriptions.subscribe("price < 500", durable="desk")
    exchange.run()
    ann.session.subscriptions.unsubscribe(id)
    exchange.run()
    bob.session.requests.explain(f'{{"price": {price}}}', "desk")
    exchange.run()
    (answer,) = bob.heard(Explained)
    assert isinstance(answer, Explained)
    ((name, reason),) = answer.hops[0].delivers
    assert name == "anybody/desk"
    assert says in reason
    assert str(price) in reason


def test_show() -> None:
    exchange = network(RING)
    bob = exchange.client("c", "bob")
    bob.session.requests.show()
    exchange.run()
    (shown,) = bob.heard(Shown)
    assert isinstance(shown, Shown)
    assert [place.broker for place in shown.places] == ["a", "b", "c", "d", "e"]
    assert all(place.reachable for place in shown.places)


def test_a_message_with_a_bad_route_ends_only_the_link_that_sent_it() -> None:
    exchange = network([("a", "b")])
    broker = exchange.brokers["a"]
    (link,) = [one.number for one in broker.parts.links]
    ann = exchange.client("a", "ann")
    bad = ForwardHeader(msgspec.Raw(b"\xc0"), "anybody/eve", 1, 2, False)
    broker.receive(link, message_frame(bad, b'{"x": 1}', b""), exchange.now_us)
    subscription = control_frame(SubscribeRequest(1, "x > 1"))
    broker.receive(ann.link, subscription, exchange.now_us)  # deals with what came before
    assert [one.number for one in broker.parts.links] == [ann.link]
    ((closed, close),) = broker.take().closes
    assert closed == link
    assert close.code is CloseCode.PROTOCOL
    assert "route" in close.reason


def test_what_cannot_be_read_is_rejected_also_when_it_had_to_wait() -> None:
    exchange = Exchange()
    exchange.add("a", bounds=Bounds(queue=2))
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.acks = False
    id = ann.session.subscriptions.subscribe("x > 0", durable="d")
    exchange.run()
    for x in (1, 2, 3):
        bob.publish({"x": x})
    exchange.run()
    bob.session.publisher.publish(b'{"x": [4}', b"", 0)
    bob.publish({"x": 5})
    exchange.run()
    for x in (1, 2):
        ann.session.subscriptions.acknowledge(id, x)
    ann.acks = True
    exchange.run()
    assert [m["x"] for m in ann.got(id)] == [1, 2, 3, 5]
    assert len(bob.heard(Rejected)) == 1
    assert not bob.session.outbox.unstored


def test_nothing_is_left_of_clients_that_are_gone() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    hello, subscription = Hello(VERSION, "client", "ann"), SubscribeRequest(1, "x > 1")
    watch = SubscribeRequest(2, pattern="[x = 1] THEN [x = 2] WITHIN 1 minute")

    def come_and_go(first: int, last: int) -> int:
        for link in range(first, last):
            broker.open(link, exchange.now_us)
            data = b"".join(map(control_frame, (hello, subscription, watch)))
            broker.receive(link, data, exchange.now_us)
            broker.take()
            broker.close(link, exchange.now_us)
            broker.take()
        gc.collect()
        return len(gc.get_objects())

    before = come_and_go(1, 50)
    assert come_and_go(50, 250) - before < 100


class TestGrants:
    ACCESS = Access(
        {
            token_hash("ann's"): Identity("ann", parse("price < 500"), None),
            token_hash("bob's"): Identity("bob", None, parse("price < 1000")),
        }
    )

    @pytest.mark.parametrize(
        "subscription",
        [
            {"predicate": "price < 501"},
            {"predicate": "price < 10 OR dest = 'MXP'"},
            {"predicate": "price < 501", "durable": "d"},
            {"predicate": "price < 501", "durable": "d", "since": 0},
            {"predicate": "price < 501", "group": "g"},
            {"pattern": "[price < 10] THEN [dest = 'MXP'] WITHIN 1 minute"},
        ],
    )
    def test_nothing_beyond_them_is_had(self, subscription: dict[str, object]) -> None:
        exchange = Exchange()
        exchange.add("a", access=self.ACCESS)
        ann = exchange.client("a", "ann", "ann's")
        ann.session.subscriptions.subscribe(**subscription)  # type: ignore[arg-type]
        exchange.run()
        assert len(ann.heard(Refused)) == 1
        assert not ann.heard(Subscribed)

    def test_nothing_beyond_them_is_sent(self) -> None:
        exchange = Exchange()
        exchange.add("a", access=self.ACCESS)
        ann, bob = exchange.client("a", "ann", "ann's"), exchange.client("a", "bob", "bob's")
        id = ann.session.subscriptions.subscribe("price < 400")
        exchange.run()
        for sender in (ann, bob):
            for durable in (False, True):
                sender.publish({"price": 300}, durable=durable)
                sender.publish({"price": 1300}, durable=durable)
        exchange.run()
        assert ann.got(id) == [{"price": 300}] * 2
        assert len(ann.heard(Rejected)) == 4
        assert len(bob.heard(Rejected)) == 2

    def test_a_reload_ends_what_is_not_granted_any_more(self) -> None:
        exchange = Exchange()
        broker = exchange.add("a", access=self.ACCESS)
        ann = exchange.client("a", "ann", "ann's")
        ann.session.subscriptions.subscribe("price < 400")
        exchange.run()
        narrow = Identity("ann", parse("price < 100"), None)
        broker.reload_access(Access({token_hash("ann's"): narrow}), broker.now_us)
        exchange.run()
        assert len(ann.heard(SubscriptionEnded)) == 1

    def test_strangers_stay_outside(self) -> None:
        exchange = Exchange()
        exchange.add("a", access=self.ACCESS)
        exchange.client("a", "eve", "not hers")
        exchange.run()
        assert not exchange.clients


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_a_broker_that_was_asleep_keeps_its_clients_when_access_is_reloaded(
    is_reloaded: bool,
) -> None:
    """Every entry counts as time that the broker itself missed: also a reload, before the wake."""
    exchange = Exchange()
    broker = exchange.add("a")
    exchange.client("a", "ann")
    exchange.now_us += 10_000_000
    if is_reloaded:
        broker.reload_access(ANYBODY, exchange.now_us)
    broker.wake(exchange.now_us)
    assert broker.take().closes == []
    assert broker.snapshot().clients == 1
