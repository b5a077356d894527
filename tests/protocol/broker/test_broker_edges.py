"""Edges of the broker that simulated networks (palio.sim.brokers) have found."""

from __future__ import annotations

from palio.protocol.broker.settings import SubscriptionBounds
from palio.protocol.client.session import Session
from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.codes import EndCode
from palio.protocol.wire.control import (
    VERSION,
    Bye,
    ControlMessage,
    Explained,
    Occurred,
    Ping,
    Refused,
    Subscribed,
    SubscribeRequest,
    SubscriptionEnded,
    Unsubscribed,
    UnsubscribeRequest,
    Welcome,
)
from palio.protocol.wire.frames import (
    BEFORE_HELLO,
    FrameReader,
    Limits,
    MessageFrame,
    control_frame,
    message_frame,
)
from palio.protocol.wire.headers import CarryHeader, PublishHeader
from tests.protocol.exchange import Exchange, network

LINE = [("a", "b"), ("b", "c")]


def test_a_commit_under_way_is_no_reason_to_wake_all_the_time() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann = exchange.client("a", "ann")
    ann.publish({"x": 1})
    broker.receive(ann.link, b"".join(ann.session.take()), exchange.now_us)
    assert broker.take().commit is not None
    exchange.now_us += 600_000  # a slow disk: by now acknowledgements are to be written too
    broker.wake(exchange.now_us)
    assert broker.take().commit is None
    assert broker.deadline_us > exchange.now_us


def test_best_effort_messages_do_not_use_up_the_credit_of_a_durable_subscription() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x >= 0", durable="d", credit=2)
    exchange.run()
    for x in range(10):
        bob.publish({"x": x}, durable=bool(x % 2))
        exchange.run()
    assert ann.got(id) == [{"x": x} for x in range(10)]
    assert ann.session.subscriptions.unacknowledged(id) == 0


def test_a_name_can_be_used_again_at_once() -> None:
    """The end of the old subscription, once it is safe, is not that of the new one."""
    exchange = network(LINE)
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    old = ann.session.subscriptions.subscribe("x > 0", durable="d")
    exchange.run()
    ann.session.subscriptions.unsubscribe(old, forget=True)
    new = bob.session.subscriptions.subscribe("x > 0", durable="d")
    exchange.run()
    assert len(ann.heard(Unsubscribed)) == len(bob.heard(Subscribed)) == 1
    exchange.client("c", "carl").publish({"x": 1})
    exchange.run()
    assert not bob.heard(SubscriptionEnded)
    assert bob.got(new) == [{"x": 1}]


def test_a_subscription_is_not_said_to_be_there_because_an_earlier_one_was() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    old = ann.session.subscriptions.subscribe("x > 0", durable="d")
    broker.receive(ann.link, b"".join(ann.session.take()), exchange.now_us)
    ticket = broker.take().commit
    assert ticket is not None
    exchange.now_us += 1
    ann.session.subscriptions.unsubscribe(old, forget=True)
    broker.receive(ann.link, b"".join(ann.session.take()), exchange.now_us)
    bob.session.subscriptions.subscribe("x > 0", durable="d")
    broker.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)
    broker.committed(ticket, exchange.now_us)
    assert bob.link not in broker.take().writes


def test_a_forgotten_subscription_is_said_to_be_gone_when_that_is_safe() -> None:
    exchange = network(LINE)
    ann = exchange.client("a", "ann")
    id = ann.session.subscriptions.subscribe("x > 0", durable="d")
    exchange.run()
    broker = exchange.brokers["a"]
    ann.session.subscriptions.unsubscribe(id, forget=True)
    broker.receive(ann.link, b"".join(ann.session.take()), exchange.now_us)
    effects = broker.take()
    assert effects.commit is not None
    assert ann.link not in effects.writes
    assert list(broker.parts.view.database.durables()), (
        "the other brokers keep messages for it still"
    )
    broker.committed(effects.commit, exchange.now_us)
    effects = broker.take()
    assert ann.link in effects.writes
    assert not list(broker.parts.view.database.durables())
    assert len(effects.writes) == 2, "the neighbour hears of it in the same turn"


def test_a_subscription_that_begins_with_too_much_is_refused() -> None:
    exchange = Exchange()
    exchange.add("a", bounds=Bounds(queue=2))
    ann = exchange.client("a", "ann")
    for x in range(3):
        ann.publish({"x": x})
    exchange.run()
    ann.session.subscriptions.subscribe("x >= 0", durable="d", since=0, full="end")
    exchange.run()
    (refused,) = ann.heard(Refused)
    assert "more messages waited" in refused.reason  # type: ignore[union-attr]
    assert not list(exchange.brokers["a"].parts.view.database.durables())
    exchange.advance(1)
    new = ann.session.subscriptions.subscribe("x >= 0", durable="d", full="end")
    exchange.run()
    ann.publish({"x": 7})
    exchange.run()
    assert ann.got(new) == [{"x": 7}]


