"""Runs: kernels read and write the frames that Python does, and a broker does the same with them."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.model.language import parse
from palio.protocol.access import EVERYTHING, Access, Identity
from palio.protocol.broker import Broker
from palio.protocol.durability import kept
from palio.protocol.frames import Deliver, Frames, Letter, Limits, Publish, letter_frame, word_frame
from palio.protocol.runs import Run, scan
from palio.protocol.words import VERSION, Hello, Ping, Published, Subscribe, Word
from palio.routing import data_path
from tests.protocol.exchange import Exchange, network

NUMBERS = st.one_of(
    st.integers(0, 300), st.integers(2**16 - 3, 2**16 + 3), st.integers(2**32 - 3, 2**63 - 1)
)
MESSAGES = st.tuples(
    NUMBERS,
    NUMBERS,
    st.booleans(),
    st.dictionaries(st.sampled_from("xyz"), st.integers(0, 5), max_size=3),
    st.binary(max_size=20),
)


def _frame(message: tuple[int, int, bool, dict[str, int], bytes]) -> bytes:
    number, time, durable, attributes, body = message
    return letter_frame(Publish(number, time, durable), json.dumps(attributes).encode(), body)


@settings(deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=8), st.integers(0, 5))
def test_a_run_is_what_the_frames_are(
    messages: list[tuple[int, int, bool, dict[str, int], bytes]], cut: int
) -> None:
    data = b"".join(map(_frame, messages))
    data = data[: len(data) - cut]
    letters = [item for item in Frames().feed(data) if isinstance(item, Letter)]
    run, end = scan(data, 0, Limits())
    alike = 0
    for letter in letters:
        if letter.header.durable != letters[0].header.durable:  # type: ignore[union-attr]
            break
        alike += 1
    if not letters:
        assert run is None
        return
    assert isinstance(run, Run)
    assert len(run) == alike
    found = [(n, t, run.durable, a, b) for n, t, a, b in run]
    assert found == [
        (*msgspec.structs.astuple(x.header), x.attributes, x.body) for x in letters[:alike]
    ]
    assert [run[i] for i in range(len(run))] == list(run)
    column = run.attributes()
    assert [text.encode() for text in column.to_pylist()] == [x.attributes for x in letters[:alike]]
    assert end == len(b"".join(map(_frame, messages[:alike])))


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=120), st.data())
def test_mutated_frames_end_a_run(noise: bytes, data: st.DataObject) -> None:
    """Whatever a run holds, Python reads the same there."""
    good = b"".join(
        letter_frame(Publish(i, 2**40, False), b'{"x": 1}', b"body") for i in range(100, 104)
    )
    mutated = bytearray(good + noise)
    for _ in range(data.draw(st.integers(0, 3))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    run, end = scan(bytes(mutated), 0, Limits())
    if run is not None:
        letters = list(Frames().feed(bytes(mutated[:end])))
        assert [(x.attributes, x.body) for x in letters if isinstance(x, Letter)] == [
            entry[2:] for entry in run
        ]
        assert len(letters) == len(run)


def test_limits_end_a_run() -> None:
    data = letter_frame(Publish(1, 2, False), b'{"x": 1}', b"body")
    for limits in (Limits(header=3), Limits(attributes=7), Limits(body=3)):
        assert scan(data, 0, limits) == (None, 0)


def _sent(
    texts: list[str], whole: bool, credit: int, durable: bool = False, grant: str = "TRUE"
) -> dict[int, list[tuple[object, ...]]]:
    """What clients get of these messages, sent in one piece or frame by frame."""
    exchange = Exchange()
    anybody = Identity("anybody", EVERYTHING, parse(grant), admin=True)
    broker = exchange.add("a", access=Access(anonymous=anybody), waiting_max=50)
    wishes = {2: ["x >= 1", "y = 2"], 3: ["x = 3 OR y >= 1"], 4: ["z IS NOT NULL", "x < 2"]}
    for link, own in {1: [], **wishes}.items():
        words: list[Word] = [Hello(VERSION, "client", f"client {link}"), Ping(1)]
        words += [Subscribe(i, wish, credit=credit) for i, wish in enumerate(own, 1)]
        if link == 4:
            words.append(Subscribe(9, "x >= 0", group="shared"))
        if link != 1:
            words.append(Subscribe(11, "y >= 1 OR z = 0", durable=f"queue {link}", credit=credit))
        broker.open(link, exchange.now_us)
        broker.receive(link, b"".join(map(word_frame, words)), exchange.now_us)
    broker.receive(4, word_frame(Subscribe(10, "x >= 0", group="shared")), exchange.now_us)
    _settle(broker, exchange.now_us)
    frames = [
        letter_frame(Publish(i, 5, durable), text.encode(), b"b" * 40)
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
    for item in Frames().feed(data):
        if isinstance(item, Letter):
            header = item.header
            found += [
                (id, *msgspec.structs.astuple(header)[1:], item.attributes, item.body)
                for id in header.subscriptions  # type: ignore[union-attr]
            ]
        elif not isinstance(item, Published):  # as often as there are commits
            found.append((type(item).__name__, item))
    return sorted(found, key=str)


@pytest.mark.parametrize("durable", [False, True])
def test_a_broker_does_the_same_with_runs(monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    rng = np.random.default_rng(7)
    monkeypatch.setattr(data_path, "EVALUATED_MAX", 0)
    monkeypatch.setattr(kept, "PACK_MIN", 20)
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
def test_a_grant_is_asked_for_runs_too(monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    monkeypatch.setattr(data_path, "EVALUATED_MAX", 0)
    texts = [json.dumps({"x": i % 4, "y": i % 5}) for i in range(200)]
    for grant in ("x < 4 AND y >= 0", "x < 3 OR y = 1", "z = 1"):
        found = _sent(texts, True, 10**6, durable, grant)
        assert found == _sent(texts, False, 10**6, durable, grant)
        rejected = sum(note[0] == "Rejected" for note in found.get(1, ()))
        allowed = parse(grant)
        assert rejected == sum(not allowed.matches(json.loads(text)) for text in texts)


def test_durable_messages_come_live_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some come by themselves and some in runs; live subscriptions get them in one order."""
    monkeypatch.setattr(data_path, "EVALUATED_MAX", 0)
    exchange = Exchange()
    broker = exchange.add("a")
    for link in (1, 2):
        broker.open(link, exchange.now_us)
        broker.receive(link, word_frame(Hello(VERSION, "client", str(link))), exchange.now_us)
    wishes = [Subscribe(1, "x >= 0", credit=1000), Subscribe(2, "x >= 0", durable="q", credit=1000)]
    broker.receive(2, b"".join(map(word_frame, wishes)), exchange.now_us)
    _settle(broker, exchange.now_us)
    frames = [letter_frame(Publish(i, 5, True), b'{"x": 1}', bytes(40)) for i in range(1, 301)]
    for piece in ([frames[0]], frames[1:150], [frames[150]], frames[151:]):
        broker.receive(1, b"".join(piece), exchange.now_us)
    data = b"".join(data for link, data in _settle(broker, exchange.now_us) if link == 2)
    headers = [item.header for item in Frames().feed(data) if isinstance(item, Letter)]
    for id in (1, 2):
        numbers = [h.number for h in headers if isinstance(h, Deliver) and h.subscriptions == (id,)]
        assert numbers == list(range(1, 301))


def test_runs_travel_to_other_brokers() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    ids = [ann.session.subscribe("x > 0"), ann.session.subscribe("x > 0", durable="d")]
    exchange.run()
    for durable in (True, False):
        for x in range(1, 200):
            bob.publish({"x": x}, b"a body that makes them enough bytes for a run", durable)
    exchange.run()
    for id in ids:
        assert sorted(m["x"] for m in ann.got(id)) == sorted([*range(1, 200)] * 2)  # type: ignore[type-var]
