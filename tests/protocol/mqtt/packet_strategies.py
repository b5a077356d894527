"""Strategies: every packet of both versions."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from palio.protocol.mqtt.packets import properties as table
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.values import (
    Ack,
    Auth,
    Connack,
    ConnectPacket,
    DisconnectPacket,
    Packet,
    PingRequest,
    PingResponse,
    PublishPacket,
    SubscribeAck,
    SubscribePacket,
    SubscriptionOptions,
    UnsubscribePacket,
    Version,
    Will,
)

texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)
ids = st.integers(1, 65535)
codes = st.sampled_from(ReasonCode)
qos = st.integers(0, 2)
_pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=3).map(tuple)
_identifiers = st.integers(1, 268_435_455)
_VALUES: dict[int, st.SearchStrategy[Any]] = {
    id(table._FLAG): st.integers(0, 1),
    id(table._U16): st.integers(0, 65535),
    id(table._U16_POSITIVE): ids,
    id(table._U32): st.integers(0, 2**32 - 1),
    id(table._U32_POSITIVE): st.integers(1, 2**32 - 1),
    id(table._TEXT): texts,
    id(table._BINARY): st.binary(max_size=12),
    id(table._PAIR): _pairs,
}


def properties(packet: PacketType) -> st.SearchStrategy[dict[str, Any]]:
    several = packet is PacketType.PUBLISH
    found = {}
    for _, name, kind, where in table._TABLE:
        if packet in where:
            found[name] = _VALUES.get(
                id(kind),
                st.lists(_identifiers, min_size=1, max_size=3 if several else 1).map(tuple),
            )
    drawn = st.fixed_dictionaries({}, optional=found)
    return drawn.filter(lambda p: "authentication_data" not in p or "authentication_method" in p)


def packets(version: Version) -> st.SearchStrategy[Packet]:
    new = version is Version.V5

    def own(packet: PacketType) -> st.SearchStrategy[dict[str, Any]]:
        return properties(packet) if new else st.just({})

    def ack(type: PacketType) -> st.SearchStrategy[Ack]:
        return st.builds(
            Ack, st.just(type), ids, codes if new else st.just(ReasonCode.SUCCESS), own(type)
        )

    wills = st.builds(Will, texts, st.binary(max_size=12), qos, st.booleans(), own(PacketType.WILL))
    passwords = st.binary(max_size=12)
    users = st.one_of(
        st.just((None, None)),
        st.tuples(texts, st.none() | passwords),
        *([st.tuples(st.none(), passwords)] if new else []),
    )
    connects = st.builds(
        lambda a, b, c, d, e, user: ConnectPacket(version, a, b, c, d, e, *user),
        texts, st.booleans(), st.integers(0, 65535), own(PacketType.CONNECT), st.none() | wills, users,
    )  # fmt: skip
    connack_codes = (
        codes
        if new
        else st.sampled_from(
            [ReasonCode.SUCCESS, ReasonCode.UNSUPPORTED_VERSION, ReasonCode.NOT_AUTHORIZED]
        )
    )
    publishes = st.builds(
        lambda topic, payload, q, retain, again, number, p: PublishPacket(
            topic, payload, q, retain, again and q > 0, number if q else 0, p
        ),
        texts, st.binary(max_size=300), qos, st.booleans(), st.booleans(), ids, own(PacketType.PUBLISH),
    )  # fmt: skip
    options = (
        st.builds(SubscriptionOptions, qos, st.booleans(), st.booleans(), qos)
        if new
        else st.builds(SubscriptionOptions, qos)
    )
    endings = st.tuples(codes, own(PacketType.DISCONNECT)) if new else st.just(())
    granted = codes if new else st.sampled_from([*map(ReasonCode, (0, 1, 2, 0x80))])
    several = st.lists(granted, min_size=1, max_size=3).map(tuple)
    found: list[st.SearchStrategy[Any]] = [
        connects,
        st.builds(Connack, st.booleans(), connack_codes, own(PacketType.CONNACK)),
        publishes,
        *map(ack, (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP)),
        st.builds(
            SubscribePacket,
            ids,
            st.lists(st.tuples(texts, options), min_size=1, max_size=3).map(tuple),
            own(PacketType.SUBSCRIBE),
        ),
        st.builds(
            UnsubscribePacket,
            ids,
            st.lists(texts, min_size=1, max_size=3).map(tuple),
            own(PacketType.UNSUBSCRIBE),
        ),
        st.builds(SubscribeAck, st.just(PacketType.SUBACK), ids, several, own(PacketType.SUBACK)),
        st.builds(
            SubscribeAck,
            st.just(PacketType.UNSUBACK),
            ids,
            several if new else st.just(()),
            own(PacketType.UNSUBACK),
        ),
        st.just(PingRequest()),
        st.just(PingResponse()),
        endings.map(lambda parts: DisconnectPacket(*parts)),
    ]
    if new:
        found.append(st.builds(Auth, codes, own(PacketType.AUTH)))
    return st.one_of(found)