def test_a_link_with_little_room_takes_the_first_of_a_stream() -> None:
    """They are awaited: were the last to push them out, nothing would ever be acknowledged."""
    exchange = network(LINE, link_credit=8, waiting_max=3)  # the live ones use up the credit
    ann, bob = exchange.client("b", "ann"), exchange.client("a", "bob")
    ann.session.subscriptions.subscribe("x >= 0", durable="d")
    exchange.run()
    bob.publish({"x": 0})
    exchange.run()  # its acknowledgement tells how many may be under way
    for x in range(20):
        bob.publish({"x": x})
    origin = exchange.brokers["a"]
    origin.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)
    ticket = origin.take().commit
    assert ticket is not None
    origin.committed(ticket, exchange.now_us)
    neighbours = origin.parts.neighbours.links
    sent = [f for fs in origin.take().writes.values() for f in FrameReader().feed(b"".join(fs))]
    waiting = list(FrameReader().feed(b"".join(neighbours._carrying["b"].frames)))
    numbers = [
        f.header.targets[0].number
        for f in [*sent, *waiting]
        if isinstance(f, MessageFrame) and isinstance(f.header, CarryHeader)
    ]
    assert numbers == [2, 3, 4]


def test_a_run_of_durable_messages_goes_to_other_brokers() -> None:
    exchange = network(LINE)
    ann, bob = exchange.client("c", "ann"), exchange.client("a", "bob")
    live, kept = (
        ann.session.subscriptions.subscribe("x >= 0"),
        ann.session.subscriptions.subscribe("x >= 0", durable="d"),
    )
    exchange.run()
    for x in range(200):
        bob.publish({"x": x})
    exchange.run()
    assert ann.got(live) == ann.got(kept) == [{"x": x} for x in range(200)]


def test_an_advertiser_leaves_nothing_behind() -> None:
    exchange = Exchange()
    broker = exchange.add("a", routing="forwarding", advertisements=True)
    peers = set(broker.parts.port.router.peers)
    ann = exchange.client("a", "ann")
    ann.session.requests.advertise(("x > 0",))
    exchange.run()
    assert set(broker.parts.port.router.peers) != peers
    exchange.disconnect(ann)
    assert set(broker.parts.port.router.peers) == peers


def test_limits_change_between_two_frames_that_came_together() -> None:
    """The last message of a handshake and the first message may come in one piece."""
    frames = FrameReader(BEFORE_HELLO)
    publish_frame = message_frame(PublishHeader(1, 0, False), b"{}", b"body")
    found = frames.feed(control_frame(Ping(1)) + publish_frame)
    assert next(found) == Ping(1)
    frames.limits = Limits()
    assert isinstance(next(found), MessageFrame)


class TestForgetting:
    """A session asks for a name again only when the broker has forgotten it."""

    WELCOME = control_frame(Welcome(VERSION, "a", keepalive_us=1))

    @staticmethod
    def said(session: Session) -> list[ControlMessage | MessageFrame]:
        return list(FrameReader().feed(b"".join(session.take())))

    def test_a_lost_connection_forgets_only_the_old_one(self) -> None:
        session = Session("ann")
        session.opened(1)
        session.receive(self.WELCOME, 1)
        old = session.subscriptions.subscribe("x > 0", durable="d")
        session.subscriptions.unsubscribe(old, forget=True)
        new = session.subscriptions.subscribe("x > 1", durable="d")
        asked = [SubscribeRequest(old, "x > 0", durable="d"), UnsubscribeRequest(old, True)]
        assert self.said(session)[1:] == asked
        session.closed()
        session.opened(2)
        session.receive(self.WELCOME, 2)
        assert self.said(session)[1:] == asked
        session.receive(control_frame(Unsubscribed(old)), 3)
        assert self.said(session) == [SubscribeRequest(new, "x > 1", durable="d")]

    def test_what_was_not_asked_for_is_dropped_without_a_word(self) -> None:
        session = Session("ann")
        session.opened(1)
        session.receive(self.WELCOME, 1)
        old = session.subscriptions.subscribe("x > 0", durable="d")
        session.subscriptions.unsubscribe(old, forget=True)
        new = session.subscriptions.subscribe("x > 1", durable="d")
        self.said(session)
        assert not session.subscriptions.unsubscribe(new, forget=True)
        session.receive(control_frame(Unsubscribed(old)), 3)
        assert self.said(session) == []


def test_a_durable_subscription_that_is_refused_for_its_credit_leaves_nothing_behind() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann = exchange.client("a", "ann")
    subscription = SubscribeRequest(7, "x > 0", durable="d", credit=0)
    broker.receive(ann.link, control_frame(subscription), exchange.now_us)
    exchange.run()
    assert [one.id for one in ann.heard(Refused)] == [7]
    assert not list(broker.parts.messages.subscriptions())
    broker.receive(
        ann.link, control_frame(SubscribeRequest(7, "x > 0", durable="d")), exchange.now_us
    )
    exchange.run()
    assert [fact.name for fact in broker.parts.messages.subscriptions()] == ["anybody/d"]


