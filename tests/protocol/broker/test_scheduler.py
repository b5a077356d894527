"""Turns with a budget: requests wait in their links' backlogs, in order, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import pytest

from palio.model.language import parse
from palio.protocol.broker import clients, scheduler, subscription_checks
from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.explain import DELIVERS_MAX
from palio.protocol.broker.settings import Settings, SubscriptionBounds
from palio.protocol.interfaces import Advertiser, LiveSubscription
from palio.protocol.wire.control import (
    VERSION,
    AdvertiseRequest,
    Done,
    Explain,
    Explained,
    Hello,
    Ping,
    Pong,
    Quench,
    Refused,
    Subscribed,
    SubscribeRequest,
    SubscriptionEnded,
    UnadvertiseRequest,
    Wanted,
)
from palio.protocol.wire.frames import FrameReader, MessageFrame, control_frame, message_frame
from palio.protocol.wire.headers import PublishHeader
from palio.sim.kernel.disk import SimulatedDisk

NOW = 10**15


class Host:
    """Runs a core; `turns` counts its turns, and jobs are run after one more turn."""

    def __init__(
        self,
        access: Access | None = None,
        stopwatch: Callable[[], float] | None = None,
        **settings: object,
    ) -> None:
        access = access or Access(anonymous=Identity("anybody", EVERYTHING, EVERYTHING))
        self.disk: SimulatedDisk[bytes] = SimulatedDisk()
        self.core = Broker(
            Settings("a", access, **settings),  # type: ignore[arg-type]
            self.disk, NOW, bytes, defers=True, stopwatch=stopwatch,
        )  # fmt: skip
        self.readers: dict[int, FrameReader] = {}
        self.heard: dict[int, list[object]] = {}
        self.reading: dict[int, bool] = {}
        self.turns = 0

    def client(self, link: int) -> None:
        self.core.open(link, NOW)
        self.readers[link], self.heard[link] = FrameReader(), []
        self.send(link, Hello(VERSION, "client", str(link)))
        self.run()
        self.heard[link].clear()

    def send(self, link: int, *control: object) -> None:
        self.core.receive(link, b"".join(map(control_frame, control)), NOW)  # type: ignore[arg-type]

    def publish(self, link: int, number: int, *, durable: bool = False) -> None:
        frame = message_frame(PublishHeader(number, 0, durable), b'{"x": 5}', b"")
        self.core.receive(link, frame, NOW)

    def turn(self) -> bool:
        """One turn; whether another one is due."""
        self.turns += 1
        effects = self.core.take()
        for link, frames in effects.writes.items():
            self.heard[link] += self.readers[link].feed(b"".join(frames))
        self.reading |= effects.reading
        if effects.commit is not None:
            self.disk.begin()
            self.disk.end()
            self.core.committed(effects.commit, NOW)
        for job in effects.jobs:
            job.run()
            self.core.finished(job, NOW)
        return bool(effects.has_more or effects.jobs or effects.commit is not None)

    def run(self) -> None:
        while self.turn():
            pass


def test_requests_of_a_client_wait_and_those_of_others_do_not() -> None:
    host = Host()
    host.client(1)
    host.client(2)
    host.send(1, *(SubscribeRequest(i, f"x = {i}") for i in range(1, 501)))
    host.send(2, SubscribeRequest(1, "x = 5"))
    host.turns = 0
    while not any(isinstance(one, Subscribed) for one in host.heard[2]):
        assert host.turn()
    assert host.turns <= 2
    assert len(host.heard[1]) < 100
    host.run()
    assert [one.id for one in host.heard[1] if isinstance(one, Subscribed)] == list(range(1, 501))
    assert host.turns > 10


def test_messages_wait_for_the_requests_before_them() -> None:
    """A client that subscribes and then publishes gets its own message."""
    host = Host()
    host.client(1)
    host.send(1, *(SubscribeRequest(i, f"x = {i} OR x = {i + 1}") for i in range(1, 101)))
    host.publish(1, 1)
    host.run()
    ids = [one.header.subscriptions for one in host.heard[1] if isinstance(one, MessageFrame)]
    assert [sorted(found) for found in ids] == [[4, 5]]


def test_a_large_predicate_is_parsed_elsewhere_and_added_in_slices() -> None:
    host = Host()
    host.client(1)
    host.client(2)
    text = " AND ".join(f"(x > {i} OR y = {i})" for i in range(5))  # 32 filters
    host.send(1, SubscribeRequest(1, text))
    host.publish(2, 1)
    host.turn()
    assert host.heard[1] == []  # it is not there yet
    host.run()
    host.publish(2, 2)
    host.run()
    subscribed, delivered = host.heard[1]
    assert isinstance(subscribed, Subscribed)
    assert isinstance(delivered, MessageFrame)
    assert delivered.header.number == 2  # type: ignore[union-attr]


def test_a_client_that_leaves_during_a_long_request_leaves_nothing_behind() -> None:
    for turns in range(6):
        host = Host()
        host.client(1)
        text = " AND ".join(f"(x > {i} OR y = {i})" for i in range(6))
        host.send(1, SubscribeRequest(1, text), SubscribeRequest(2, text, durable="d"))
        for _ in range(turns):
            host.turn()
        host.core.close(1, NOW)
        host.run()
        names = {type(one).__name__ for one in host.core.parts.table._filters}
        assert names <= {"DurableSubscription"}


def test_many_subscriptions_leave_in_slices() -> None:
    host = Host()
    host.client(1)
    host.send(1, *(SubscribeRequest(i, f"x = {i}") for i in range(1, 501)))
    host.run()
    host.turns = 0
    host.core.close(1, NOW)
    host.client(2)
    host.publish(2, 1)
    host.run()
    assert host.turns > 3
    assert len(host.core.parts.table) == 0


def test_many_durable_consumers_leave_in_slices_and_may_come_back_meanwhile() -> None:
    """Who comes back before its turn to leave gets what waits, once and in order."""
    host = Host()
    host.client(1)
    host.client(3)
    requests = [SubscribeRequest(i, f"x >= {i}", durable=f"d{i}") for i in range(1, 501)]
    host.send(1, *requests)
    host.run()
    host.turns = 0
    host.core.close(1, NOW)
    for number in (1, 2):
        host.publish(3, number, durable=True)
    host.client(2)
    host.send(2, *(requests[i] for i in (0, 4, 499)))
    host.run()
    assert host.turns > 3
    got = [one for one in host.heard[2] if isinstance(one, MessageFrame)]
    assert sorted((one.header.subscriptions, one.header.number) for one in got) == [  # type: ignore[union-attr]
        ((1,), 1), ((1,), 2), ((5,), 1), ((5,), 2),
    ]  # fmt: skip
    kinds = [type(one).__name__ for one in host.core.parts.table._filters]
    assert kinds.count("DurableSubscription") == 500
    assert kinds.count("DurableConsumers") == 3


def test_bounds_of_a_predicate_are_sentences() -> None:
    bounds = SubscriptionBounds(text_bytes_max=200, filters_max=64)
    host = Host(subscriptions=bounds)
    host.client(1)
    host.send(1, SubscribeRequest(1, "x = '" + "a" * 300 + "'"))
    host.send(1, SubscribeRequest(2, " AND ".join(f"(x={i} OR y={i})" for i in range(7))))
    host.run()
    long, wide = host.heard[1]
    assert isinstance(long, Refused)
    assert isinstance(wide, Refused)
    assert "306 bytes; this broker takes 200" in long.reason
    assert "64" in wide.reason


def test_a_large_backlog_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "BACKLOG_BYTES", 10_000)
    host = Host()
    host.client(1)
    for first in range(1, 2001, 500):
        host.send(1, *(SubscribeRequest(i, f"x = {i}") for i in range(first, first + 500)))
    host.turn()
    assert host.reading == {1: False}
    host.run()
    assert host.reading == {1: True}
    assert len(host.heard[1]) == 2000


def test_many_advertisements_cost_what_each_costs() -> None:
    host = Host(routing="forwarding", advertisements=True)
    host.client(1)
    host.send(1, *(AdvertiseRequest(i, (f"x{i} > {i}",)) for i in range(1, 301)))
    host.run()
    assert len([one for one in host.heard[1] if isinstance(one, Done)]) == 300
    host.core.close(1, NOW)
    host.run()


def test_backlogs_of_all_links_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all together are large, no link with a backlog is read, however small its own is."""
    monkeypatch.setattr(scheduler, "BACKLOGS_BYTES", 2_000)
    host = Host()
    for link in range(1, 6):
        host.client(link)
    requests = [SubscribeRequest(id, f"x = {id}", credit=1) for id in range(1, 60)]
    for link in range(1, 6):
        host.send(link, *requests)
    host.run()
    assert {link: host.reading.get(link) for link in range(3, 6)} == dict.fromkeys((3, 4, 5), True)
    assert host.core._scheduler.bytes == 0
    for link in range(1, 6):
        assert sum(isinstance(one, Subscribed) for one in host.heard[link]) == 59


