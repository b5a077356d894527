"""The client's session against the stand-in broker, over connections that are cut at any byte."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

import palio
from palio.errors import InvalidValue, NetworkError
from palio.protocol.client.events import Arrival, CloseCause, Closing, SessionEvent
from palio.protocol.client.session import Session, SessionSettings
from palio.protocol.wire import control
from palio.protocol.wire.codes import CloseCode, EndCode
from palio.protocol.wire.frames import FrameReader, Limits, control_frame, message_frame
from palio.protocol.wire.headers import DeliverHeader, ForwardHeader
from tests.protocol.stand_in import StandIn
from tests.seeds import seeds

WELCOME = control_frame(control.Welcome(control.VERSION, "b", "ann", 0, 3_000_000))


def said(session: Session) -> list[object]:
    """What the session wants to write, read back."""
    return list(FrameReader().feed(b"".join(session.take())))


def ready(session: Session | None = None, now_us: int = 0) -> Session:
    session = session or Session("c")
    session.opened(now_us)
    session.receive(WELCOME, now_us)
    session.take()
    return session


def deliver(id: int, position: int, number: int, again: bool = False) -> bytes:
    return message_frame(DeliverHeader((id,), position, "p", number, 0, 1 + again), b'{"x":1}', b"")


class TestHandshake:
    def test_hello_is_first_and_alone(self) -> None:
        session = Session("desk", "secret")
        session.subscriptions.subscribe("x = 1")
        session.opened(5)
        assert said(session) == [control.Hello(control.VERSION, "client", "desk", "secret")]
        session.receive(WELCOME, 6)
        assert session.is_ready
        assert said(session) == [control.SubscribeRequest(1, "x = 1")]

    @pytest.mark.parametrize(
        ("version", "older"), [(control.VERSION + 1, "client"), (control.VERSION - 1, "broker")]
    )
    def test_other_versions_are_refused(self, version: int, older: str) -> None:
        session = Session("c")
        session.opened(0)
        (closing,) = session.receive(control_frame(control.Welcome(version, "b")), 1)
        assert isinstance(closing, Closing)
        assert closing.cause is CloseCause.OTHER_VERSION
        assert closing.cause.is_refusal
        assert f"version {version}" in closing.reason
        assert f"the {older} is older" in closing.reason

    def test_bye_instead_of_welcome(self) -> None:
        session = Session("c")
        session.opened(0)
        bye = control.Bye("no such token", CloseCode.DENIED)
        (closing,) = session.receive(control_frame(bye), 1)
        assert closing == Closing(CloseCause.REFUSED, "no such token", CloseCode.DENIED)
        assert closing.cause.is_refusal

    @pytest.mark.parametrize("code", CloseCode)
    def test_the_code_of_bye_says_whether_to_try_again(self, code: CloseCode) -> None:
        session = Session("c")
        session.opened(0)
        session.take()
        (closing,) = session.receive(control_frame(control.Bye("no", code)), 1)
        assert isinstance(closing, Closing)
        is_refusal = code in (
            CloseCode.DENIED, CloseCode.VERSION, CloseCode.PROTOCOL, CloseCode.ROLES,
            CloseCode.ROUTING,
        )  # fmt: skip
        assert closing.cause.is_refusal is is_refusal
        assert said(session) == [], "the broker knows why"

    def test_bye_later_is_no_refusal(self) -> None:
        session = ready()
        (closing,) = session.receive(control_frame(control.Bye("good night")), 1)
        assert closing == Closing(CloseCause.BYE, "good night", CloseCode.PROTOCOL)
        assert not closing.cause.is_refusal
        assert said(session) == [], "the broker knows why"

    def test_another_first_word(self) -> None:
        session = Session("c")
        session.opened(0)
        (closing,) = session.receive(control_frame(control.Published(1)), 1)
        assert isinstance(closing, Closing)
        assert closing.cause is CloseCause.PROTOCOL_ERROR
        assert not session.is_ready

    def test_no_welcome_in_time(self) -> None:
        session = Session("c", settings=SessionSettings(handshake_us_max=100))
        session.opened(0)
        assert session.deadline_us == 100
        assert session.wake(99) == []
        (closing,) = session.wake(100)
        assert isinstance(closing, Closing)
        assert closing.cause is CloseCause.NO_WELCOME

    @pytest.mark.parametrize(
        "data",
        [
            b"\0\0\0\0\0\0\0\0",
            b"HTTP/1.1 400 Bad Request\r\n",
            control_frame(control.Confirm(b"")),
            message_frame(ForwardHeader(b"\xc0", "p", 1, 1, False), b"{}", b""),  # type: ignore[arg-type]
        ],
    )
    def test_what_is_not_for_clients_ends_the_connection(self, data: bytes) -> None:
        session = ready()
        (closing,) = session.receive(data, 1)
        assert isinstance(closing, Closing)
        (bye,) = said(session)
        assert bye == control.Bye(closing.reason)
        assert session.receive(WELCOME, 2) == []


class TestKeepalive:
    def test_pings_in_time_and_hears_silence(self) -> None:
        session = ready()
        assert session.deadline_us == 1_000_000
        assert session.wake(999_999) == []
        assert said(session) == []
        assert session.wake(1_000_000) == []
        assert said(session) == [control.Ping(1_000_000)]
        session.receive(control_frame(control.Pong(1_000_000)), 1_000_500)
        session.wake(2_000_000)
        session.wake(3_000_000)
        assert session.deadline_us == 4_000_000
        session.take()
        (closing,) = session.wake(4_000_500)
        assert isinstance(closing, Closing)
        assert closing.cause is CloseCause.SILENCE
        assert "silent for 3 s" in closing.reason

    def test_a_client_that_was_asleep_does_not_blame_the_broker(self) -> None:
        session = ready()
        assert session.wake(60_000_000) == []  # what came meanwhile is not read yet
        assert said(session) == [control.Ping(60_000_000)]
        assert session.deadline_us == 61_000_000
        session.wake(61_000_000)
        (closing,) = session.wake(62_000_000)
        assert isinstance(closing, Closing)

    def test_answers_pings(self) -> None:
        session = ready()
        session.receive(control_frame(control.Ping(7)), 1)
        assert said(session) == [control.Pong(7)]


class TestPublishing:
    def test_numbers_grow_over_restarts(self) -> None:
        first = ready(now_us=1000)
        assert [first.publisher.publish(b"{}", b"", 0) for _ in range(3)] == [1001, 1002, 1003]
        second = Session("c")
        second.opened(500)  # a clock that went back
        second.receive(control_frame(control.Welcome(control.VERSION, "b", published=1003)), 500)
        assert second.publisher.publish(b"{}", b"", 0) == 1004

    def test_numbers_that_a_program_repeats(self) -> None:
        session = Session("c", first=11)
        session.opened(500)
        session.receive(control_frame(control.Welcome(control.VERSION, "b", published=12)), 500)
        session.take()
        assert [session.publisher.publish(b"{}", b"", 0) for _ in range(4)] == [11, 12, 13, 14]
        sent = said(session)
        assert [frame.header.number for frame in sent] == [13, 14]  # type: ignore[attr-defined]
        assert (
            session.outbox.is_unstored(12),
            session.outbox.is_unstored(13),
            session.outbox.unstored,
        ) == (
            False,
            True,
            2,
        )
        session.closed()
        session.opened(600)
        session.receive(control_frame(control.Welcome(control.VERSION, "b", published=20)), 600)
        assert session.outbox.unstored == 0
        assert session.publisher.publish(b"{}", b"", 0) == 15  # it goes on with its own numbers
        assert session.outbox.unstored == 0

    def test_what_is_rejected_is_settled(self) -> None:
        session = ready(now_us=1000)
        for durable in (True, True, False, True):
            session.publisher.publish(b"{}", b"", 0, durable)
        rejected, published = control.Rejected(1002, "no"), control.Published(1001)
        assert session.receive(control_frame(rejected), 2) == [rejected]  # 1001 is still open
        assert session.outbox.unstored == 2
        assert session.receive(control_frame(published), 2) == [control.Published(1003)]
        last = control.Rejected(1004, "no")
        assert session.receive(control_frame(last), 2) == [last, control.Published(1004)]
        assert session.outbox.unstored == 0
        assert not session.outbox.is_unstored(1004)

    def test_nothing_before_the_first_welcome(self) -> None:
        with pytest.raises(NetworkError, match="Welcome"):
            Session("c").publisher.publish(b"{}", b"", 0)

    def test_resent_after_a_reconnect(self) -> None:
        session = ready()
        numbers = [session.publisher.publish(b"{}", b"", 0) for _ in range(5)]
        session.publisher.publish(b"{}", b"", 0, durable=False)
        session.take()
        session.receive(control_frame(control.Published(numbers[0])), 1)
        session.closed()
        late = session.publisher.publish(b"{}", b"", 0)
        session.opened(2)
        events = session.receive(
            control_frame(control.Welcome(control.VERSION, "b", published=numbers[2])), 3
        )
        assert control.Published(numbers[2]) in events
        frames = said(session)[1:]
        assert [frame.header.number for frame in frames] == [*numbers[3:], late]  # type: ignore[attr-defined]
        assert session.outbox.unstored == 3

    def test_bounds(self) -> None:
        session = ready(Session("c", settings=SessionSettings(outbox_messages_max=2)))
        session.publisher.publish(b"{}", b"", 0)
        assert session.outbox.has_room
        number = session.publisher.publish(b"{}", b"", 0)
        assert not session.outbox.has_room
        with pytest.raises(NetworkError, match="has_room"):
            session.publisher.publish(b"{}", b"", 0)
        session.receive(control_frame(control.Published(number)), 1)
        assert session.outbox.has_room
        session = ready(Session("c", settings=SessionSettings(outbox_bytes_max=100)))
        session.publisher.publish(b"{}", bytes(200), 0)
        assert not session.outbox.has_room

    def test_too_large(self) -> None:
        session = ready(
            Session("c", settings=SessionSettings(limits=Limits(attributes=10, body=10)))
        )
        for attributes, body in ((b"{" * 11, b""), (b"{}", b"0" * 11)):
            with pytest.raises(InvalidValue, match="the most are 10 and 10"):
                session.publisher.publish(attributes, body, 0)

    def test_best_effort_without_a_connection_is_counted(self) -> None:
        session = ready()
        session.closed()
        session.publisher.publish(b"{}", b"", 0, durable=False)
        assert (session.publisher.dropped, session.outbox.unstored) == (1, 0)

    def test_quenching(self) -> None:
        session = ready()
        message = palio.Message({"x": 1})
        session.receive(control_frame(control.Wanted("x = 2")), 1)
        assert session.quenching.wants(message), "nobody asked"
        id = session.quenching.switch(True)
        assert said(session) == [control.Quench(id, True)]
        assert session.quenching.wants(message)
        session.receive(control_frame(control.Done(id)) + control_frame(control.Wanted("x = 2")), 1)
        assert not session.quenching.wants(message)
        session.receive(control_frame(control.Wanted("FALSE")), 1)
        assert not session.quenching.wants(message)
        session.receive(control_frame(control.Wanted(None)), 1)
        assert session.quenching.wants(message)
        session.receive(control_frame(control.Wanted("x = 2")), 1)
        session.closed()
        assert session.quenching.wants(message), "what was known has gone with the connection"
        session.opened(1)
        session.receive(WELCOME, 1)
        assert control.Quench(id, True) in said(session)
        session.receive(control_frame(control.Wanted("x = 2")), 1)
        session.quenching.switch(False)
        assert session.quenching.wants(message)


class TestReceiving:
    def test_credit_is_granted_as_messages_are_consumed(self) -> None:
        session = ready()
        id = session.subscriptions.subscribe("x = 1", credit=4)
        session.take()
        arrivals = session.receive(deliver(id, 0, 1) + deliver(id, 0, 2) + deliver(id, 0, 3), 1)
        assert [arrival.header.number for arrival in arrivals] == [1, 2, 3]  # type: ignore[union-attr]
        session.subscriptions.consumed(id)
        assert said(session) == []
        session.subscriptions.consumed(id)
        assert said(session) == [control.Credit(id, 2)]
        session.closed()
        session.opened(1)
        session.receive(WELCOME, 1)
        assert said(session)[1:] == [control.SubscribeRequest(id, "x = 1", credit=3)], (
            "one still waits"
        )

    def test_a_durable_subscription_gets_live_messages_too(self) -> None:
        session = ready()
        id = session.subscriptions.subscribe("x = 1", durable="d", credit=2)
        session.take()
        live = b"".join(deliver(id, 0, number) for number in (7, 7, 8))  # of several publishers
        assert len(session.receive(deliver(id, 1, 7) + live, 1)) == 4
        assert session.subscriptions.unacknowledged(id) == 1
        session.subscriptions.consumed(id, 3)
        assert said(session) == [control.Credit(id, 3)]

    def test_acknowledgements_gather(self) -> None:
        session = ready()
        id = session.subscriptions.subscribe("x = 1", durable="d")
        session.take()
        session.receive(deliver(id, 1, 1) + deliver(id, 2, 2), 1)
        assert session.subscriptions.unacknowledged(id) == 2
        session.subscriptions.acknowledge(id, 2)
        session.subscriptions.acknowledge(id, 1)
        session.subscriptions.acknowledge(id, 1)
        assert said(session) == [control.Acknowledge(id, (2, 1))]
        assert session.subscriptions.unacknowledged(id) == 0

    def test_what_comes_again_is_not_given_again(self) -> None:
        session = ready()
        id = session.subscriptions.subscribe("x = 1", durable="d")
        session.receive(deliver(id, 1, 1) + deliver(id, 2, 2) + deliver(id, 5, 5), 1)
        session.subscriptions.acknowledge(id, 2)
        session.take()
        session.closed()
        session.opened(1)
        session.receive(WELCOME, 1)
        session.take()
        again = b"".join(deliver(id, p, p, True) for p in (1, 2, 4, 5))
        assert [a.header.position for a in session.receive(again, 2)] == [4]  # type: ignore[union-attr]
        assert said(session) == [control.Acknowledge(id, (2,))], "the broker had not heard it"
        session.subscriptions.acknowledge(id, 1)
        assert said(session) == [control.Acknowledge(id, (1,))]

    def test_a_broker_that_lost_its_disk_counts_anew(self) -> None:
        session = ready()
        id = session.subscriptions.subscribe("x = 1", durable="d")
        session.receive(deliver(id, 1, 70), 1)
        session.subscriptions.acknowledge(id, 1)
        (arrival,) = session.receive(deliver(id, 1, 99), 1)
        assert isinstance(arrival, Arrival)

    def test_ended_refused_and_late(self) -> None:
        session = ready()
        ended, refused, left = (session.subscriptions.subscribe("x = 1") for _ in range(3))
        words_in = [
            control.SubscriptionEnded(ended, "bound", EndCode.FULL),
            control.Refused(refused, "no grant"),
        ]
        assert session.receive(b"".join(map(control_frame, words_in)), 1) == words_in
        assert session.subscriptions.unsubscribe(left)
        for id in (ended, refused, left):
            assert session.receive(deliver(id, 0, 1), 1) == []
            assert not session.subscriptions.is_subscribed(id)
        assert session.receive(control_frame(control.Unsubscribed(left)), 1) == [
            control.Unsubscribed(left)
        ]

    def test_leaving_without_a_connection(self) -> None:
        session = ready()
        live, kept, gone = (
            session.subscriptions.subscribe("x = 1", durable=d) for d in ("", "a", "b")
        )
        session.closed()
        assert [
            session.subscriptions.unsubscribe(live),
            session.subscriptions.unsubscribe(kept),
        ] == [False, False]
        assert session.subscriptions.unsubscribe(gone, forget=True)
        session.opened(1)
        session.receive(WELCOME, 1)
        assert said(session)[1:] == [
            control.SubscribeRequest(gone, "x = 1", durable="b"),
            control.UnsubscribeRequest(gone, True),
        ]

    def test_the_connection_is_lost_while_leaving(self) -> None:
        session = ready()
        live, gone = (
            session.subscriptions.subscribe("x = 1"),
            session.subscriptions.subscribe("x = 1", durable="b"),
        )
        session.subscriptions.unsubscribe(live)
        session.subscriptions.unsubscribe(gone, forget=True)
        assert session.closed() == [control.Unsubscribed(live)]

    def test_only_the_same_name_and_group_wait_until_the_broker_has_forgotten_the_first(
        self,
    ) -> None:
        session = ready()
        subscribe = session.subscriptions.subscribe
        gone = subscribe("x = 1", durable="d", group="g")
        session.subscriptions.unsubscribe(gone, forget=True)
        same, other = (subscribe("x = 2", durable="d", group=group) for group in ("g", "h"))
        sent = [one.id for one in said(session) if isinstance(one, control.SubscribeRequest)]
        assert sent == [gone, other]
        session.receive(control_frame(control.Unsubscribed(gone)), 1)
        assert said(session) == [control.SubscribeRequest(same, "x = 2", durable="d", group="g")]

    def test_credit_is_positive(self) -> None:
        with pytest.raises(InvalidValue, match="from 1 to"):
            Session("c").subscriptions.subscribe("x = 1", credit=0)


def test_requests_are_asked_again_until_answered() -> None:
    session = ready()
    advertised = session.requests.advertise(("x = 1",))
    taken_back = session.requests.advertise(("x = 2",))
    show, explain, given_up = (
        session.requests.show(),
        session.requests.explain("{}"),
        session.requests.show(),
    )
    answers = [control.Done(advertised), control.Done(taken_back), control.Shown(show, ())]
    assert session.receive(b"".join(map(control_frame, answers)), 1) == answers
    assert session.requests.unadvertise(taken_back)
    session.requests.withdraw(given_up)
    assert session.closed() == [control.Done(taken_back)]
    session.opened(2)
    session.receive(WELCOME, 2)
    assert said(session)[1:] == [
        control.AdvertiseRequest(advertised, ("x = 1",)),
        control.Explain(explain, "{}"),
    ]


class World:
    """Two publishers and three subscribers over links that are cut wherever chance says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.broker = StandIn()
        self.now_us = 1000
        settings = SessionSettings(outbox_messages_max=30)
        self.sessions = [Session(f"c{i}", settings=settings) for i in range(3)]
        self.links: list[int | None] = [None] * len(self.sessions)
        self.last_link = 0
        self.reconnects = 0
        self.subscriptions: dict[tuple[int, int], tuple[str, bool]] = {}
        self.got: dict[tuple[int, int], list[DeliverHeader]] = defaultdict(list)
        self.held: list[tuple[int, int, int]] = []
        self.published: dict[int, list[int]] = defaultdict(list)
        self.durable: dict[tuple[str, int], int] = {}
        """publisher and number → x"""

    def step(self) -> None:
        self.now_us += self.random.randrange(100)
        who = self.random.randrange(len(self.sessions))
        if self.links[who] is None:
            self.connect(who)
            return
        session = self.sessions[who]
        action = self.random.choice(["publish"] * 4 + ["ack"] * 3 + ["move"] * 3 + ["cut", "wake"])
        if action == "publish" and session.welcome is not None and session.outbox.has_room:
            x, durable = self.random.randrange(6), self.random.random() < 0.8
            number = session.publisher.publish(b'{"x":%d}' % x, b"", self.now_us, durable)
            if durable:
                self.published[who].append(number)
                self.durable[f"anyone/c{who}", number] = x
        elif action == "ack" and self.held:
            self.settle(self.random.randrange(len(self.held)))
        elif action == "wake":
            self.happen(who, session.wake(self.now_us))
        elif action == "cut":
            self.move(who, self.random.randrange(200), self.random.randrange(200))
            self.disconnect(who)
            if self.random.random() < 0.3:
                self.broker.lose_acknowledgements(self.random.randrange(4))
        else:
            self.move(who)

    def settle(self, at: int) -> None:
        who, id, position = self.held.pop(at)
        if position:
            self.sessions[who].subscriptions.acknowledge(id, position)
        else:
            self.sessions[who].subscriptions.consumed(id)

    def connect(self, who: int) -> None:
        self.last_link += 1
        self.reconnects = max(0, self.last_link - 3)
        self.links[who] = self.last_link
        self.broker.open(self.last_link)
        self.sessions[who].opened(self.now_us)

    def disconnect(self, who: int) -> None:
        link, self.links[who] = self.links[who], None
        assert link is not None
        self.happen(who, self.sessions[who].closed())
        self.broker.close(link)

    def move(self, who: int, up: int = 1 << 60, down: int = 1 << 60) -> None:
        """Bytes both ways, in pieces; at most so many."""
        link = self.links[who]
        if link is None:
            return
        data = b"".join(self.sessions[who].take())[:up]
        for piece in self.pieces(data):
            self.broker.receive(link, piece)
        data, self.broker.out[link] = b"".join(self.broker.out[link])[:down], []
        for piece in self.pieces(data):
            self.happen(who, self.sessions[who].receive(piece, self.now_us))

    def pieces(self, data: bytes) -> list[bytes]:
        at = sorted(self.random.randrange(len(data) + 1) for _ in range(self.random.randrange(4)))
        return [data[a:b] for a, b in zip([0, *at], [*at, len(data)], strict=True)]

    def happen(self, who: int, events: list[SessionEvent]) -> None:
        for event in events:
            assert not isinstance(event, Closing), event
            if isinstance(event, Arrival):
                key = who, event.id
                self.got[key].append(event.header)
                self.held.append((*key, event.header.position))
                waiting = sum(held == (*key, 0) for held in self.held)
                if self.subscriptions[key][1]:
                    unacknowledged = sum(held[:2] == key and held[2] > 0 for held in self.held)
                    assert unacknowledged <= 5
                    assert waiting <= 5 * (1 + self.reconnects)
                else:
                    assert waiting <= 5 + self.reconnects, "the credit, one for each reconnect"

    def finish(self) -> None:
        for who in range(len(self.sessions)):
            if self.links[who] is None:
                self.connect(who)
        for _ in range(400):
            while self.held:
                self.settle(0)
            for who in range(len(self.sessions)):
                self.move(who)
                self.move(who)


