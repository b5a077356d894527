"""The link over any channel: in order and exactly once in a session, at most once across sessions,
and never more memory than its limits say. The channel is a list of frames that hypothesis draws from."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import PalioError
from palio.sim.routers.links import (
    LinkFrame,
    LinkLimits,
    PacketDelivered,
    ReliableLink,
    SessionClosed,
    SessionOpened,
    Transmit,
)

LIMITS = LinkLimits(window=3, outbox=6, retry_us_min=10, retry_us_max=40)


class Pair:
    """Two ends, the frames between them, and what each got in which session."""

    def __init__(self, limits: LinkLimits = LIMITS) -> None:
        self.limits = limits
        self.now_us = 1
        self.ends: list[ReliableLink[str]] = [ReliableLink(1, limits), ReliableLink(1, limits)]
        self.frames: list[tuple[int, LinkFrame[str]]] = []  # receiver, frame
        self.got: list[list[str]] = [[], []]
        self.sent: list[dict[tuple[int, int], list[str]]] = [{}, {}]
        self.count = 0

    def act(self, side: int, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                self.frames.append((1 - side, effect.frame))
            elif isinstance(effect, PacketDelivered):
                self.got[side].append(effect.packet)
            else:
                assert isinstance(effect, SessionOpened | SessionClosed)
        for end in self.ends:
            assert end.waiting <= self.limits.outbox
            assert end.early < self.limits.window

    def send(self, side: int) -> None:
        end = self.ends[side]
        self.count += 1
        packet = f"{side}.{self.count}"
        was_open = end.is_open
        session = (end.mine, end.theirs)
        self.act(side, end.send(packet, self.now_us))
        if was_open and end.is_open:
            self.sent[side].setdefault(session, []).append(packet)

    def wake(self, side: int) -> None:
        deadline_us = self.ends[side].deadline_us
        if deadline_us is not None:
            self.now_us = max(self.now_us, deadline_us)
            self.act(side, self.ends[side].wake(self.now_us))

    def arrive(self, at: int, keep: bool) -> None:
        """The frame at this place arrives; it may arrive again later."""
        if self.frames:
            side, frame = self.frames[at % len(self.frames)]
            if not keep:
                del self.frames[at % len(self.frames)]
            self.act(side, self.ends[side].receive(frame, self.now_us))

    def restart(self, side: int) -> None:
        self.now_us += 1
        self.ends[side] = ReliableLink(self.ends[side].mine + self.now_us, self.limits)

    def finish(self) -> None:
        """The channel becomes good: nothing is lost any more."""
        for _ in range(200):
            while self.frames:
                self.arrive(0, keep=False)
            for side in (0, 1):
                self.wake(side)
            if not self.frames and all(end.deadline_us is None for end in self.ends):
                return
        raise AssertionError("the link never comes to rest")

    def final(self, side: int) -> list[str]:
        """What a side sent in the session that both ended in."""
        end = self.ends[side]
        return self.sent[side].get((end.mine, end.theirs), [])


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1)),
        st.tuples(st.just("wake"), st.integers(0, 1)),
        st.tuples(st.just("arrive"), st.integers(0, 20)),
        st.tuples(st.just("repeat"), st.integers(0, 20)),
        st.tuples(st.just("lose"), st.integers(0, 20)),
    ),
    max_size=80,
)
RESTARTS = st.tuples(st.just("restart"), st.integers(0, 1))


def happen(pair: Pair, steps: list[tuple[str, int]]) -> None:
    for verb, argument in steps:
        if verb == "send":
            pair.send(argument)
        elif verb == "wake":
            pair.wake(argument)
        elif verb == "arrive":
            pair.arrive(argument, keep=False)
        elif verb == "repeat":
            pair.arrive(argument, keep=True)
        elif verb == "restart":
            pair.restart(argument)
        elif pair.frames:
            del pair.frames[argument % len(pair.frames)]


@given(STEPS)
@settings(max_examples=300, deadline=None)
def test_everything_arrives_in_order_exactly_once(steps: list[tuple[str, int]]) -> None:
    pair = Pair(LinkLimits(window=3, outbox=1000, retry_us_min=10, retry_us_max=40))
    pair.finish()
    happen(pair, steps)
    pair.finish()
    for side in (0, 1):
        assert pair.got[1 - side] == pair.final(side)
        assert len(pair.sent[side]) <= 1


@given(st.lists(st.one_of(STEPS, st.lists(RESTARTS, max_size=1)), max_size=6))
@settings(max_examples=300, deadline=None)
def test_across_sessions_at_most_once_and_bounded(parts: list[list[tuple[str, int]]]) -> None:
    """Restarts and overflows: nothing twice, nothing out of order, and the last session is whole."""
    pair = Pair()
    for steps in parts:
        happen(pair, steps)
    pair.finish()
    assert (pair.ends[0].mine, pair.ends[0].theirs) == (pair.ends[1].theirs, pair.ends[1].mine)
    for side in (0, 1):
        got = pair.got[1 - side]
        numbers = [int(packet.partition(".")[2]) for packet in got]
        assert numbers == sorted(set(numbers))
        last = pair.final(side)
        assert got[len(got) - len(last) :] == last
    pair.send(0)
    pair.finish()
    assert pair.got[1][-1] == f"0.{pair.count}"


def test_a_full_outbox_ends_the_session() -> None:
    pair = Pair()
    pair.finish()
    for _ in range(LIMITS.outbox):
        pair.send(0)
    assert pair.ends[0].waiting == LIMITS.outbox
    pair.send(0)
    assert (pair.ends[0].is_open, pair.ends[0].waiting) == (False, 0)
    pair.send(0)
    assert pair.ends[0].waiting == 0
    pair.frames.clear()
    pair.finish()
    assert pair.got[1] == []
    pair.send(0)
    pair.finish()
    assert pair.got[1] == [f"0.{pair.count}"]


def test_no_more_than_a_window_is_in_flight() -> None:
    pair = Pair()
    pair.finish()
    for _ in range(LIMITS.outbox):
        pair.send(0)
    assert len(pair.frames) == LIMITS.window
    pair.arrive(0, keep=False)
    pair.arrive(len(pair.frames) - 1, keep=False)
    assert pair.frames[-1][1].number == LIMITS.window + 1


def test_retries_become_rarer() -> None:
    end: ReliableLink[str] = ReliableLink(1, LIMITS)
    times = []
    for _ in range(6):
        assert end.deadline_us is not None
        times.append(end.deadline_us)
        assert end.wake(end.deadline_us - 1) == []
        assert len(end.wake(end.deadline_us)) == 1
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps == [10, 20, 40, 40, 40]


def test_nothing_waits_on_a_quiet_link() -> None:
    pair = Pair()
    pair.finish()
    assert [end.deadline_us for end in pair.ends] == [None, None]
    assert pair.ends[0].wake(10**9) == []


def test_bad_numbers_get_a_sentence() -> None:
    with pytest.raises(PalioError, match="positive number"):
        ReliableLink(0)
    with pytest.raises(PalioError, match="limits of a link"):
        LinkLimits(window=5, outbox=4)
    pair = Pair()
    pair.finish()
    with pytest.raises(PalioError, match="the other end is broken"):
        pair.ends[0].receive(LinkFrame(1, 1, 7), 5)
