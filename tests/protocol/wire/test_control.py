"""Control messages: each comes back as it was, by its own tag, and fields that are added later do no harm."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidValue
from palio.protocol.wire.codes import (
    CloseCode,
    EndCode,
    Full,
    RefusalCode,
    SubscriptionKind,
    parse_full,
    parse_role,
)
from palio.protocol.wire.control import (
    POSITIONS_MAX,
    Acknowledge,
    AdvertiseRequest,
    ControlMessage,
    Credit,
    Hello,
    Ping,
    SubscribeRequest,
)
from palio.protocol.wire.frames import BrokenFrame, FrameReader, control_frame
from tests.protocol.wire.control_strategies import CONTROL_MESSAGES, structs


def read(data: bytes) -> ControlMessage:
    (found,) = FrameReader().feed(data)
    assert not isinstance(found, tuple)
    return found


@pytest.mark.parametrize("kind", CONTROL_MESSAGES, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_every_control_message_comes_back(kind: Any, data: st.DataObject) -> None:
    message = data.draw(structs(kind))
    found = read(control_frame(message))
    assert found == message
    assert type(found) is kind


def test_tags_are_different() -> None:
    assert len({kind.__struct_config__.tag for kind in CONTROL_MESSAGES}) == len(CONTROL_MESSAGES)


def sent(*plain: object) -> bytes:
    payload = msgspec.msgpack.encode(plain)
    return (1 + len(payload)).to_bytes(4, "little") + b"\0" + payload


def test_fields_with_defaults_may_be_left_out_and_unknown_ones_may_follow() -> None:
    assert read(sent("Hello", 1, "client", "ann")) == Hello(1, "client", "ann")
    assert read(sent("SubscribeRequest", 3, "x > 1")) == SubscribeRequest(3, "x > 1")
    assert read(sent("Ping", 7, "of a later version", [1, 2])) == Ping(7)


@pytest.mark.parametrize(
    "plain",
    [
        ("Ping",),
        ("Ping", -1),
        ("Ping", 2**63),
        ("Ping", 1.5),
        ("Ping", None),
        ("Credit", 1),
        ("Hello", "1", "client", "ann"),
        ("Acknowledge", 1, [1, -2]),
        ("Acknowledge", 1, 2),
        ("Digest", [["b1", "e"]]),
        ("CarryAck", "b1", "e", "b2", True),
        ("Nothing",),
        (7,),
        (),
    ],
    ids=str,
)
def test_wrong_types_are_refused(plain: tuple[object, ...]) -> None:
    with pytest.raises(BrokenFrame, match="an unknown control message"):
        read(sent(*plain))


def test_control_messages_are_values() -> None:
    with pytest.raises(AttributeError):
        Credit(1, 2).count = 3  # type: ignore[misc]
    assert Credit(1, 2) == Credit(1, 2)


def test_tags_are_part_of_the_protocol_whatever_the_classes_are_called() -> None:
    assert sorted(kind.__struct_config__.tag for kind in CONTROL_MESSAGES) == [
        "Acknowledge", "AdvertiseRequest", "Bye", "CarryAck", "Confirm", "Credit", "Digest", "Done",
        "EndQueue", "Explain", "ExplainHop", "Explained", "Forget", "ForgetDurable", "Hello",
        "HopExplained", "LinkStates", "ListQueues", "ListSubscriptions", "Missing", "MoveQueue",
        "Nack", "Occurred", "PauseQueue", "Ping", "Pong", "Published", "PurgeQueue", "Purged", "Quench",
        "QueuesListed", "Refused", "Reject", "Rejected", "RouterPacket", "Show", "Shown", "SubscribeRequest",
        "Subscribed", "SubscriptionEnded", "SubscriptionsListed", "UnadvertiseRequest", "UnsubscribeRequest", "Unsubscribed", "Wanted", "Welcome",
    ]  # fmt: skip


def test_codes_are_part_of_the_protocol() -> None:
    assert [*CloseCode] == [
        "protocol", "denied", "version", "roles", "routing", "replaced", "silent", "handshake_timeout", "displaced",
        "frame_timeout", "overload", "stopping", "failed", "store_full", "store_unreachable",
        "lease_expired", "moved", "too_many_connections", "remote",
    ]  # fmt: skip
    assert [*EndCode] == ["full", "denied", "taken_over", "forgotten", "operator", "moved"]
    assert [*SubscriptionKind] == ["live", "shared", "pattern", "durable"]
    assert [*Full] == ["block", "drop", "end"]
    assert [*RefusalCode] == [
        "invalid", "denied", "limit", "full", "conflict", "unknown", "elsewhere", "parse", "too_large",
        "predicate", "pattern",
    ]  # fmt: skip


def test_an_unknown_word_is_an_error_that_says_the_words() -> None:
    assert (parse_full(""), parse_full("end")) == (None, Full.END)
    with pytest.raises(InvalidValue, match="full is block, drop, end, not 'dorp'"):
        parse_full("dorp")
    with pytest.raises(InvalidValue, match="the role in Hello is client, broker, not 'king'"):
        parse_role("king")


@pytest.mark.parametrize(("kind", "field"), [(Acknowledge, "positions"), (AdvertiseRequest, "constraints")])  # fmt: skip
def test_a_frame_with_very_many_entries_is_not_decoded(kind: Any, field: str) -> None:
    entry = 5 if kind is Acknowledge else "x = 1"
    most = kind(1, (entry,) * POSITIONS_MAX)
    assert read(control_frame(most)) == most
    with pytest.raises(BrokenFrame, match=r"Expected `array` of length <= 65536"):
        read(control_frame(kind(1, (entry,) * (POSITIONS_MAX + 1))))
