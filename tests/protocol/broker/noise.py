"""Noise for a broker: what strangers, clients and neighbours might say, good, mutated and random.

    Speaker   draws what one end of a connection says, by its role
    target    a broker in this process that hears it; checks that it lives and closes with a reason

A stranger has not said who it is; a client has been welcomed; a neighbour has proved its name, so
that what it says reaches everything behind the handshake.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from palio.protocol.broker.broker import Broker
from palio.protocol.broker.durable import Consumer
from palio.protocol.broker.settings import ROUTINGS, Neighbour, Settings
from palio.protocol.wire.control import (
    VERSION,
    Acknowledge,
    AdvertiseRequest,
    Bye,
    CarryAck,
    Confirm,
    ControlMessage,
    Credit,
    Digest,
    Durable,
    Explain,
    ExplainHop,
    Hello,
    Hop,
    HopExplained,
    LinkState,
    LinkStates,
    Missing,
    Nack,
    Ping,
    Pong,
    Quench,
    Reject,
    RouterPacket,
    Show,
    SubscribeRequest,
    UnadvertiseRequest,
    UnsubscribeRequest,
    Welcome,
)
from palio.protocol.wire.frames import FrameReader, control_frame, message_frame
from palio.protocol.wire.handshake import NONCE_BYTES, dial
from palio.protocol.wire.headers import (
    CarryHeader,
    CarryTarget,
    DeliverHeader,
    ForwardHeader,
    PublishHeader,
)
from palio.protocol.wire.packets import to_bytes
from palio.routing import packets
from tests.protocol.durability.memory_store import MemoryStore
from tests.protocol.exchange import ANYBODY
from tests.protocol.wire.mutation import mutated

ROLES = ("stranger", "client", "neighbour")
SECRET = b"a secret that both brokers know"
ME, NEIGHBOUR = "a", "n"
DAY_US = 86_400_000_000


def _control_frames(*control_messages: ControlMessage) -> list[bytes]:
    return list(map(control_frame, control_messages))


GREETINGS = _control_frames(
    Hello(VERSION, "client", "eve"),
    Hello(VERSION, "client", "eve", token="guessed"),
    Hello(VERSION, "broker", NEIGHBOUR, nonce=bytes(range(NONCE_BYTES))),
    Hello(VERSION, "broker", "stranger", nonce=bytes(range(NONCE_BYTES))),
    Hello(VERSION + 1, "client", "eve"),
    Welcome(VERSION, NEIGHBOUR, nonce=bytes(NONCE_BYTES), proof=bytes(32)),
    Confirm(bytes(32)),
    Ping(1),
    Pong(1),
    Bye("enough"),
    LinkStates((LinkState(NEIGHBOUR, "e", 1, 0, ()),)),
    SubscribeRequest(1, "x > 1"),
)
MESSAGES = [
    message_frame(PublishHeader(number, 5, durable), text, b"body")
    for durable in (False, True)
    for number, text in enumerate(
        [b'{"x": 1}', b'{"x": 2, "s": "abc"}', b"{}", b'{"x": [1]}', b'{"x": 1', b'{"t": NaN}'], 1
    )
]
MESSAGES += [
    message_frame(PublishHeader(9, 5, False), b'{"x": 1}', b"body", headers)
    for headers in (b"\x03\x00\x81\xa1a\x01"[:5], b"\xff\xff", b"\x00", b"\x01\x00\xc1")
]
REQUESTS = [
    *_control_frames(
        SubscribeRequest(1, "x > 1"),
        SubscribeRequest(2, "x > 1 OR s LIKE 'a%' AND t IS NULL", credit=3),
        SubscribeRequest(3, "x = 1", durable="d"),
        SubscribeRequest(4, "x = 1", durable="d", since=0, group="g", full="drop"),
        SubscribeRequest(5, "s = 'abc'", group="g", full="end"),
        SubscribeRequest(6, pattern="[x = 1] THEN [x = 2] WITHIN 1 minute"),
        UnsubscribeRequest(1),
        UnsubscribeRequest(3, True),
        Acknowledge(3, (1, 2, 3)),
        Nack(3, (1, 2), 5),
        Reject(3, (1, 2), "why"),
        Credit(1, 100),
        AdvertiseRequest(7, ("x > 0", "s = 'abc'")),
        UnadvertiseRequest(7),
        Quench(8, True),
        Quench(8, False),
        Explain(9, '{"x": 1}', "d"),
        Show(10),
        Ping(1),
        Pong(1),
    ),
    *MESSAGES,
    b"".join(MESSAGES[:2] * 40),  # a batch that Python reads
]
PUBLISHES = {
    durable: [
        message_frame(PublishHeader(number, 5, durable), b'{"x": %d, "s": "ab"}' % number, b"body")
        for number in range(1, 150)
    ]
    for durable in (False, True)
}
FORWARDS = [
    message_frame(
        ForwardHeader(msgspec.Raw(route), f"x/{number % 3}", number, 2, False), text, b"body"
    )
    for number, (route, text) in enumerate(
        [
            (msgspec.msgpack.encode((3, NEIGHBOUR)), b'{"x": 1}'),
            (msgspec.msgpack.encode((3, (ME, "c"))), b'{"x": 2}'),
            (b"\xc0", b'{"s": "a"}'),
        ]
        * 50,
        10,
    )
]
TARGETS = (CarryTarget(ME, 1, 1, ("1@anonymous/d",)), CarryTarget("c", 2, 1, ("1@x/y",)))
REPORTS = [
    *_control_frames(
        LinkStates((LinkState(NEIGHBOUR, "e", 1, 0, ((ME, 1.0),), ("x > 1",), (), {}),)),
        LinkStates(
            (LinkState(NEIGHBOUR, "e", 2, 1, ((ME, 1.0), ("c", 2.5)), ("x > 2",), ("x > 1",)),)
        ),
        LinkStates(
            (LinkState("c", "f", 1, 0, ((NEIGHBOUR, 1.0),), (), (), {"x/y": Durable("x", 1, 1)}),)
        ),
        LinkStates(
            (LinkState("c", "f", 2, 1, (), (), (), {}, ("x/y",)), LinkState(ME, "z", 9, 0, ()))
        ),
        Digest(((ME, "e", 1), ("c", "f", 2))),
        Missing((ME, "c")),
        CarryAck(ME, "e", "c", 1),
        CarryAck("c", "f", ME, 1),
        RouterPacket(to_bytes(packets.Restate())),
        ExplainHop(1, NEIGHBOUR, NEIGHBOUR, '{"x": 1}', "d"),
        HopExplained(1, ME, Hop("c", NEIGHBOUR, (("x", "y"),), (("z", "w"),))),
        Credit(0, 100),
        Ping(1),
    ),
    message_frame(ForwardHeader(msgspec.Raw(b"\xc0"), "x/y", 1, 2, False), b'{"x": 1}', b"body"),
    message_frame(
        ForwardHeader(msgspec.Raw(b"\x92\xa1n\x05"), "x/y", 2, 2, True), b'{"x": 2}', b""
    ),
    message_frame(CarryHeader("c", "f", TARGETS, "x/y", 1, 2), b'{"x": 1}', b"body"),
    message_frame(CarryHeader(NEIGHBOUR, "e", TARGETS[:1], "x/y", 1, 2), b'{"x": 1', b"body"),
    message_frame(DeliverHeader((1,), 1, "x/y", 1, 2), b"{}", b""),
    *(b"".join(FORWARDS[i::3]) for i in range(3)),  # batches that Python reads
    *(b"".join(FORWARDS[i::3] * 3) for i in range(3)),  # and kernels
    b"".join(FORWARDS),
]
BATCHES = {
    "client": [PUBLISHES[False], PUBLISHES[True], PUBLISHES[False][:40]],
    "neighbour": [FORWARDS, FORWARDS[::3] * 3, FORWARDS[1::3] * 3, FORWARDS[::3]],
}
"""Frames that a broker reads together; one of them is broken (`Speaker.batch`)."""
SAYS = {"stranger": GREETINGS, "client": REQUESTS + GREETINGS[:3], "neighbour": REPORTS + REQUESTS}


class Speaker:
    def __init__(self, random: Random) -> None:
        self._random = random

    def frame(self, role: str) -> bytes:
        """Mostly bad: the others lead to where bad ones hurt."""
        if role in BATCHES and self._random.random() < 0.02:
            return self.batch(role)
        good = SAYS[role]
        if self._random.random() < 0.35:
            return self._random.choice(good)
        return mutated(self._random, good)

    def batch(self, role: str) -> bytes:
        """Good messages, and among them one that is broken, or says something else."""
        frames = list(self._random.choice(BATCHES[role]))
        at = self._random.randrange(len(frames))
        bad = self._random.choice((frames[at : at + 1], SAYS[role]))
        frames[at] = mutated(self._random, bad)
        return b"".join(frames)


class Listening:
    """A broker in this process, and one connection after the other to it."""

    def __init__(self, random: Random, routing: str = "") -> None:
        """`routing`: one of all policies by default."""
        self._random = random
        neighbours = {NEIGHBOUR: Neighbour(SECRET)}
        self._store = MemoryStore()
        self.now_us = 1_000_000_000_000
        settings = Settings(ME, ANYBODY, neighbours, routing=routing or random.choice(ROUTINGS))
        self.broker = Broker(settings, self._store, self.now_us, random.randbytes)
        self._link = 0
        self._ticket: int | None = None
        self._is_open = False
        self._out = b""

    def connect(self, role: str) -> None:
        """A new connection, as far as its role comes."""
        self._link += 1
        self._is_open, self._out = True, b""
        self.broker.open(self._link, self.now_us)
        if role == "client":
            name = self._random.choice(("ann", "bob"))
            self.hear(control_frame(Hello(VERSION, "client", name)))
        elif role == "neighbour":
            dialling, hello = dial(NEIGHBOUR, ME, SECRET, self._random.randbytes(NONCE_BYTES))
            self.hear(control_frame(hello))
            (welcome,) = FrameReader().feed(self._out)
            assert isinstance(welcome, Welcome)
            self.hear(control_frame(dialling.welcome(welcome)))
            assert self.broker.is_linked(NEIGHBOUR)

    def hear(self, data: bytes) -> bool:
        """Bytes on the connection; False: the broker has closed it, and said why."""
        self.now_us += 50
        self.broker.receive(self._link, data, self.now_us)
        self._turn()
        return self._is_open

    def _turn(self) -> None:
        if self._ticket is not None:
            self._store.end()
            ticket, self._ticket = self._ticket, None
            self.broker.committed(ticket, self.now_us)
        effects = self.broker.take()
        if effects.commit is not None:
            self._store.begin()
            self._ticket = effects.commit
        self._out = b"".join(effects.writes.get(self._link, ()))
        for link, close in effects.closes:
            *_, last = FrameReader().feed(b"".join(effects.writes[link]))
            assert last == Bye(close.reason, close.code), (last, close)
            assert close.reason
            self._is_open = self._is_open and link != self._link

    def leave(self) -> None:
        if self._is_open:
            self.broker.close(self._link, self.now_us)
            self._is_open = False
        if self.now_us >= self.broker.deadline_us:
            self.broker.wake(self.now_us)
        self._turn()

    def tidy(self) -> None:
        """What was stored on request goes, as it would in time: durable subscriptions, publishers."""
        home = self.broker.parts.subscriptions.home
        for name, _ in home:
            home.forget(name, Consumer(0, 0), self.now_us)
        for days in (8, 16):
            self.now_us += days * DAY_US
            self.leave()
            self._turn()


def search(
    count: int, seed: int, progress: Callable[[int, int], None] | None = None
) -> dict[str, int]:
    """So many frames to brokers of this process. Gives how many connections each role had closed."""
    random = Random(seed)
    speaker = Speaker(random)
    listening = {role: Listening(random) for role in ROLES}
    closed = dict.fromkeys(ROLES, 0)
    told = said = 0
    while said < count:
        (role,) = random.choices(ROLES, (4, 4, 1))  # neighbours last: their comings are dear
        broker = listening[role]
        broker.connect(role)
        said_before = said
        data = b""
        try:
            for _ in range(random.randrange(1, 60)):
                data = speaker.frame(role)
                said += 1
                if not broker.hear(data):
                    closed[role] += 1
                    break
            broker.leave()
        except BaseException:
            print(f"seed {seed}, frame {said} (connection since {said_before}) as {role}: {data!r}")
            raise
        if said // 20_000 > told // 20_000:
            told = said
            listening["client"].tidy()
            listening["stranger"].tidy()
            listening["neighbour"] = Listening(random)  # whom it trusts, it believes for ever
            if progress is not None:
                progress(said, sum(closed.values()))
    for role in ("client", "stranger"):
        listening[role].tidy()
    return closed