@seeds(40, 100)
def test_nothing_is_lost_doubled_or_out_of_order(seed: int) -> None:
    world = World(seed)
    for who, session in enumerate(world.sessions):
        for name in ("", "desk"):
            text = f"x < {world.random.randrange(1, 7)}"
            id = session.subscriptions.subscribe(text, durable=name and f"{name}-{who}", credit=5)
            world.subscriptions[who, id] = text, bool(name)
        world.connect(who)
        world.move(who)
        world.move(who)
    for _ in range(400):
        world.step()
    world.finish()

    stored = defaultdict(list)
    for publisher, number, _attributes, _body in world.broker.stored:
        stored[publisher].append(number)
    assert stored == {f"anyone/c{who}": numbers for who, numbers in world.published.items()}
    assert [session.outbox.unstored for session in world.sessions] == [0, 0, 0]
    for key, (text, is_durable) in world.subscriptions.items():
        got = [(header.publisher, header.number) for header in world.got[key]]
        assert len(got) == len(set(got)), "nothing twice"
        for publisher in stored:
            for is_queued in (False, True) if is_durable else (False,):
                numbers = [
                    header.number
                    for header in world.got[key]
                    if header.publisher == publisher and (header.position > 0) == is_queued
                ]
                assert numbers == sorted(numbers), "the order of each publisher"
        if is_durable:
            predicate = palio.parse(text)
            wanted = {who for who, x in world.durable.items() if predicate.matches({"x": x})}
            assert set(got) & world.durable.keys() == wanted
    assert all(not queue.entries for queue in world.broker.queues.values()), "all acknowledged"
