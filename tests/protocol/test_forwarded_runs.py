"""Runs between brokers: kernels read and write FORWARD frames as Python does, and a network does the
same with them as with single messages."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.protocol.frames import Forward, Frames, Letter, Limits, Publish, letter_frame
from palio.protocol.runs import Run, forward, scan, scan_forwards
from palio.routing import data_path
from tests.protocol.exchange import Exchange, network

TRAILS = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 70_000), st.text(max_size=40)),
    st.tuples(st.integers(0, 200), st.lists(st.text(max_size=8), max_size=20)),
).map(msgspec.msgpack.encode)
NUMBERS = st.one_of(st.integers(0, 300), st.integers(2**16 - 3, 2**63 - 1))
MESSAGES = st.tuples(
    st.text(max_size=50), NUMBERS, NUMBERS, st.binary(max_size=9), st.binary(max_size=20)
)
RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
Message = tuple[str, int, int, bytes, bytes]


def _frame(trail: bytes, message: Message, durable: bool) -> bytes:
    publisher, number, time, text, body = message
    return letter_frame(Forward(msgspec.Raw(trail), publisher, number, time, durable), text, body)


@settings(deadline=None)
@given(
    st.booleans(), st.lists(st.tuples(TRAILS, MESSAGES), min_size=1, max_size=8), st.integers(0, 9)
)
def test_a_run_is_what_the_frames_are(
    durable: bool, messages: list[tuple[bytes, Message]], cut: int
) -> None:
    data = b"".join(_frame(trail, one, durable) for trail, one in messages)
    other = _frame(*messages[0], not durable)
    run, end = scan_forwards(data + other, 0, Limits())
    assert run is not None
    assert (len(run), end, run.durable) == (len(messages), len(data), durable)
    found = [(p, *rest) for p, rest in zip(run.publishers(), run, strict=True)]
    assert found == [one for _, one in messages]
    trails = {r: trail for trail, rows in run.trails() for r in rows.tolist()}
    assert [trails[r] for r in range(len(run))] == [trail for trail, _ in messages]
    assert [run.trail(r) for r in range(len(run))] == [trail for trail, _ in messages]
    cut_run, cut_end = scan_forwards(data[: len(data) - cut], 0, Limits())
    assert cut_end <= len(data) - cut
    assert (0 if cut_run is None else len(cut_run)) == len(messages) - (cut > 0)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_mutated_frames_end_a_run(data: st.DataObject) -> None:
    """Whatever a run holds, Python reads the same there."""
    trail = msgspec.msgpack.encode((3, "rome"))
    good = b"".join(
        _frame(trail, ("ann/1", i, 2**40, b'{"x": 1}', b"body"), False) for i in range(100, 104)
    )
    mutated = bytearray(good + data.draw(st.binary(max_size=60)))
    for _ in range(data.draw(st.integers(0, 3))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    run, end = scan_forwards(bytes(mutated), 0, Limits())
    if run is not None:
        letters = [x for x in Frames().feed(bytes(mutated[:end])) if isinstance(x, Letter)]
        assert [(x.attributes, x.body) for x in letters] == [entry[2:] for entry in run]
        headers = [x.header for x in letters if isinstance(x.header, Forward)]
        assert [bytes(x.trail) for x in headers] == [run.trail(r) for r in range(len(run))]
        assert [(x.publisher, x.number) for x in headers] == list(
            zip(run.publishers(), run.numbers(), strict=True)
        )


@settings(deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=8), st.booleans(), st.data())
def test_what_is_forwarded_is_what_the_frames_are(
    messages: list[Message], durable: bool, data: st.DataObject
) -> None:
    trails = data.draw(st.lists(TRAILS, min_size=1, max_size=3, unique=True))
    chosen = [data.draw(st.sampled_from([None, *trails])) for _ in messages]
    places = {t: [r for r, own in enumerate(chosen) if own == t] for t in trails}
    places = {t: rows for t, rows in places.items() if rows}
    if not places:
        return
    came = [_frame(b"\xc0", one, durable) for one in messages]
    forwarded, _ = scan_forwards(b"".join(came), 0, Limits())
    published, _ = scan(
        b"".join(letter_frame(Publish(m[1], m[2], durable), m[3], m[4]) for m in messages),
        0,
        Limits(),
    )
    assert forwarded is not None
    assert published is not None
    published.sign("bob/é")
    cases: list[tuple[Run, Callable[[Message], Message]]] = [
        (forwarded, lambda one: one),
        (published, lambda one: ("bob/é", *one[1:])),
    ]
    for run, as_sent in cases:
        wanted = [
            _frame(own, as_sent(one), durable)
            for own, one in zip(chosen, messages, strict=True)
            if own is not None
        ]
        written = forward(run, places)
        assert written.data == b"".join(wanted)
        assert written.ends == np.cumsum([len(one) for one in wanted]).tolist()


def _travelled(
    texts: list[str], routing: str, step: int, credit: int, durable: bool
) -> dict[str, object]:
    """What clients get of these messages, published so many at a time."""
    links = RING[:3] if routing == "forwarding" else RING
    exchange = network(links, routing=routing, link_credit=credit)
    wishes = {"a": "x >= 1", "b": "x = 3 OR y >= 1", "c": "z IS NOT NULL", "d": "x < 2 OR y = 4"}
    clients = {at: exchange.client(at, f"client {at}") for at in wishes}
    ids = {at: clients[at].session.subscribe(wish) for at, wish in wishes.items()}
    shared = clients["d"].session.subscribe("x >= 0", group="shared")
    exchange.run()
    exchange.now_us += 2_000_000
    exchange.run()
    for first in range(0, len(texts), step):
        for sender in ("a", "c"):
            for text in texts[first : first + step]:
                clients[sender].publish(json.loads(text), b"b" * 40, durable)
        exchange.run()
    found: dict[str, object] = {at: _by_publisher(exchange, at, ids[at]) for at in wishes}
    found["shared"] = len(clients["d"].got(shared))
    return found


def _by_publisher(exchange: Exchange, at: str, id: int) -> dict[str, list[bytes]]:
    """In the order in which they came from each."""
    found: dict[str, list[bytes]] = {}
    for client in exchange.clients.values():
        for arrival in client.arrivals:
            if client.broker == at and arrival.id == id:
                header = arrival.letter.header
                found.setdefault(header.publisher, []).append(arrival.letter.attributes)  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("routing", ["PSF", "iPS", "PIF", "DRP", "forwarding"])
def test_a_network_does_the_same_with_runs(
    monkeypatch: pytest.MonkeyPatch, routing: str, durable: bool
) -> None:
    monkeypatch.setattr(data_path, "EVALUATED_MAX", 0)
    rng = np.random.default_rng(3)
    texts = [
        json.dumps({name: int(rng.integers(0, 5)) for name in "xyz" if rng.random() < 0.6})
        for _ in range(150)
    ]
    one_by_one = _travelled(texts, routing, 5, 100_000, durable)
    assert one_by_one["b"], "something arrived"
    assert _travelled(texts, routing, 150, 100_000, durable) == one_by_one
    assert _travelled(texts, routing, 150, 64, durable) == one_by_one  # they wait for credit


def test_what_comes_twice_is_passed_on_once() -> None:
    exchange = network([("a", "b")])
    bob = exchange.client("b", "bob")
    id = bob.session.subscribe("x > 0")
    exchange.run()
    broker = exchange.brokers["b"]
    link = next(link for link, one in broker.links.items() if one.name == "a")
    trail = msgspec.msgpack.encode((3, "a"))
    frames = [
        _frame(trail, (f"p/{i % 3}", i, 0, b'{"x": 1}', bytes(80)), False) for i in range(1, 101)
    ]
    for piece in (frames, frames, [*frames[:50], *frames[:50]], frames[:1]):
        broker.receive(link, b"".join(piece), exchange.now_us)
        exchange.run()
    assert len(bob.got(id)) == 100
    assert broker.traffic.counts.doubled == 201
