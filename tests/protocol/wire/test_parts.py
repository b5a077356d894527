"""Parts: no control message is larger than every receiver takes, and parts joined are what was split."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidValue, LimitExceeded, PalioError, ParseError
from palio.protocol.broker import explain
from palio.protocol.broker.access import Forbidden
from palio.protocol.broker.effects import Close, Output
from palio.protocol.client.subscription_state import ACKNOWLEDGED_MAX
from palio.protocol.policies.state_parts import state_parts
from palio.protocol.wire import control, parts, queue_control
from palio.protocol.wire.codes import CloseCode, EndCode, Full, SubscriptionKind
from palio.protocol.wire.control import (
    ControlMessage,
    Durable,
    Explained,
    Hop,
    LinkState,
    LinkStates,
    Occurred,
    PatternItem,
    Place,
    RouterPacket,
    Shown,
)
from palio.protocol.wire.frames import BEFORE_HELLO, FrameReader, Limits, control_frame
from palio.protocol.wire.handshake import NAME_MAX, TOKEN_BYTES_MAX
from palio.protocol.wire.parts import (
    CONTROL_BYTES_MIN,
    PART_BYTES,
    TEXT_BYTES_MAX,
    AnswerParts,
    check_request,
    cut,
    digest_parts,
    explained_parts,
    missing_parts,
    occurred_parts,
    packet_parts,
    shown_parts,
)
from palio.protocol.wire.refusals import refused
from tests.protocol.wire.control_strategies import CONTROL_MESSAGES

N = 2**63 - 1
NAME = "\U0001f4ee" * NAME_MAX
"""The longest name: four bytes for each character."""
NAMES = [f"{i:03}{NAME[3:]}" for i in range(1000)]
PUBLISHER = f"{NAME}/{NAME}"
LONG = "\U0001f4ee" * 1_000_000
TEXT = "x" * TEXT_BYTES_MAX
DURABLE = "d" * 255

EDGE = Limits(control=CONTROL_BYTES_MIN)
"""The least that an operator may configure."""


def reason() -> str:
    return cut(LONG)


def said(output: Output) -> list[ControlMessage]:
    (frames,) = output.take(None).writes.values()
    return list(FrameReader(EDGE).feed(b"".join(frames)))  # type: ignore[arg-type]


def bye() -> list[ControlMessage]:
    output = Output()
    output.close(1, Close(CloseCode.PROTOCOL, LONG))
    return said(output)


def states() -> list[ControlMessage]:
    whole = LinkState(
        *(NAME, "e" * 16, N, 0, tuple((name, 1.5) for name in NAMES)),
        wanted=(TEXT, TEXT[1:], *(f"x = {i}" for i in range(30_000))),
        durable={f"{name}/{DURABLE}": Durable(TEXT, N, N) for name in NAMES[:3]}
        | {f"n{i}": Durable("x > 1", N, N) for i in range(10_000)},
    )
    return [LinkStates((part,)) for part in state_parts(whole)]


def explanation() -> list[ControlMessage]:
    delivers = explain.bounded(((f"{PUBLISHER}#{N}", LONG) for _ in range(2000)), "", str)
    hop = Hop(NAME, NAME, delivers, tuple((name, "reason") for name in NAMES[:100]))
    return [control.HopExplained(N, NAME, hop), *explained_parts(N, [hop] * 9, NAMES)]


# What a sender makes at most, of each type. Requests are what `check_request` lets through.
QUEUE = f"{NAME}/{DURABLE}"

WORST: dict[Any, Any] = {
    control.Ping: lambda: [control.Ping(N)],
    control.Pong: lambda: [control.Pong(N)],
    control.Bye: bye,
    control.Credit: lambda: [control.Credit(N, N)],
    control.Hello: lambda: [control.Hello(N, "broker", NAME, "t" * TOKEN_BYTES_MAX, b"n" * 32)],
    control.Welcome: lambda: [control.Welcome(N, NAME, NAME, N, N, b"n" * 32, b"p" * 32, N)],
    control.Confirm: lambda: [control.Confirm(b"p" * 32, N)],
    control.SubscribeRequest: lambda: [
        control.SubscribeRequest(N, TEXT, "", DURABLE, N, DURABLE, N, "block")
    ],
    control.UnsubscribeRequest: lambda: [control.UnsubscribeRequest(N, True)],
    control.Acknowledge: lambda: [control.Acknowledge(N, (N,) * ACKNOWLEDGED_MAX)],
    control.Reject: lambda: [
        control.Reject(N, (N,) * control.NACKED_MAX, "\x7f" * control.REJECTION_MAX)
    ],
    control.Nack: lambda: [control.Nack(N, (N,) * control.NACKED_MAX, control.DELAY_US_MAX)],
    control.AdvertiseRequest: lambda: [control.AdvertiseRequest(N, (TEXT,))],
    control.UnadvertiseRequest: lambda: [control.UnadvertiseRequest(N)],
    control.Quench: lambda: [control.Quench(N, True)],
    control.Explain: lambda: [control.Explain(N, "x" * explain.ATTRIBUTES_BYTES_MAX, DURABLE)],
    control.Show: lambda: [control.Show(N)],
    control.Forget: lambda: [control.Forget(N, NAME)],
    queue_control.ListQueues: lambda: [queue_control.ListQueues(N, N, QUEUE)],
    queue_control.ListSubscriptions: lambda: [queue_control.ListSubscriptions(N, N)],
    queue_control.PauseQueue: lambda: [queue_control.PauseQueue(N, QUEUE, True)],
    queue_control.PurgeQueue: lambda: [queue_control.PurgeQueue(N, QUEUE)],
    queue_control.EndQueue: lambda: [queue_control.EndQueue(N, QUEUE)],
    queue_control.MoveQueue: lambda: [queue_control.MoveQueue(N, QUEUE, NAME)],
    queue_control.ForgetDurable: lambda: [queue_control.ForgetDurable(N, DURABLE)],
    queue_control.Purged: lambda: [queue_control.Purged(N, N)],
    queue_control.QueuesListed: lambda: [
        queue_control.QueuesListed(
            N,
            tuple(
                queue_control.QueueRow(
                    QUEUE, NAME, "x" * 2000, N, N, N, N, Full.BLOCK, True, DURABLE
                )
                for _ in range(100)
            ),
            N,
        )
    ],
    queue_control.SubscriptionsListed: lambda: [
        queue_control.SubscriptionsListed(
            N,
            tuple(
                queue_control.SubscriptionRow(
                    NAME, NAME, N, SubscriptionKind.DURABLE, "x" * 2000, N, N, QUEUE, DURABLE, True
                )
                for _ in range(100)
            ),
            N,
        )
    ],
    control.Subscribed: lambda: [control.Subscribed(N, N, N, N)],
    control.Unsubscribed: lambda: [control.Unsubscribed(N)],
    control.SubscriptionEnded: lambda: [control.SubscriptionEnded(N, reason(), EndCode.FULL)],
    control.Published: lambda: [control.Published(N)],
    control.Rejected: lambda: [control.Rejected(N, reason())],
    control.Refused: lambda: [
        refused(N, PalioError(LONG)),
        refused(N, Forbidden(LONG)),
        refused(N, ParseError(LONG, LONG)),
        refused(N, LimitExceeded(LONG, LONG[:10_000])),
    ],
    control.Done: lambda: [control.Done(N)],
    control.Wanted: lambda: [control.Wanted("x" * (256 << 10))],
    control.Occurred: lambda: occurred_parts(
        N, [PatternItem("a" * (64 << 10), PUBLISHER, N, N)] * 64
    ),
    control.Explained: lambda: explanation()[1:],
    control.Shown: lambda: shown_parts(
        N, [Place(name, tuple((other, 1.5) for other in NAMES), N, N, True) for name in NAMES[:5]]
    ),
    control.Digest: lambda: digest_parts((name, "e" * 16, N) for name in NAMES * 3),
    control.LinkStates: states,
    control.Missing: lambda: missing_parts(NAMES * 3),
    control.RouterPacket: lambda: packet_parts(b"x" * (3 << 20)),
    control.CarryAck: lambda: [control.CarryAck(NAME, "e" * 16, NAME, N)],
    control.ExplainHop: lambda: [
        control.ExplainHop(
            *(N, NAME, NAME, "x" * explain.ATTRIBUTES_BYTES_MAX, "s" * 2000),
            msgspec.Raw(msgspec.msgpack.encode("r" * (33 << 10))),
        )
    ],
    control.HopExplained: lambda: explanation()[:1],
}


def test_no_type_is_forgotten() -> None:
    assert set(WORST) == set(CONTROL_MESSAGES)


@pytest.mark.parametrize("kind", CONTROL_MESSAGES, ids=lambda kind: kind.__name__)
def test_the_largest_of_each_type_is_taken_by_every_receiver(kind: Any) -> None:
    made = WORST[kind]()
    for message in made:
        assert list(FrameReader(EDGE).feed(control_frame(message))) == [message]
        assert type(message) is kind


@pytest.mark.parametrize("kind", [control.Hello, control.Welcome, control.Confirm, control.Bye])
def test_a_handshake_is_taken_before_hello(kind: Any) -> None:
    for message in WORST[kind]():
        assert list(FrameReader(BEFORE_HELLO).feed(control_frame(message)))


def test_a_request_that_no_broker_takes_is_an_error() -> None:
    check_request("the subscription", control.SubscribeRequest(1, TEXT))
    with pytest.raises(InvalidValue, match=r"the subscription has 1,100,0.. bytes; brokers take"):
        check_request("the subscription", control.SubscribeRequest(1, "x" * 1_100_000))


texts = st.text(max_size=12) | st.text("é", min_size=0, max_size=60)
hops = st.builds(
    Hop, texts, texts, st.lists(st.tuples(texts, texts), max_size=4).map(tuple), st.just(())
)
places = st.builds(
    Place, texts, st.lists(st.tuples(texts, st.just(1.0)), max_size=8).map(tuple), st.just(1), st.just(2),
    st.just(True),
)  # fmt: skip
items = st.builds(PatternItem, texts, texts, st.just(1), st.just(2))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(hops, max_size=9), st.lists(texts, max_size=9),
    st.lists(places, max_size=9, unique_by=lambda place: place.broker),
    st.lists(items, max_size=9),
)  # fmt: skip
def test_answers_in_parts_are_whole_again(hops: Any, silent: Any, places: Any, items: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_BYTES", 300)
        for made, whole in (
            (explained_parts(7, hops, silent), Explained(7, tuple(hops), tuple(silent))),
            (shown_parts(7, places), Shown(7, tuple(places))),
            (occurred_parts(7, items), Occurred(7, tuple(items))),
        ):
            collected = AnswerParts()
            found = [collected.whole(part) for part in made]  # type: ignore[arg-type]
            assert found[:-1] == [None] * (len(made) - 1)
            assert found[-1] == whole
            largest = max(len(control_frame(part)) for part in made)
            assert largest < 1000


def test_two_pieces_of_one_place_in_one_part_are_joined() -> None:
    some, more = (("a", 1.0), ("b", 2.0)), (("c", 3.0),)
    pieces = Shown(7, (Place("x", some, 1, 2, True), Place("x", more, 1, 2, True)))
    assert AnswerParts().whole(pieces) == Shown(7, (Place("x", some + more, 1, 2, True),))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=2000), st.lists(st.tuples(texts, texts, st.integers(0, 9)), max_size=20))
def test_packets_and_digests_in_parts(packet: bytes, known: list[tuple[str, str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_BYTES", 300)
        some: list[RouterPacket] = packet_parts(packet)
        assert b"".join(one.packet for one in some) == packet
        assert [one.more for one in some] == [True] * (len(some) - 1) + [False] * bool(some)
        digests = digest_parts(known)
        assert [entry for one in digests for entry in one.known] == known
        assert [one.more for one in digests] == [True] * (len(digests) - 1) + [False]
        assert [name for one in missing_parts(n for n, _, _ in known) for name in one.brokers] == [
            name for name, _, _ in known
        ]


def test_an_answer_that_is_not_finished_goes_with_the_connection() -> None:
    collected = AnswerParts()
    assert collected.whole(Shown(1, (Place("a", (), 0, 0, True),), more=True)) is None
    collected.clear()
    assert collected.whole(Shown(1, ())) == Shown(1, ())


def test_parts_are_small() -> None:
    made = [*WORST[control.Digest](), *WORST[control.RouterPacket](), *WORST[control.Missing]()]
    assert max(len(control_frame(message)) for message in made) <= PART_BYTES + 1000
