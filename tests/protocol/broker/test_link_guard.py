"""Connections that keep a broker waiting: strangers, unfinished frames, silence."""

from __future__ import annotations

import hashlib
import struct

import pytest

from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.link_guard import FRAME_PROGRESS_BYTES, STRANGER_BYTES_MAX
from palio.protocol.broker.links import LinkOrigin
from palio.protocol.broker.settings import ConnectionBounds, Neighbour, Settings
from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import VERSION, Bye, Hello, Ping, Pong, SubscribeRequest, Welcome
from palio.protocol.wire.frames import FrameReader, control_frame, message_frame
from palio.protocol.wire.headers import PublishHeader
from tests.protocol.durability.memory_store import MemoryStore

SECOND = 1_000_000
MEGABYTE = 1_000_000
NAMES = ("ann", "bob")


class Scene:
    """A broker with a clock that the test moves, and connections that send bytes."""

    def __init__(self, **bounds: int) -> None:
        identities = {
            hashlib.sha256(name.encode()).hexdigest(): Identity(name, EVERYTHING, EVERYTHING)
            for name in NAMES
        }
        access = Access(identities, anonymous=Identity("anybody", EVERYTHING, EVERYTHING))
        neighbours = {"b": Neighbour(b"x" * 32)}
        self.now_us = 10**15
        self.broker = Broker(
            Settings("a", access, neighbours, connections=ConnectionBounds(**bounds)),
            MemoryStore(), self.now_us, bytes,
        )  # fmt: skip
        self.closed: dict[int, CloseCode] = {}
        self.said: dict[int, list[object]] = {}

    def open(self, *links: int) -> None:
        for link in links:
            self.broker.open(link, self.now_us)
        self.turn()

    def send(self, link: int, data: bytes) -> None:
        self.broker.receive(link, data, self.now_us)
        self.turn()

    def client(self, link: int, token: str = "", name: str = "") -> None:
        self.open(link)
        self.send(link, control_frame(Hello(VERSION, "client", name or str(link), token)))

    def turn(self) -> None:
        effects = self.broker.take()
        for link, frames in effects.writes.items():
            self.said.setdefault(link, []).extend(FrameReader().feed(b"".join(frames)))
        for link, close in effects.closes:
            self.closed[link] = close.code

    def pass_s(self, seconds: float, *talking: int) -> None:
        """Time passes; these links say Ping in every tenth of a second."""
        for _ in range(round(10 * seconds)):
            self.now_us += SECOND // 10
            for link in talking:
                self.broker.receive(link, control_frame(Ping(0)), self.now_us)
            if self.broker.deadline_us <= self.now_us:
                self.broker.wake(self.now_us)
            self.turn()

    @property
    def unfinished(self) -> int:
        return self.broker.snapshot().memory.unfinished_bytes


def begun(size: int, sent: int) -> bytes:
    """The beginning of a control message."""
    return struct.pack("<IB", size, 0) + bytes(sent - 5)


# ---- strangers


def test_nothing_that_a_stranger_says_extends_its_time() -> None:
    scene = Scene(handshake_us=10 * SECOND)
    scene.open(1, 2)
    scene.send(2, control_frame(Hello(VERSION, "client", "good")))
    scene.pass_s(9.9, 1, 2)
    assert scene.closed == {}
    scene.pass_s(0.1, 1, 2)
    assert scene.closed == {1: CloseCode.HANDSHAKE_TIMEOUT}
    bye = scene.said[1][-1]
    assert isinstance(bye, Bye)
    assert bye.reason == "the handshake was not complete after 10 s"
    assert scene.said[2][0] == Welcome(VERSION, "a", "anybody", 0, 3 * SECOND)
    scene.pass_s(30, 2)
    assert list(scene.closed) == [1]


def test_a_broker_that_does_not_prove_its_name_is_a_stranger() -> None:
    scene = Scene(handshake_us=5 * SECOND)
    scene.open(1)
    scene.send(1, control_frame(Hello(VERSION, "broker", "b", nonce=b"n" * 32)))
    assert scene.closed == {}
    scene.pass_s(5, 1)
    assert scene.closed == {1: CloseCode.HANDSHAKE_TIMEOUT}


