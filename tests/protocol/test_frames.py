"""Frames: what is written is read, however the stream is cut; anything else is a BrokenFrame."""

from __future__ import annotations

import random
import resource
import struct
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.protocol.frames import (
    BEFORE_HELLO,
    BrokenFrame,
    Carry,
    Deliver,
    Forward,
    Frames,
    Header,
    Letter,
    Limits,
    Publish,
    Target,
    letter_frame,
    word_frame,
)
from palio.protocol.words import (
    Bye,
    Digest,
    Durable,
    Got,
    Hello,
    Item,
    Occurred,
    Ping,
    Said,
    State,
    States,
    Subscribe,
    Word,
)
from tests.protocol.mutation import mutated
from tests.protocol.word_strategies import headers, words

letters = st.builds(Letter, headers, st.binary(max_size=30), st.binary(max_size=30))
LETTER = letter_frame(Publish(1, 2, True), b'{"x":1}', b"body")


def frame(item: Word | Letter) -> bytes:
    return letter_frame(*item) if isinstance(item, Letter) else word_frame(item)


@given(st.lists(words | letters, max_size=6), st.data())
@settings(max_examples=300, deadline=None)
def test_any_cutting_gives_the_same_frames(items: list[Word | Letter], data: st.DataObject) -> None:
    stream = b"".join(map(frame, items))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    frames = Frames()
    found: list[Word | Letter] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += frames.feed(stream[start:end])
    assert found == items
    assert [type(one) for one in found] == [type(one) for one in items]
    assert frames.waiting == 0


@given(st.lists(words | letters, min_size=1, max_size=3))
@settings(max_examples=50, deadline=None)
def test_byte_by_byte(items: list[Word | Letter]) -> None:
    stream = b"".join(map(frame, items))
    frames = Frames()
    found = [one for at in range(len(stream)) for one in frames.feed(stream[at : at + 1])]
    assert found == items


def test_a_large_frame_in_small_pieces_costs_no_more_than_its_size() -> None:
    """It is not copied anew with each piece."""
    stream = word_frame(Said(bytes(8 << 20)))
    frames = Frames()
    started = time.process_time()
    found = [one for at in range(0, len(stream), 100) for one in frames.feed(stream[at : at + 100])]
    assert len(found) == 1
    assert time.process_time() - started < 5  # 80,000 copies of 4 MB would take a minute


def test_what_was_whole_before_the_break_comes_first() -> None:
    stream = Frames().feed(word_frame(Ping(1)) + LETTER + b"\x02\x00\x00\x00\x09\x00")
    assert next(stream) == Ping(1)
    assert next(stream) == Letter(Publish(1, 2, True), b'{"x":1}', b"body")
    with pytest.raises(BrokenFrame, match="kind 9"):
        next(stream)


def sized(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IB", 1 + len(payload), kind) + payload


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (struct.pack("<IB", 0, 0), "least 1"),
        (struct.pack("<IB", 2**32 - 1, 0), "the most is"),
        (sized(0, b""), "a word that nobody here knows"),
        (sized(0, b"\x92\xa4Pong"), "truncated"),
        (sized(0, b"\x92\xa4Zong\x01"), "Zong"),
        (sized(0, b"\x92\xa4Ping\xff"), ">= 0"),
        (sized(0, b"\x92\xa4Ping\xcf" + b"\xff" * 8), "<="),
        (sized(0, b"\x92\xa4Ping\xa11"), "Expected `int`"),
        (sized(0, b"\x92\xa3Bye\xa1\xff"), "utf-8"),
        (sized(0, b"\x97\xa5Asked\x01\xa0\xa0\xa0\xa0" + b"\x91" * 10_000), "recursion"),
        (sized(0, b"\x92\xa6Digest\xdd\xff\xff\xff\xff"), "truncated"),
        (sized(1, b"\x00" * 7), "cut off"),
        (sized(1, struct.pack("<II", 5, 0)), "a body of -5"),
        (sized(1, struct.pack("<II", 2**32 - 1, 2**32 - 1)), "the most are"),
        (sized(1, struct.pack("<II", 1, 0) + b"\x01"), "header"),
        (sized(1, struct.pack("<II", 4, 0) + b"\x93\xff\x00\xc2"), ">= 0"),
        (sized(5, LETTER[5:]), "kind 5"),
        (sized(255, b""), "kind 255"),
    ],
)
def test_broken(data: bytes, says: str) -> None:
    with pytest.raises(BrokenFrame, match=says):
        list(Frames().feed(data + bytes(20)))


