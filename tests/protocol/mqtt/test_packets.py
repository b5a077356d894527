"""Packets: back and forth, in any pieces; what is not a packet ends with the right reason code."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode
from palio.protocol.mqtt.packets.decoding import decode
from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.reader import PacketReader
from palio.protocol.mqtt.packets.values import ConnectPacket, PublishPacket, Version
from tests.protocol.mqtt.packet_strategies import packets

MALFORMED, PROTOCOL = ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR
versions = st.sampled_from(Version)
_CONNECT = bytes.fromhex("00044d515454 05 02 003c 00 0001 61")


@given(st.data(), versions)
def test_packets_come_back_from_their_bytes_in_any_pieces(data: st.DataObject, v: Version) -> None:
    sent = data.draw(st.lists(packets(v), max_size=5))
    text = b"".join([encode(one, v) for one in sent])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    reader, found = PacketReader(1 << 20, v), []
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += list(reader.feed(text[begin:end]))
    assert found == sent
    assert reader.waiting == 0


@given(st.data(), versions)
def test_a_packet_that_is_cut_off_is_no_packet(data: st.DataObject, v: Version) -> None:
    text = encode(data.draw(packets(v)), v)
    reader = PacketReader(1 << 20, v)
    assert not list(reader.feed(text[: data.draw(st.integers(0, len(text) - 1))]))


@given(st.data(), versions)
def test_changed_bytes_are_packets_or_packet_errors(data: st.DataObject, v: Version) -> None:
    text = bytearray(encode(data.draw(packets(v)), v))
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    _read_all(bytes(text), v)


@given(st.binary(max_size=60), versions)
def test_random_bytes_are_packets_or_packet_errors(text: bytes, v: Version) -> None:
    _read_all(text, v)


def _read_all(text: bytes, version: Version) -> None:
    reader = PacketReader(1 << 12, version)
    with suppress(PacketError):
        list(reader.feed(text))
    assert reader.waiting <= 1 << 12


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("00 00", MALFORMED),  # type 0
        ("C1 00", MALFORMED),  # flags of PINGREQ
        ("C0 01 00", MALFORMED),  # bytes that do not belong
        ("60 02 0001", MALFORMED),  # flags of PUBREL
        ("36 05 0001 61 0001", MALFORMED),  # QoS 3
        ("38 04 0001 61 00", MALFORMED),  # QoS 0, duplicate
        ("32 06 0001 61 0000 00", PROTOCOL),  # packet id 0
        ("30 04 0001 FF 00", MALFORMED),  # UTF-8
        ("30 04 0001 00 00", MALFORMED),  # U+0000
        ("30 06 0003 EDA080 00", MALFORMED),  # a surrogate
        ("30 04 0005 61 00", MALFORMED),  # a text beyond the packet
        ("30 04 0001 61 80", MALFORMED),  # a length that is cut off
        ("30 08 0001 61 04 0101 0101", PROTOCOL),  # a property that comes twice
        ("30 06 0001 61 02 0102", PROTOCOL),  # a flag of 2
        ("30 06 0001 61 02 7F00", MALFORMED),  # no such property
        ("30 08 0001 61 04 13003C 00", PROTOCOL),  # a property of CONNACK
        ("30 06 0001 61 02 0B00", PROTOCOL),  # subscription identifier 0
        ("30 06 0001 61 05 0101", MALFORMED),  # properties beyond the packet
        ("82 03 0001 00", PROTOCOL),  # no topic filter
        ("82 07 0001 00 0001 61 40", MALFORMED),  # a reserved option
        ("82 07 0001 00 0001 61 03", MALFORMED),  # QoS 3
        ("82 07 0001 00 0001 61 30", PROTOCOL),  # retain handling 3
        ("A2 03 0001 00", PROTOCOL),
        ("E0 01 7F", PROTOCOL),  # no such reason code
        ("30 8000", MALFORMED),  # a length in more bytes than it needs
        ("30 FFFFFFFF01", MALFORMED),  # a length of five bytes
        ("30 FFFFFF7F", ReasonCode.PACKET_TOO_LARGE),
    ],
)
def test_hostile_bytes_end_with_the_right_code(text: str, code: ReasonCode) -> None:
    with pytest.raises(PacketError) as raised:
        list(PacketReader(1 << 16).feed(bytes.fromhex(text)))
    assert raised.value.code is code


def test_a_large_packet_is_refused_before_it_is_kept() -> None:
    reader = PacketReader(1000)
    with pytest.raises(PacketError) as raised:
        list(reader.feed(bytes.fromhex("30 E807")))  # 1,000 and its head
    assert raised.value.code is ReasonCode.PACKET_TOO_LARGE
    assert reader.waiting == 0


@pytest.mark.parametrize(
    ("at", "value", "code"),
    [
        (6, 3, ReasonCode.UNSUPPORTED_VERSION),
        (2, 0x6E, ReasonCode.UNSUPPORTED_VERSION),
        (7, 0x03, MALFORMED),  # the reserved flag
        (7, 0x0A, MALFORMED),  # QoS of a will that is not there
        (7, 0x1E, MALFORMED),  # QoS 3 of the will
    ],
)
def test_a_connect_that_is_not_one(at: int, value: int, code: ReasonCode) -> None:
    text = bytearray(_CONNECT)
    assert isinstance(decode(0x10, bytes(text), Version.V5), ConnectPacket)
    text[at] = value
    with pytest.raises(PacketError) as raised:
        decode(0x10, bytes(text), Version.V5)
    assert raised.value.code is code


def test_the_version_is_that_of_connect() -> None:
    hello = encode(ConnectPacket(Version.V311, "a", True, 60), Version.V311)
    message = encode(PublishPacket("t", b"x"), Version.V311)
    assert list(PacketReader(1 << 16).feed(hello + message))[1] == PublishPacket("t", b"x")
