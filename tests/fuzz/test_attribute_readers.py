"""All readers of attributes agree: a few thousand texts here, millions in `make fuzz-night`."""

from __future__ import annotations

import os
import time
from random import Random

import pytest

from palio.errors import InvalidValue
from palio.matching.encode import json_messages
from palio.model.message import Message
from palio.net.client import attributes
from tests.fuzz import attribute_readers
from tests.fuzz.attribute_readers import AttributeReaders
from tests.fuzz.broker_readers import BrokerReaders
from tests.fuzz.findings import Finding, shrink
from tests.fuzz.json_grammar import SEEDS, AttributeTexts
from tests.fuzz.targets import Attributes

KNOWN = [
    b'{"a":1,"a":2}',  # a client took the last
    b'{"a":{"a":' * 490 + b"1" + b"}" * 980,  # read in some places of a broker only
    b'{"a":' * 64 + b"1" + b"}" * 64,
    b'{"a":' * 65 + b"1" + b"}" * 65,
    b'\xef\xbb\xbf{"a":1}',
    '{"a":1}'.encode("utf-16"),
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":-0}',
    b'{"a":-0.0}',
    b'{"":null}',
    b'{"\\ud800":null}',
    b'{"a":[1e400,99999999999999999999]}',
    b'{"a":[' + b"9" * 4301 + b"]}",
    b'{"a":[{"b":1,"b":2}]}',
    b'{"a":["\\ud800"]}',
    b'{"a":["\xed\xa0\x80"]}',
    b'{"a":[{"\\udc00":1}]}',
    b'{"a":' + b"[" * 63 + b"]" * 63 + b"}",
    b'{"a":' + b"[" * 64 + b"]" * 64 + b"}",
    b'{"a":' * 40 + b"[" * 24 + b"]" * 24 + b"}" * 40,
    b'{"a":' * 40 + b"[" * 25 + b"]" * 25 + b"}" * 40,
    b'{"a":[{"$time":"2013-01-31"},{"$binary":"aGk="}],"b":{"$binary":"AA=="}}',
    b'{"a":[{"$time":"soon"}]}',
    b'{"a":[1,]}',
]
"""What readers have disagreed on, or might."""


def texts(count: int, seed: int) -> list[bytes]:
    grammar = AttributeTexts(Random(seed))
    return [grammar.text() for _ in range(count)]


def test_known_texts() -> None:
    AttributeReaders().check(KNOWN)
    AttributeReaders(Random(1)).check(SEEDS)
    BrokerReaders().check(KNOWN)


def test_random_texts() -> None:
    drawn = texts(4_000, seed=1)
    readers = AttributeReaders(Random(1))
    readers.check(drawn)
    assert readers.read > 1_000
    assert readers.refused > 1_000
    BrokerReaders().check(drawn[:60])


def test_a_seed_repeats_its_texts() -> None:
    assert texts(200, seed=7) == texts(200, seed=7)
    assert texts(200, seed=7) != texts(200, seed=8)


# ---- the comparison notices what it should


def test_a_client_that_reads_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def last(text: bytes | str) -> Message:
        try:
            return Message.from_json(text)
        except InvalidValue:
            return Message(attributes._decode(b"{}"))

    monkeypatch.setattr(attribute_readers, "from_bytes", last)
    with pytest.raises(Finding, match="a client reads") as caught:
        AttributeReaders().check([b"{}", b'{"a": "long text", "b": [1, 2}'])
    small = shrink(caught.value.case, lambda case: AttributeReaders().check(case))
    assert sum(map(len, small)) <= 1


def test_kernels_that_read_what_python_refuses_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    read = json_messages._JsonReader.read

    def careless(self: json_messages._JsonReader, chunk: object) -> None:
        read(self, chunk)
        self.odd[:] = False

    monkeypatch.setattr(json_messages._JsonReader, "read", careless)
    with pytest.raises(Finding, match="kernels read what Python refuses"):
        AttributeReaders().check([b'{"a": 1}', b'{"a": 1'])
    with pytest.raises(Finding, match="kernels read it otherwise"):
        AttributeReaders().check([b'{"a": {"$time": "2013-1-1"}}'])


def test_values_that_are_read_otherwise_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Message.from_json

    def rounding(text: str | bytes) -> Message:
        found = read(text)
        return Message({k: float(v) if type(v) is int else v for k, v in found.items()})

    monkeypatch.setattr(Message, "from_json", rounding)
    with pytest.raises(Finding):
        AttributeReaders().check([b'{"a": 9007199254740993}'])


@pytest.mark.fuzz
def test_random_texts_for_longer() -> None:
    """FUZZ_TEXTS=10000000 for more; FUZZ_SEED for other texts."""
    count = int(os.environ.get("FUZZ_TEXTS", 500_000))
    seed = int(os.environ.get("FUZZ_SEED", time.time_ns() % 1_000_000))
    target, done = Attributes(), 0
    while done < count:
        print(f"seed {seed}", flush=True)
        done += target.run(seed)
        seed += 1
