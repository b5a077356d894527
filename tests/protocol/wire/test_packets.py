"""Packets on the wire: reading what was written gives the same; anything else is a BrokenFrame."""

from __future__ import annotations

import random
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

import palio
from palio.errors import InvalidPattern
from palio.model.message import Message
from palio.protocol.wire.frames import BrokenFrame
from palio.protocol.wire.packets import from_bytes, to_bytes
from palio.routing import patterns
from palio.routing.packets import Packet, Publish, Restate, Subscribe
from palio.routing.patterns.packets import Assembled, Compound, Sieved, Watch
from palio.routing.patterns.pattern import Awaited, Pattern, Then
from tests.protocol.wire.control_strategies import packets
from tests.protocol.wire.mutation import mutated

encode = msgspec.msgpack.encode


@given(packets)
@settings(max_examples=500, deadline=None)
def test_reading_what_was_written_gives_the_same(packet: Packet) -> None:
    found = from_bytes(to_bytes(packet))
    assert type(found) is type(packet)
    assert repr(found) == repr(packet)  # 1 and 1.0 look different, and NaN equals itself
    if "nan" not in repr(packet):
        assert found == packet


def filter_of(text: str) -> palio.Filter:
    (found,) = palio.parse(text)
    return found


SUBSCRIBE = Subscribe(filter_of("price < 500 AND dest IN ('LIN', 'MXP') AND gate IS NULL"))
PUBLISH = Publish(Message({"x": 1, "y": 2.5, "s": "a"}), "ann/desk", 7, 8)
PATTERN = patterns.parse("[x > 1] then ([x = 1] or [y IS NULL] within 5 minutes) same host")


def constraint(*fields: object) -> bytes:
    return encode(["Subscribe", [fields], None])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated"),
        (b"\x91" * 5000, "recursion"),
        (encode([]), "no kind ''"),
        (encode(["Nothing"]), "no kind 'Nothing'"),
        (encode(["Compound", [], []]), "no kind 'Compound'"),
        (encode(["Publish", {"x": 1}, "p", 1, 2]), "no kind 'Publish'"),  # messages: FORWARD
        (encode([["Subscribe"]]), "a text must be"),
        (encode({"Subscribe": []}), "a list must be"),
        (encode(["Subscribe"]), "Subscribe has 2 fields, not 0"),
        (encode(["Subscribe", [], [], None]), "Subscribe has 2 fields, not 3"),
        (encode(["Subscribe", "x > 1", None]), "a list must be"),
        (constraint("x", ">"), "4 fields, not 2"),
        (constraint("x", "~", 1, "int"), "no operator"),
        (constraint("x", ["="], 1, "int"), "no operator"),
        (constraint("x", "=", 1, "integer"), "no type"),
        (constraint("x", "=", "a", "int"), "not of type int"),
        (constraint("x", "=", float("nan"), "float"), "NaN"),
        (constraint("x", "=", 2**63, "int"), "64 bits"),
        (constraint("x", "=", None, None), "needs a value"),
        (constraint("x", "=", b"a", None), "a value is"),
        (constraint("x", "=", msgspec.msgpack.Ext(5, b"a"), None), "a value is"),
        (constraint("x", "in", {"a": 1}, None), "not a value"),
        (constraint("x", "in", [], None), "at least one"),
        (constraint("x", "in", [1, "a"], None), "mixes types"),
        (constraint("", "any", None, None), "name is empty"),
        (constraint(5, "any", None, None), "name is a string"),
        (encode(["Sieved", 1, [[], "p", 1, 2]]), "a message must be"),
        (
            encode(["Sieved", 1, [{"x": [2**63 - 1, msgspec.msgpack.Ext(5, b"a")]}, "p", 1, 2]]),
            "'x'",
        ),
        (encode(["Sieved", 1, [{1: 1}, "p", 1, 2]]), "name is a string"),
        (encode(["Sieved", 1, [{}, "p", "1", 2]]), "a number from 0"),
        (encode(["Sieved", 1, [{}, "p", True, 2]]), "a number from 0"),
        (encode(["Sieved", 1, [{}, "p", -1, 2]]), "a number from 0"),
        (encode(["Sieved", 1, [{}, "p", 2**63, 2]]), "a number from 0"),
        (encode(["Sieved", 1, [{}, 3, 1, 2]]), "a text must be"),
        (encode(["Watch", 1, "[x >", "whole", None]), "not closed"),
        (encode(["Watch", 1, "<3>", "whole", None]), "predicate in brackets"),
        (encode(["Watch", 1, "(" * 60 + "[x = 1]", "whole", None]), "nested"),
        (encode(["Watch", 1, " or ".join(["[x = 1]"] * 65), "whole", None]), "more than 64"),
        (encode(["Watch", 1, "[x = 1]", "all", None]), "Task"),
        (encode(["Watch", 1, "[x = 1]", "whole", -1]), "a number from 0"),
        (encode(["Assembled", 1, [[], []]]), "at least one message"),
        (encode(["Restate", [[1]], [], [], None]), "a list must be"),
        (encode(["Restate", [], [], [[1, "[x = 1]"]], None]), "Watch has 4 fields"),
        (encode(["Restate", [], [], [], 5]), "a text must be"),
    ],
)
def test_broken(data: bytes, says: str) -> None:
    with pytest.raises(BrokenFrame, match=says) as caught:
        from_bytes(data)
    assert len(str(caught.value)) < 400


def test_an_explosion_is_a_broken_frame() -> None:
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(20))
    with pytest.raises(BrokenFrame, match="the limit is 4,096"):
        from_bytes(encode(["Watch", 1, f"[{text}]", "whole", None]))


def test_what_others_assemble_is_not_sent() -> None:
    waiting = Pattern(Then((Awaited(1), Awaited(2))))
    with pytest.raises(InvalidPattern, match="cannot be sent"):
        to_bytes(Watch(1, waiting))


def search(count: int, seed: int, progress: int = 0) -> int:
    draw = random.Random(seed)
    one = Watch(4, PATTERN)
    some: list[Any] = [
        SUBSCRIBE,
        Sieved(1, PUBLISH),
        one,
        Assembled(1, Compound((PUBLISH,), ("host",))),
    ]
    some.append(Restate((SUBSCRIBE.filter,), (palio.Advertisement(SUBSCRIBE.filter.constraints),)))
    good = list(map(to_bytes, some))
    understood = 0
    for tried in range(count):
        data = mutated(draw, good)
        try:
            to_bytes(from_bytes(data))
            understood += 1
        except BrokenFrame:
            pass
        except BaseException:
            print(f"seed {seed}, try {tried}: {data!r}")
            raise
        if progress and tried % progress == 0:
            print(f"{tried:>12,} tried, {understood:,} packets understood", flush=True)
    return understood


def test_mutated_bytes_give_packets_or_broken_frame() -> None:
    assert search(30_000, 1) > 500


@pytest.mark.fuzz
def test_a_million_mutated_packets() -> None:
    assert search(1_000_000, time.time_ns() % 1_000_000, progress=100_000) > 0