# ---- what took long at once before


def test_small_control_messages_of_one_client_wait_too() -> None:
    host = Host()
    host.client(1)
    host.client(2)
    host.send(1, *(Ping(i) for i in range(5000)))
    host.send(2, Ping(1))
    host.turns = 0
    assert host.turn()
    assert Pong(1) in host.heard[2] or host.turn()
    assert len(host.heard[1]) < 2500
    host.run()
    assert Pong(1) in host.heard[2]
    assert host.heard[1] == [Pong(i) for i in range(5000)]
    assert host.turns > 5


def test_a_pattern_is_parsed_and_checked_elsewhere() -> None:
    host = Host()
    host.client(1)
    host.send(1, SubscribeRequest(1, pattern="[x = 1] then [x = 2]"))
    assert host.core._scheduler.jobs
    host.run()
    assert host.heard[1] == [Subscribed(1)]


def test_a_pattern_is_bounded() -> None:
    host = Host(subscriptions=SubscriptionBounds(text_bytes_max=2000, filters_max=256))
    host.client(1)
    part = "[" + " AND ".join(f"(x > {i} OR y = {i})" for i in range(8)) + "]"  # 256 filters
    host.send(
        1,
        SubscribeRequest(1, pattern="[s = '" + "x" * 2000 + "'] then [x = 1]"),
        SubscribeRequest(2, pattern=f"{part} then [x = 1]"),
        SubscribeRequest(3, pattern="[x = 1] then [x = 2]"),
    )
    host.run()
    long, many, good = host.heard[1]
    assert isinstance(long, Refused)
    assert "the pattern has 2,0" in long.reason
    assert isinstance(many, Refused)
    assert "the limit is 128" in many.reason
    assert good == Subscribed(3)


