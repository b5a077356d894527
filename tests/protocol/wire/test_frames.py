"""FrameReader: what is written is read, however the stream is cut; anything else is a BrokenFrame."""

from __future__ import annotations

import random
import resource
import struct
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.protocol.wire.control import (
    Bye,
    CarryAck,
    ControlMessage,
    Digest,
    Durable,
    Hello,
    LinkState,
    LinkStates,
    Occurred,
    PatternItem,
    Ping,
    RouterPacket,
    SubscribeRequest,
)
from palio.protocol.wire.frames import (
    BEFORE_HELLO,
    BrokenFrame,
    FrameKind,
    FrameReader,
    Limits,
    MessageFrame,
    control_frame,
    message_frame,
    payload_frame,
)
from palio.protocol.wire.headers import (
    CarryHeader,
    CarryTarget,
    DeliverHeader,
    ForwardHeader,
    Header,
    PublishHeader,
)
from palio.protocol.wire.message_headers import NO_HEADERS
from tests.protocol.wire.control_strategies import control_messages, headers
from tests.protocol.wire.mutation import mutated

message_frames = st.builds(MessageFrame, headers, st.binary(max_size=30), st.binary(max_size=30))
MESSAGE_FRAME = message_frame(PublishHeader(1, 2, True), b'{"x":1}', b"body")


def frame(item: ControlMessage | MessageFrame) -> bytes:
    return payload_frame(*item) if isinstance(item, MessageFrame) else control_frame(item)


@given(st.lists(control_messages | message_frames, max_size=6), st.data())
@settings(max_examples=300, deadline=None)
def test_any_cutting_gives_the_same_frames(
    items: list[ControlMessage | MessageFrame], data: st.DataObject
) -> None:
    stream = b"".join(map(frame, items))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    frames = FrameReader()
    found: list[ControlMessage | MessageFrame] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += frames.feed(stream[start:end])
    assert found == items
    assert [type(one) for one in found] == [type(one) for one in items]
    assert frames.waiting == 0


@given(st.lists(control_messages | message_frames, min_size=1, max_size=3))
@settings(max_examples=50, deadline=None)
def test_byte_by_byte(items: list[ControlMessage | MessageFrame]) -> None:
    stream = b"".join(map(frame, items))
    frames = FrameReader()
    found = [one for at in range(len(stream)) for one in frames.feed(stream[at : at + 1])]
    assert found == items


def test_a_large_frame_in_small_pieces_costs_no_more_than_its_size() -> None:
    """It is not copied anew with each piece."""
    stream = control_frame(RouterPacket(bytes(8 << 20)))
    frames = FrameReader()
    started = time.process_time()
    found = [one for at in range(0, len(stream), 100) for one in frames.feed(stream[at : at + 100])]
    assert len(found) == 1
    assert time.process_time() - started < 5  # 80,000 copies of 4 MB would take a minute


def test_what_was_whole_before_the_break_comes_first() -> None:
    stream = FrameReader().feed(
        control_frame(Ping(1)) + MESSAGE_FRAME + b"\x02\x00\x00\x00\x09\x00"
    )
    assert next(stream) == Ping(1)
    assert next(stream) == MessageFrame(PublishHeader(1, 2, True), b'{"x":1}', NO_HEADERS + b"body")
    with pytest.raises(BrokenFrame, match="kind 9"):
        next(stream)


def sized(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IB", 1 + len(payload), kind) + payload


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (struct.pack("<IB", 0, 0), "least 1"),
        (struct.pack("<IB", 2**32 - 1, 0), "the most is"),
        (sized(0, b""), "an unknown control message"),
        (sized(0, b"\x92\xa4Pong"), "truncated"),
        (sized(0, b"\x92\xa4Zong\x01"), "Zong"),
        (sized(0, b"\x92\xa4Ping\xff"), ">= 0"),
        (sized(0, b"\x92\xa4Ping\xcf" + b"\xff" * 8), "<="),
        (sized(0, b"\x92\xa4Ping\xa11"), "Expected `int`"),
        (sized(0, b"\x92\xa3Bye\xa1\xff"), "utf-8"),
        (sized(0, b"\x97\xaaExplainHop\x01\xa0\xa0\xa0\xa0" + b"\x91" * 10_000), "recursion"),
        (sized(0, b"\x92\xa6Digest\xdd\xff\xff\xff\xff"), "truncated"),
        (sized(1, b"\x00" * 7), "cut off"),
        (sized(1, struct.pack("<II", 5, 0)), "a payload of -5"),
        (sized(1, struct.pack("<II", 2**32 - 1, 2**32 - 1)), "the most are"),
        (sized(1, struct.pack("<II", 1, 0) + b"\x01"), "header"),
        (sized(1, struct.pack("<II", 4, 0) + b"\x93\xff\x00\xc2"), ">= 0"),
        (sized(5, MESSAGE_FRAME[5:]), "kind 5"),
        (sized(255, b""), "kind 255"),
    ],
)
def test_broken(data: bytes, says: str) -> None:
    with pytest.raises(BrokenFrame, match=says):
        list(FrameReader().feed(data + bytes(20)))


def test_limits() -> None:
    small = Limits(control=20, header=10, attributes=7, body=4, headers=0)
    assert len(list(FrameReader(small).feed(MESSAGE_FRAME))) == 1
    for message in (Bye("x" * 20), RouterPacket(bytes(20))):
        with pytest.raises(BrokenFrame, match="the most is"):
            list(FrameReader(small).feed(control_frame(message)))
    for header, attributes, body in (
        (PublishHeader(1, 2**60, True), b"", b""),
        (PublishHeader(1, 2, True), b'{"x":12}', b""),
        (PublishHeader(1, 2, True), b"", b"body!"),
    ):
        with pytest.raises(BrokenFrame, match="the most are"):
            list(FrameReader(small).feed(message_frame(header, attributes, body)))


