"""A sender never makes what its receiver refuses: every byte that brokers and clients send is read with the
least limits that an operator may configure, scaled down, while names, predicates and messages are at theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palio.errors import PalioError
from palio.protocol.broker import carrying, explain, flooding, local, neighbour_messages, quench
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.settings import SubscriptionBounds
from palio.protocol.durability import recipients
from palio.protocol.policies import drp
from palio.protocol.wire import parts, refusals
from palio.protocol.wire.control import (
    Bye,
    CloseCode,
    ControlMessage,
    Explained,
    LinkStates,
    Occurred,
    RouterPacket,
    Shown,
    Subscribed,
)
from palio.protocol.wire.frames import FrameReader, Limits
from tests.protocol.exchange import Client, Exchange

SCALE = 32
LEAST = Limits(control=parts.CONTROL_BYTES_MIN // SCALE, header=6000, attributes=2048, body=512)
"""What receivers take here."""


@contextmanager
def small() -> Iterator[None]:
    """What senders are bound by, scaled like the limits of the receivers."""
    with pytest.MonkeyPatch.context() as patch:
        for module, names in (
            (parts, "CONTROL_BYTES_MIN PART_BYTES TEXT_BYTES_MAX"),
            (explain, "DELIVERS_BYTES_MAX SENDS_BYTES_MAX ATTRIBUTES_BYTES_MAX"),
            (quench, "WANTED_BYTES_MAX"),
            (drp, "RECEIVERS_BYTES_MAX"),
            (carrying, "TARGETS_BYTES_MAX"),
            (recipients, "LABELS_BYTES_MAX"),
            (local, "IDS_MAX"),
            (refusals, "TEXT_MAX"),
        ):
            for name in names.split():
                patch.setattr(module, name, getattr(module, name) // SCALE)
        patch.setattr(flooding, "SMALL_TEXTS", 500)
        patch.setattr(neighbour_messages, "SMALL_PACKET", 200)
        yield


class ReadingExchange(Exchange):
    """Reads all that is sent, as a receiver with the least limits does."""

    def __init__(self, defers: bool) -> None:
        super().__init__(defers=defers)
        self.readers: dict[tuple[str, int], FrameReader] = {}
        self.in_parts: set[type] = set()
        self.refused: list[Any] = []

    def _carry(self, name: str, link: int, data: bytes) -> None:
        reader = self.readers.setdefault((name, link), FrameReader(LEAST))
        for frame in reader.feed(data):  # raises BrokenFrame
            states = frame.states if isinstance(frame, LinkStates) else ()
            if getattr(frame, "more", False) or any(state.more for state in states):
                self.in_parts.add(type(frame))
            if isinstance(frame, Bye) and frame.code is CloseCode.PROTOCOL:
                self.refused.append(frame)
        super()._carry(name, link, data)


def long_name(first: str, unit: str) -> str:
    return first + unit * 199


names = st.sampled_from(["x", "é", "\U0001f4ee"])
predicate_texts = st.one_of(
    st.integers(0, 50).map(lambda n: f"x = {n}"),
    st.tuples(st.integers(1, 5000), names).map(lambda p: f"s = '{p[1] * (p[0] // 4)}' OR x > 0"),
    st.integers(1, 900).map(lambda n: f"x IN ({', '.join(map(str, range(n)))})"),
    st.integers(2, 6).map(
        lambda n: " AND ".join(f"(x > {i} OR y{i} = '{'v' * 90}')" for i in range(n))
    ),
    st.integers(1, 300).map(lambda n: "x > " * n),  # it cannot be parsed
    st.just("s = '" + "'' " * 4000 + "'"),  # longer when it is printed
)


def pattern_text(count: int) -> str:
    return " then ".join(f"[x >= {i} AND n = {i}]" for i in range(count))


class Actions:
    """What clients at two brokers do."""

    def __init__(self, exchange: ReadingExchange, ends: list[str], unit: str) -> None:
        self.exchange = exchange
        self.unit = unit
        self.clients: list[Client] = [
            exchange.client(end, long_name(str(i), unit)) for i, end in enumerate(ends)
        ]

    def subscribe(self, who: int, text: str, durable: int, group: bool) -> None:
        name = f"{durable}{'d' * 254}" if durable else ""
        subscribe = self.clients[who].session.subscriptions.subscribe
        try:
            subscribe(text, durable=name, group="g" * 255 if group else "", credit=5)
        except PalioError:  # too large for any broker: the client says so
            assert len(text.encode()) > parts.TEXT_BYTES_MAX

    def watch(self, who: int, count: int) -> None:
        self.clients[who].session.subscriptions.subscribe(pattern=pattern_text(count))

    def publish(self, who: int, size: int, durable: bool, count: int) -> None:
        for n in range(count):
            text = {"x": 5 + n, "n": n, "s": "a" * size}
            self.clients[who].publish(text, b"b" * 512, durable)

    def ask(self, who: int, what: str) -> None:
        requests = self.clients[who].session.requests
        if what == "explain":
            requests.explain('{"x": 5, "s": "%s"}' % ("a" * 2000))
        elif what == "show":
            requests.show()
        elif what == "quench":
            requests.quench(True)
        else:
            requests.advertise(tuple(f"x > {i}" for i in range(300)))

    def redial(self, a: str, b: str) -> None:
        self.exchange.part(a, b)
        self.exchange.join(a, b)


who = st.integers(0, 1)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("subscribe"), who, predicate_texts, st.integers(0, 6), st.booleans()),
        st.tuples(st.just("subscribe"), who, predicate_texts, st.just(0), st.just(False)),
        st.tuples(st.just("watch"), who, st.integers(1, 8)),
        st.tuples(st.just("publish"), who, st.integers(0, 1990), st.booleans(), st.integers(1, 8)),
        st.tuples(st.just("ask"), who, st.sampled_from(["explain", "show", "quench", "advertise"])),
        st.tuples(st.just("redial"), st.just(0), st.just(1)),
    ),
    max_size=25,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["PSF", "DRP", "iPS", "PIF", "forwarding"]), names, actions, st.booleans(),
)  # fmt: skip
def test_every_frame_is_taken_by_its_receiver(
    routing: str, unit: str, steps: Any, defers: bool
) -> None:
    with small():
        exchange = ReadingExchange(defers)
        line = [long_name(first, unit) for first in "abcd"]
        for i, name in enumerate(line):
            around = [*line[max(0, i - 1) : i], *line[i + 1 : i + 2]]
            bounds = SubscriptionBounds(text_bytes_max=parts.TEXT_BYTES_MAX, filters_max=64)
            exchange.add(name, around, routing=routing, limits=LEAST, subscriptions=bounds)
        for a, b in pairwise(line):
            exchange.join(a, b)
        does = Actions(exchange, [line[0], line[-1]], unit)
        for kind, first, *rest in steps:
            if kind == "redial":
                does.redial(line[first], line[rest[0]])
            else:
                getattr(does, kind)(first, *rest)
            exchange.run(5000)
        exchange.advance(3_000_000, 500_000)
        does.redial(line[1], line[2])
        assert not exchange.refused
        for a, b in pairwise(line):
            assert exchange.brokers[a].is_linked(b)
            assert exchange.brokers[b].is_linked(a)
        assert all(client.session.is_ready for client in does.clients)


def heard(client: Client, kind: type) -> list[ControlMessage]:
    return client.heard(kind)


@pytest.mark.parametrize("defers", [False, True])
@pytest.mark.parametrize("routing", ["PSF", "DRP", "forwarding"])
def test_much_of_everything_arrives(routing: str, defers: bool) -> None:
    """Each of the messages that go in parts is larger than one frame, and arrives whole."""
    with small():
        exchange = ReadingExchange(defers)
        hub, ends = "hub", [f"{i:02}{'é' * 140}" for i in range(12)]
        exchange.add(hub, ends, routing=routing, limits=LEAST)
        for end in ends:
            exchange.add(end, [hub], routing=routing, limits=LEAST)
            exchange.join(hub, end)
        got = []
        for end in ends:
            client = exchange.client(end, "c")
            wanted = [
                client.session.subscriptions.subscribe(f"x = 1 AND s != '{i}{'n' * 300}'")
                for i in range(12)
            ]
            durable = client.session.subscriptions.subscribe(
                f"x = 1 AND s != '{'m' * 3000}'", durable="d" * 255
            )
            exchange.run(5000)
            got.append((client, wanted, durable))
        watcher = exchange.client(ends[0], "watcher")
        watcher.session.subscriptions.subscribe(
            pattern=" then ".join(f"[x = 1 AND n = {i}]" for i in range(40))
        )
        watcher.session.subscriptions.subscribe(f"x = 2 AND s != '{'k' * 9000}'")
        exchange.run(5000)
        source = exchange.client(ends[-1], "source")
        for i in range(40):
            exchange.now_us += 10_000
            source.publish({"x": 1, "n": i, "s": "a" * 1900}, durable=i == 0)
            exchange.run(5000)
        exchange.advance(2_000_000, 500_000)
        for client, wanted, durable in got:
            assert len(heard(client, Subscribed)) == 13
            for id in (*wanted, durable):
                assert len(client.got(id)) == 40
        (occurred,) = heard(watcher, Occurred)
        assert isinstance(occurred, Occurred)
        assert len(occurred.items) == 40
        source.session.requests.show()
        source.session.requests.explain('{"x": 1, "s": "a"}')
        exchange.run(5000)
        (shown,), (explained,) = heard(source, Shown), heard(source, Explained)
        assert isinstance(shown, Shown)
        assert {place.broker for place in shown.places} == {hub, *ends}
        assert isinstance(explained, Explained)
        assert {hop.broker for hop in explained.hops} == {hub, *ends}
        assert not exchange.refused
        exchange.crash(hub)
        exchange.start(hub)
        for end in ends:
            exchange.join(hub, end)
        core: Broker = exchange.brokers[hub]
        assert len(list(core.parts.view.database.durables())) == len(ends)
        assert len(core.parts.neighbours.links) == len(ends)
        interests = RouterPacket if routing == "forwarding" else LinkStates
        assert exchange.in_parts >= {Occurred, Shown, Explained, interests}