def test_advertisements_are_bounded_and_parsed_elsewhere() -> None:
    host = Host(
        subscriptions=SubscriptionBounds(advertisements_max=3, filters_max=256, text_bytes_max=4096)
    )
    host.client(1)
    many = tuple(f"x{i} = 1" for i in range(257))
    host.send(1, AdvertiseRequest(1, many), AdvertiseRequest(2, ("x = '" + "y" * 5000 + "'",)))
    host.send(1, AdvertiseRequest(3, many[:256]))
    host.send(1, *(AdvertiseRequest(i, ("x = 1",)) for i in (4, 5, 6, 3)))
    host.run()
    wide, long, *rest = host.heard[1]
    assert isinstance(wide, Refused)
    assert "257 constraints" in wide.reason
    assert isinstance(long, Refused)
    assert "the advertisement has 5,006 bytes; this broker takes 4,096" in long.reason
    assert [type(one) for one in rest] == [Done, Done, Done, Refused, Done]


@pytest.mark.parametrize("text", ["x{i} = {i}", "x > -{i}"])
def test_advertisements_of_a_client_that_leaves_are_removed_in_slices(text: str) -> None:
    host = Host()
    host.client(1)
    host.send(1, *(AdvertiseRequest(i, (text.format(i=i),)) for i in range(100)))
    host.run()
    router = host.core.parts.port.router
    assert len(router.advertisements) == (1 if ">" in text else 100)
    host.turns = 0
    host.core.close(1, NOW)
    host.run()
    assert host.turns > 1
    assert len(router.advertisements) == 0
    assert not any(isinstance(peer, Advertiser) for peer in router.peers)


def test_what_publishers_are_told_is_reduced_elsewhere() -> None:
    host = Host()
    host.client(1)
    host.send(1, SubscribeRequest(1, "x > 1"), SubscribeRequest(2, "x > 5"))
    host.run()
    host.send(1, Quench(7, True))
    assert host.core._scheduler.jobs
    host.run()
    assert host.heard[1][2:] == [Done(7), Wanted("x > 1")]


def test_an_explanation_is_made_elsewhere_and_names_a_bounded_number() -> None:
    access = Access(anonymous=Identity("anybody", EVERYTHING, EVERYTHING, admin=True))
    host = Host(access=access)
    host.client(1)
    count = DELIVERS_MAX + 20
    host.send(1, *(SubscribeRequest(i, f"x > {i}") for i in range(count)))
    host.run()
    host.heard[1].clear()
    host.send(1, Explain(5000, '{"x": 100000}', f"anybody/1#{count - 1}"))
    assert host.core._scheduler.jobs
    host.run()
    (answer,) = host.heard[1]
    assert isinstance(answer, Explained)
    delivers = answer.hops[0].delivers
    assert delivers[-1] == ("...", "and 19 other subscriptions")
    assert delivers[-2][0] == f"anybody/1#{count - 1}"
    host.send(1, Explain(5001, "x" * 100_000), Explain(5002, "{"))
    host.run()
    assert [type(one) for one in host.heard[1][1:]] == [Refused, Refused]