def test_the_deadline_is_that_of_the_broker() -> None:
    scene = Scene(handshake_us=SECOND // 2)
    scene.open(1)
    assert scene.broker.deadline_us <= scene.now_us + SECOND // 2


def test_the_oldest_stranger_gives_way_and_a_valid_client_gets_in() -> None:
    scene = Scene(strangers_max=50, clients_max=10)
    for link in range(1, 51):  # an attacker holds all places
        scene.open(link)
    assert scene.closed == {}
    for client in range(100, 110):
        scene.client(client)
        scene.open(client + 100)  # and refills them at once
    assert [c for c in scene.closed if c >= 100] == []
    assert set(scene.closed.values()) == {CloseCode.DISPLACED}
    assert list(scene.closed) == list(range(1, 11))
    snapshot = scene.broker.snapshot()
    assert (snapshot.clients, snapshot.strangers, snapshot.links) == (10, 50, 60)


def test_clients_have_their_own_bound_and_so_has_an_identity() -> None:
    scene = Scene(clients_max=5, identity_max=3, strangers_max=50)
    for link in range(1, 5):
        scene.client(link, "ann")
    assert scene.closed == {4: CloseCode.TOO_MANY_CONNECTIONS}
    bye = scene.said[4][-1]
    assert isinstance(bye, Bye)
    assert bye.reason == "identity 'ann' has 3 connections here; that is its limit"
    scene.client(5, "ann", name="1")  # it takes the place of its own older connection
    assert (5 in scene.closed, scene.closed[1]) == (False, CloseCode.REPLACED)
    scene.client(6, "bob")
    scene.client(7)
    scene.client(8)
    assert scene.closed[8] is CloseCode.TOO_MANY_CONNECTIONS
    scene.broker.close(7, scene.now_us)
    scene.client(9)
    assert 9 not in scene.closed
    assert scene.broker.snapshot().clients == 5


def test_an_identity_that_is_removed_keeps_no_places() -> None:
    scene = Scene(identity_max=1)
    scene.client(1, "ann")
    scene.broker.reload_access(Access(anonymous=None), scene.now_us)
    scene.turn()
    assert scene.closed == {1: CloseCode.DENIED}
    token = hashlib.sha256(b"ann").hexdigest()
    access = Access({token: Identity("ann", EVERYTHING, EVERYTHING)})
    scene.broker.reload_access(access, scene.now_us)
    scene.client(2, "ann")
    assert 2 not in scene.closed


def test_a_stranger_that_says_much_is_sent_away() -> None:
    """Else a flood of Ping makes a flood of Pong, which nobody reads."""
    scene = Scene()
    scene.open(1)
    ping = control_frame(Ping(7))
    scene.send(1, ping * (STRANGER_BYTES_MAX // len(ping)))
    assert scene.closed == {}
    scene.send(1, ping)
    assert scene.closed == {1: CloseCode.PROTOCOL}


def test_what_follows_hello_in_one_breath_is_a_client_s() -> None:
    scene = Scene()
    scene.open(1)
    hello = control_frame(Hello(VERSION, "client", "ann"))
    message = message_frame(PublishHeader(1, 0, False), b'{"x": 1}', bytes(2 * STRANGER_BYTES_MAX))
    scene.send(1, hello + control_frame(SubscribeRequest(1, "x = 1", credit=1)) + message)
    assert scene.closed == {}
    scene.pass_s(60, 1)
    assert scene.closed == {}


# ---- unfinished frames


def test_a_frame_must_be_complete_in_time() -> None:
    scene = Scene(frame_us=30 * SECOND)
    scene.client(1)
    scene.client(2)
    scene.send(1, begun(100_000, 5))
    for _ in range(299):
        scene.pass_s(0.1, 2)
        scene.send(1, b"\0")
    assert scene.closed == {}
    scene.pass_s(0.1, 2)
    assert scene.closed == {1: CloseCode.FRAME_TIMEOUT}
    assert scene.unfinished == 0


def test_a_slow_link_that_goes_on_is_not_closed() -> None:
    scene = Scene(frame_us=30 * SECOND)
    scene.client(1)
    message = message_frame(
        PublishHeader(1, 0, False), b'{"x": 1}', bytes(10 * FRAME_PROGRESS_BYTES)
    )
    step = FRAME_PROGRESS_BYTES // 20
    for at in range(0, len(message), step):
        scene.send(1, message[at : at + step])
        scene.pass_s(1)
    assert scene.closed == {}
    assert scene.unfinished == 0
    assert scene.broker.snapshot().live.published == 1


def test_every_frame_has_its_own_time() -> None:
    """A busy connection always has an unfinished frame, each time another one."""
    scene = Scene(frame_us=2 * SECOND)
    scene.client(1)
    ping = control_frame(Ping(1))
    scene.send(1, ping[:3])
    for _ in range(100):
        scene.pass_s(0.1)
        scene.send(1, ping[3:] + ping[:3])
    assert scene.closed == {}
    assert scene.said[1][-1] == Pong(1)


def test_unfinished_frames_of_all_are_bounded_and_the_largest_of_the_greediest_end() -> None:
    scene = Scene(unfinished_bytes=32 * MEGABYTE)
    for link in range(1, 41):
        scene.client(link, "ann")
    scene.client(100, "bob")
    scene.send(100, begun(15 * MEGABYTE, 4 * MEGABYTE))
    for link in range(1, 41):
        scene.send(link, begun(15 * MEGABYTE, MEGABYTE + link))
        assert scene.unfinished <= 32 * MEGABYTE
    assert set(scene.closed.values()) == {CloseCode.OVERLOAD}
    assert 100 not in scene.closed, "the one of another identity is larger, and stays"
    assert 8 < len(scene.closed) < 20
    for link in [*range(1, 41), 100]:
        scene.broker.close(link, scene.now_us)
    assert scene.unfinished == 0
    assert scene.broker._guard.watched == set()


def test_a_message_that_is_too_large_is_refused_when_it_begins() -> None:
    scene = Scene()
    scene.client(1)
    scene.send(1, struct.pack("<IB", 5 << 20, 1))
    assert scene.closed == {1: CloseCode.PROTOCOL}
    assert scene.unfinished == 0


# ---- time in which nobody is heard


@pytest.mark.parametrize("is_paused", [True, False])
def test_times_in_which_the_broker_does_not_read_count_for_nobody(is_paused: bool) -> None:
    scene = Scene(handshake_us=4 * SECOND, frame_us=4 * SECOND)
    scene.client(2)
    scene.open(1)
    scene.send(2, begun(100_000, 10))
    if is_paused:  # a slow disk
        scene.broker.pause(scene.now_us)
        scene.pass_s(20)
        scene.broker.resume(scene.now_us)
    else:  # the process was stopped
        scene.now_us += 20 * SECOND
        scene.broker.wake(scene.now_us)
    scene.turn()
    assert scene.closed == {}
    scene.send(1, b"\0")
    scene.send(2, b"\0")
    scene.pass_s(1)
    assert scene.closed == {}
    for _ in range(60):
        scene.pass_s(0.1)
        for link in (1, 2):
            scene.send(link, b"\0" if link == 2 else b"")
    assert scene.closed == {1: CloseCode.HANDSHAKE_TIMEOUT, 2: CloseCode.FRAME_TIMEOUT}


def test_a_pause_without_calls_is_counted_once() -> None:
    scene = Scene(handshake_us=4 * SECOND)
    scene.open(1)
    scene.broker.pause(scene.now_us)
    scene.now_us += 20 * SECOND
    scene.broker.resume(scene.now_us)
    for _ in range(60):
        scene.pass_s(0.1)
        scene.send(1, b"")
    assert scene.closed == {1: CloseCode.HANDSHAKE_TIMEOUT}


def test_silence_is_noticed_although_timers_are_late() -> None:
    """A wake that comes a little late is not a pause of the process."""
    scene = Scene()
    scene.client(1)
    wakes = 0
    while not scene.closed:
        scene.now_us = scene.broker.deadline_us + 300
        scene.broker.wake(scene.now_us)
        scene.turn()
        wakes += 1
        assert wakes < 100
    assert scene.closed == {1: CloseCode.SILENT}
    assert scene.now_us <= 10**15 + 4 * SECOND


def test_a_link_in_the_process_is_not_pinged() -> None:
    """10,000 streams over HTTP would be 10,000 Pings a second, and as many Pongs."""
    scene = Scene()
    scene.broker.open(1, scene.now_us, LinkOrigin(is_in_process=True))
    scene.send(1, control_frame(Hello(VERSION, "client", "stream")))
    assert [one.keepalive_us for one in scene.said[1] if isinstance(one, Welcome)] == [0]
    for _ in range(10):
        scene.now_us += 1_000_000
        scene.broker.wake(scene.now_us)
        scene.turn()
    assert not [one for one in scene.said[1] if isinstance(one, Ping)]
    assert scene.closed == {}