def test_a_frame_that_is_too_large_is_refused_before_it_is_there() -> None:
    frames = FrameReader(Limits(control=1000, body=1000))
    with pytest.raises(BrokenFrame, match="the most is"):
        list(frames.feed(struct.pack("<IB", 200_000, 0)))
    assert frames.waiting == 0


def test_strangers_may_say_little_until_they_are_known() -> None:
    frames = FrameReader(BEFORE_HELLO)
    assert list(frames.feed(control_frame(Hello(1, "client", "ann", "token"))))
    with pytest.raises(BrokenFrame):
        list(FrameReader(BEFORE_HELLO).feed(MESSAGE_FRAME))
    with pytest.raises(BrokenFrame):
        list(FrameReader(BEFORE_HELLO).feed(control_frame(RouterPacket(bytes(20_000)))[:10]))
    frames.limits = Limits()
    assert len(list(frames.feed(MESSAGE_FRAME + control_frame(RouterPacket(bytes(20_000)))))) == 2


def test_more_is_allowed_from_the_next_frame_on() -> None:
    """The proof of a broker and its first messages may come at once."""
    publish_frame = message_frame(PublishHeader(1, 2, True), b"{}", b"body")
    frames = FrameReader(BEFORE_HELLO)
    found = frames.feed(control_frame(Ping(1)) + publish_frame + control_frame(Ping(2)))
    assert next(found) == Ping(1)
    frames.limits = Limits()
    assert [type(item) for item in found] == [MessageFrame, Ping]
    with pytest.raises(BrokenFrame, match="the most are 0, 0 and 2"):
        list(FrameReader(BEFORE_HELLO).feed(control_frame(Ping(1)) + publish_frame))


# ---- random bytes

_HEADERS: list[Header] = [
    PublishHeader(7, 1_700_000_000_000_000, True),
    DeliverHeader((1, 2), 3, "ann/desk", 4, 5, 3),
    ForwardHeader(msgspec.Raw(b"\x92\xa2b1\x05"), "ann/desk", 1, 2, True),
    CarryHeader("b1", "epoch", (CarryTarget("b2", 3, 1, ("ann/x", "bob/y")),), "ann/desk", 4, 5),
]
_WORDS: list[ControlMessage] = [
    Hello(1, "broker", "b1", nonce=bytes(range(32))),
    SubscribeRequest(1, "price < 500", durable="desk", since=5),
    Occurred(1, (PatternItem("{}", "ann/desk", 1, 2),)),
    LinkStates(
        (LinkState("b1", "e", 2, 0, (("b2", 1.5),), ("x > 1",), (), {"n": Durable("x", 1, 1)}),)
    ),
    Digest((("b1", "e", 1), ("b2", "f", 2))),
    CarryAck("b1", "e", "b2", 70_000),
    RouterPacket(b"\x91\x01"),
]


def good_frames() -> list[bytes]:
    made = [message_frame(one, b'{"price": 450}', b"body") for one in _HEADERS]
    return made + list(map(control_frame, _WORDS))


def search(count: int, seed: int, progress: int = 0) -> int:
    """Feed mutated frames; the number of frames that came out of it."""
    draw = random.Random(seed)
    good = good_frames()
    understood = 0
    for tried in range(count):
        data = mutated(draw, good)
        if tried % 4 == 0:
            data = draw.choice(good) + data + draw.choice(good)
        cut = draw.randrange(len(data) + 1)
        frames = FrameReader()
        try:
            for part in (data[:cut], data[cut:]):
                for one in frames.feed(part):
                    frame(one)  # whatever is read can be written
                    understood += 1
        except BrokenFrame:
            pass
        except BaseException:
            print(f"seed {seed}, try {tried}: {data!r}")
            raise
        if progress and tried % progress == 0:
            print(f"{tried:>12,} tried, {understood:,} frames understood", flush=True)
    return understood


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_bytes_give_frames_or_broken_frame(seed: int) -> None:
    assert search(20_000, seed) > 2_000


@pytest.mark.fuzz
def test_ten_million_mutated_frames() -> None:
    search(50_000, 0)  # what is allocated once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert search(10_000_000, time.time_ns() % 1_000_000, progress=500_000) > 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def test_a_reader_says_how_much_waits_and_whether_it_is_the_same_frame() -> None:
    reader, ping = FrameReader(), control_frame(Ping(1))
    list(reader.feed(ping[:6]))
    assert (reader.waiting, reader.is_continued) == (6, False)
    list(reader.feed(ping[6:7]))
    assert (reader.waiting, reader.is_continued) == (7, True)
    assert list(reader.feed(ping[7:] + ping[:2])) == [Ping(1)]
    assert (reader.waiting, reader.is_continued) == (2, False)
    assert list(reader.feed(ping[2:])) == [Ping(1)]
    assert (reader.waiting, reader.is_continued) == (0, False)


def test_a_message_over_the_limit_is_not_awaited() -> None:
    """Control messages may be larger than messages, but not the other way round."""
    limits = Limits(control=1000, header=100, attributes=100, body=100, headers=0)
    assert list(FrameReader(limits).feed(struct.pack("<IB", 900, FrameKind.CONTROL))) == []
    assert list(FrameReader(limits).feed(struct.pack("<IB", limits.message, 1))) == []
    with pytest.raises(BrokenFrame, match="a message of 312 bytes; the most is 311"):
        list(FrameReader(limits).feed(struct.pack("<IB", 312, FrameKind.PUBLISH)))