def test_new_grants_are_checked_elsewhere_and_end_what_they_do_not_cover() -> None:
    host = Host()
    host.client(1)
    host.client(2)
    host.send(1, *(SubscribeRequest(i, f"x = {i}") for i in range(200)))
    host.send(2, SubscribeRequest(1, "x = 7"), SubscribeRequest(2, pattern="[x = 1] then [y = 2]"))
    host.run()
    host.heard[1].clear()
    host.heard[2].clear()
    grant = parse("x >= 100")
    host.core.reload_access(Access(anonymous=Identity("anybody", grant, EVERYTHING)), NOW)
    jobs = host.core.take().jobs
    assert jobs
    assert host.heard[1] == host.heard[2] == []
    for job in jobs:
        job.run()
        host.core.finished(job, NOW)
    host.run()
    ended = [one.id for one in host.heard[1] if isinstance(one, SubscriptionEnded)]
    assert ended == list(range(100))
    assert [type(one) for one in host.heard[2]] == [SubscriptionEnded, SubscriptionEnded]


def test_a_client_that_leaves_while_its_grants_are_checked_is_forgotten() -> None:
    host = Host()
    host.client(1)
    host.send(1, *(SubscribeRequest(i, f"x = {i}") for i in range(200)))
    host.run()
    grant = parse("x >= 100")
    host.core.reload_access(Access(anonymous=Identity("anybody", grant, EVERYTHING)), NOW)
    host.core.close(1, NOW)
    host.run()
    assert len(host.core.parts.table) == 0


def test_a_client_that_has_left_gets_nothing_while_its_subscriptions_are_removed() -> None:
    host = Host()
    host.client(1)
    host.client(2)
    host.send(1, *(SubscribeRequest(i, f"x < {i + 10}") for i in range(200)))
    host.run()
    host.core.close(1, NOW)
    before = host.core.snapshot().live.delivered
    host.publish(2, 1)
    host.run()
    assert host.core.snapshot().live.delivered == before


def test_what_follows_a_broken_frame_in_a_backlog_is_not_read() -> None:
    host = Host()
    host.client(1)
    host.send(1, *(SubscribeRequest(i, f"x = {i}") for i in range(1, 101)))
    assert 1 in host.core._scheduler.backlogs
    host.core.receive(1, b"\0" * 9, NOW)  # a frame of no bytes
    host.core.receive(1, control_frame(SubscribeRequest(500, "x = 500")), NOW)
    host.run()
    assert 1 not in host.core.parts.links.open
    assert 1 not in host.core._scheduler.backlogs


def test_an_interface_that_is_being_removed_can_be_entered_again_at_once() -> None:
    """The rest of the removal is done first, whoever does it."""
    parts = Host().core.parts
    interests, interface = parts.interests, LiveSubscription(7, 1)
    filters = parse(" OR ".join(f"x = {i} AND y = {i}" for i in range(20))).filters
    assert len(list(interests.enter(interface, filters))) > 1
    interests.subscribe(interface, (7, 1), 5)
    interests.unsubscribe((7, 1))
    (removal,) = parts.work.new
    assert len(list(islice(interests.enter(interface, filters), 100))) < 100
    assert list(removal) == []
    assert len(parts.port.router.subscriptions) == 20


def test_advertisements_count_in_the_budget_of_their_client() -> None:
    host = Host(subscriptions=SubscriptionBounds(predicates_bytes_max=1000))
    host.client(1)
    host.send(1, *(AdvertiseRequest(i, (f"x{i} = '{'y' * 300}'",)) for i in (1, 2, 3, 2)))
    host.run()
    assert [type(one).__name__ for one in host.heard[1]] == ["Done", "Done", "Refused", "Done"]
    host.send(1, UnadvertiseRequest(1), AdvertiseRequest(3, (f"x = '{'y' * 300}'",)))
    host.run()
    assert [type(one).__name__ for one in host.heard[1][4:]] == ["Done", "Done"]
    host.core.close(1, NOW)
    host.run()
    assert host.core.parts.subscriptions.budget._total == 0


@pytest.mark.parametrize("name", ["\0evil", "a\nb", "\x1b[2J"])
def test_names_of_durable_subscriptions_have_no_control_characters(name: str) -> None:
    host = Host()
    host.client(1)
    host.send(1, SubscribeRequest(1, "x = 1", durable=name))
    host.send(1, SubscribeRequest(2, "x = 1", durable="ok", group=name))
    host.run()
    assert [type(one).__name__ for one in host.heard[1]] == ["Refused", "Refused"]


@pytest.mark.parametrize("text", ["x = 1", "x = 1 OR " * 300 + "x = 2"])
def test_a_bug_of_the_parser_refuses_the_request(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> object:
        raise IndexError("list index out of range")

    host = Host()
    host.client(1)
    monkeypatch.setattr(subscription_checks, "parse", fails)
    monkeypatch.setattr(clients, "parse_advertisement", fails)
    monkeypatch.setattr(subscription_checks, "parse_pattern", fails)
    host.send(1, SubscribeRequest(1, text), SubscribeRequest(2, pattern=f"[{text}] then [y = 1]"))
    host.send(1, AdvertiseRequest(3, ("x = 1",)))
    host.run()
    assert [one.id for one in host.heard[1] if isinstance(one, Refused)] == [1, 2, 3]