def test_limits() -> None:
    small = Limits(word=20, header=10, attributes=7, body=4)
    assert len(list(Frames(small).feed(LETTER))) == 1
    for word in (Bye("x" * 20), Said(bytes(20))):
        with pytest.raises(BrokenFrame, match="the most is"):
            list(Frames(small).feed(word_frame(word)))
    for header, attributes, body in (
        (Publish(1, 2**60, True), b"", b""),
        (Publish(1, 2, True), b'{"x":12}', b""),
        (Publish(1, 2, True), b"", b"body!"),
    ):
        with pytest.raises(BrokenFrame, match="the most are"):
            list(Frames(small).feed(letter_frame(header, attributes, body)))


def test_a_frame_that_is_too_large_is_refused_before_it_is_there() -> None:
    frames = Frames(Limits(word=1000, body=1000))
    with pytest.raises(BrokenFrame, match="the most is"):
        list(frames.feed(struct.pack("<IB", 200_000, 0)))
    assert frames.waiting == 0


def test_strangers_may_say_little_until_they_are_known() -> None:
    frames = Frames(BEFORE_HELLO)
    assert list(frames.feed(word_frame(Hello(1, "client", "ann", "token"))))
    with pytest.raises(BrokenFrame):
        list(Frames(BEFORE_HELLO).feed(LETTER))
    with pytest.raises(BrokenFrame):
        list(Frames(BEFORE_HELLO).feed(word_frame(Said(bytes(20_000)))[:10]))
    frames.limits = Limits()
    assert len(list(frames.feed(LETTER + word_frame(Said(bytes(20_000)))))) == 2


def test_more_is_allowed_from_the_next_frame_on() -> None:
    """The proof of a broker and its first messages may come at once."""
    letter = letter_frame(Publish(1, 2, True), b"{}", b"body")
    frames = Frames(BEFORE_HELLO)
    found = frames.feed(word_frame(Ping(1)) + letter + word_frame(Ping(2)))
    assert next(found) == Ping(1)
    frames.limits = Limits()
    assert [type(item) for item in found] == [Letter, Ping]
    with pytest.raises(BrokenFrame, match="the most are 0, 0 and 0"):
        list(Frames(BEFORE_HELLO).feed(word_frame(Ping(1)) + letter))


# ---- random bytes

_HEADERS: list[Header] = [
    Publish(7, 1_700_000_000_000_000, True),
    Deliver((1, 2), 3, "ann/desk", 4, 5, True),
    Forward(msgspec.Raw(b"\x92\xa2b1\x05"), "ann/desk", 1, 2, True),
    Carry("b1", "epoch", (Target("b2", 3, 1, ("ann/x", "bob/y")),), "ann/desk", 4, 5),
]
_WORDS: list[Word] = [
    Hello(1, "broker", "b1", nonce=bytes(range(32))),
    Subscribe(1, "price < 500", durable="desk", since=5),
    Occurred(1, (Item("{}", "ann/desk", 1, 2),)),
    States((State("b1", "e", 2, 0, (("b2", 1.5),), ("x > 1",), (), {"n": Durable("x", 1, 1)}),)),
    Digest((("b1", "e", 1), ("b2", "f", 2))),
    Got("b1", "e", "b2", 70_000),
    Said(b"\x91\x01"),
]


def good_frames() -> list[bytes]:
    made = [letter_frame(one, b'{"price": 450}', b"body") for one in _HEADERS]
    return made + list(map(word_frame, _WORDS))


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
        frames = Frames()
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