def test_a_broker_may_be_called_like_what_it_calls_a_neighbour() -> None:
    """A router calls its neighbour b `nb`, and itself something that no peer is called."""
    exchange = network([("nb", "b")], routing="forwarding")
    bob = exchange.client("b", "bob")
    id = bob.session.subscriptions.subscribe("x > 0")
    exchange.run()
    exchange.client("nb", "ann").publish({"x": 1}, durable=False)
    exchange.run()
    assert bob.got(id) == [{"x": 1}]


def test_a_live_subscription_that_ended_is_gone() -> None:
    """Its place is free, it is not listed among those that get messages, and what comes in the same
    batch is for nobody."""
    exchange = Exchange()
    broker = exchange.add(
        "a", routing="forwarding", waiting_max=3, subscriptions=SubscriptionBounds(1)
    )
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x >= 0", full="end")
    exchange.run()
    broker.congest(ann.link, True, exchange.now_us)
    for x in range(9):
        bob.publish({"x": x}, durable=False)
    exchange.run()
    broker.congest(ann.link, False, exchange.now_us)
    exchange.run()
    assert ann.heard(SubscriptionEnded) == [
        SubscriptionEnded(id, "more than 3 messages waited for this subscription", EndCode.FULL)
    ]
    assert ann.got(id) == []
    assert broker.parts.local.counts.ended == 1
    assert broker.parts.data_path.counts.dropped == 0
    assert list(broker.parts.subscriptions) == []
    again = ann.session.subscriptions.subscribe("x >= 0", full="end")
    bob.publish({"x": 10}, durable=False)
    exchange.run()
    assert ann.got(again) == [{"x": 10}]
    assert not ann.heard(Refused)


def test_messages_for_a_group_without_credit_wait_for_its_members_in_turn() -> None:
    exchange = Exchange()
    broker = exchange.add("a", waiting_max=3)
    ann, ben, bob = (exchange.client("a", name) for name in ("ann", "ben", "bob"))
    ids = [
        client.session.subscriptions.subscribe("x >= 0", group="g", full="end")
        for client in (ann, ben)
    ]
    exchange.run()
    for congested in (True, False):
        for client in (ann, ben):
            broker.congest(client.link, congested, exchange.now_us)
        if congested:
            for x in range(6):
                bob.publish({"x": x}, durable=False)
        exchange.run()
    assert [len(ann.got(ids[0])), len(ben.got(ids[1]))] == [3, 3]


def test_a_subscription_that_ends_when_it_has_just_become_safe() -> None:
    """The commit is done, and before anybody hears of that, too much waits."""
    exchange = Exchange()
    broker = exchange.add("a", bounds=Bounds(queue=2))
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x >= 0", durable="d", full="end")
    broker.receive(ann.link, b"".join(ann.session.take()), exchange.now_us)
    ticket = broker.take().commit
    assert ticket is not None
    broker.committed(ticket, exchange.now_us)
    for x in range(4):
        bob.publish({"x": x})
    broker.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)
    exchange.run()
    (ended,) = ann.heard(SubscriptionEnded)
    assert ended.id == id  # type: ignore[union-attr]
    assert not ann.heard(Subscribed)
    assert not list(broker.parts.view.database.durables())


def test_nothing_comes_after_bye() -> None:
    """A pattern occurs by messages that arrived before its watcher is sent away."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.session.subscriptions.subscribe(pattern="[x = 1] then [x = 2]")
    exchange.run()
    bob.publish({"x": 1}, durable=False)
    exchange.now_us += 1
    bob.publish({"x": 2}, durable=False)
    broker.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)
    broker.receive(ann.link, control_frame(Welcome(VERSION, "zoe")), exchange.now_us)
    effects = broker.take()
    assert [link for link, _ in effects.closes] == [ann.link]
    said = list(FrameReader().feed(b"".join(effects.writes[ann.link])))
    assert [type(one) for one in said] == [Occurred, Bye]


def test_what_follows_from_what_follows_is_done_in_the_same_turn() -> None:
    """A link is closed, so its client's messages are stored, so another link is closed."""
    exchange = Exchange()
    broker = exchange.add("a", waiting_max=2)
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.session.subscriptions.subscribe("x > 0", credit=1, full="end")
    exchange.run()
    for x in range(1, 6):
        bob.publish({"x": x}, durable=False)
    broker.receive(bob.link, b"".join(bob.session.take()), exchange.now_us)
    broker.receive(bob.link, control_frame(Welcome(VERSION, "zoe")), exchange.now_us)
    assert not broker.parts.local.overflowed
    assert not list(broker.parts.subscriptions)


def test_an_explanation_is_asked_for_by_the_whole_name_of_a_subscription() -> None:
    """`y` is not how anybody calls the durable subscription x/y."""
    exchange = Exchange()
    exchange.add("a")
    ann = exchange.client("a", "ann")
    ann.session.subscriptions.subscribe("x > 5", durable="x/y")
    exchange.run()
    for name in ("y", "x/y", "anybody/x/y"):
        ann.session.requests.explain('{"x": 1}', name)
    exchange.run()
    told = [[name for name, _ in one.hops[0].delivers] for one in ann.heard(Explained)]  # type: ignore[union-attr]
    assert told == [[], ["anybody/x/y"], ["anybody/x/y"]]
