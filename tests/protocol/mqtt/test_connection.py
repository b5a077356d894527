"""Connections of MQTT at a broker: the specification, statement by statement."""

from __future__ import annotations

from typing import Any

import pytest

from palio.model.language import parse
from palio.protocol.broker.access import EVERYTHING, Access, Identity, token_hash
from palio.protocol.broker.schemas import MessageSchema
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.values import (
    Ack,
    DisconnectPacket,
    PingRequest,
    PingResponse,
    PublishPacket,
    SubscriptionOptions,
    UnsubscribePacket,
    Version,
    Will,
)
from palio.protocol.mqtt.settings import MqttSettings
from tests.protocol.mqtt.mqtt_exchange import one_broker

_SECOND = 1_000_000


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_arrives_with_its_qos(version: Version, qos: int) -> None:
    exchange = one_broker()
    reader = exchange.mqtt(client_id="r", version=version)
    writer = exchange.mqtt(client_id="w", version=version)
    assert reader.connack.code is ReasonCode.SUCCESS
    assert reader.subscribe("a/+") == (ReasonCode.GRANTED_QOS_2,)
    writer.publish("a/b", b"hello", qos)
    writer.publish("b/b", b"not this", qos)
    (got,) = reader.all(PublishPacket)
    assert (got.topic, got.payload, got.qos, got.retain) == ("a/b", b"hello", qos, False)
    answers = [[], [PacketType.PUBACK], [PacketType.PUBREC, PacketType.PUBCOMP]][qos]
    assert sorted([one.type for one in writer.all(Ack)]) == sorted(2 * answers)
    assert not reader.mqtt.delivering.session.in_flight


@pytest.mark.parametrize(("sent", "asked"), [(2, 1), (1, 2), (2, 0), (0, 2)])
def test_the_lower_qos_counts(sent: int, asked: int) -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    client.subscribe("t", qos=asked)
    client.publish("t", b"", sent)
    assert [one.qos for one in client.all(PublishPacket)] == [min(sent, asked)]


def test_native_and_mqtt_clients_see_each_others_messages() -> None:
    exchange = one_broker()
    native, client = exchange.client("a", "n"), exchange.mqtt()
    id = native.session.subscriptions.subscribe("topic_1 = 'a' AND temp > 20")
    exchange.run()
    client.subscribe("a/#")
    client.publish("a/b", b'{"temp": 21.5}', content_type="application/json")
    client.publish("a/b", b'{"temp": 19.5}', content_type="application/json")
    native.publish({"topic": "a", "topic_1": "a", "topic_levels": 1}, b"from afar")
    native.publish({"x": 1}, b"no topic")
    exchange.run()
    assert [one["temp"] for one in native.got(id)] == [21.5]
    assert client.payloads == [b'{"temp": 21.5}', b'{"temp": 19.5}', b"from afar"]


@pytest.mark.parametrize(
    ("topic_filter", "where"), [("a/+?temp > 25", ""), ("a/+", "temp > 25"), ("a/+?temp > 20", "temp > 25")]
)  # fmt: skip
def test_content_selects(topic_filter: str, where: str) -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    client.subscribe(topic_filter, user=(("$where", where),) if where else ())
    for temp in (20, 25, 30):
        client.publish("a/b", str(temp).encode(), user=(("temp", "x"), ("place", "y")))
        client.publish("a/b", b'{"temp": %d}' % temp, content_type="application/json")
    assert client.payloads == [b'{"temp": 30}']


def test_a_condition_that_is_none_is_refused_with_the_reason() -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    assert client.subscribe("a?temp >", "b") == (
        ReasonCode.INVALID_TOPIC_FILTER,
        ReasonCode.GRANTED_QOS_2,
    )
    assert client.subscribe("a?x = 1) OR (y = 1") == (ReasonCode.INVALID_TOPIC_FILTER,)


def test_properties_come_with_the_message() -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    client.subscribe("t")
    properties: dict[str, Any] = {
        "payload_format": 1, "content_type": "text/plain", "response_topic": "answers",
        "correlation_data": b"7", "user": (("a", "1"), ("a", "2")), "message_expiry": 100,
    }  # fmt: skip
    client.publish("t", b"x", 1, **properties)
    assert client.all(PublishPacket)[0].properties == properties


def test_a_message_expires_and_tells_how_long_it_lives() -> None:
    exchange = one_broker()
    client = exchange.mqtt(properties={"session_expiry": 100})
    client.subscribe("t")
    client.leave()
    other = exchange.mqtt(client_id="w")
    other.publish("t", b"short", 1, message_expiry=2)
    other.publish("t", b"long", 1, message_expiry=9)
    exchange.advance(3 * _SECOND)
    client = exchange.mqtt(clean_start=False)
    assert client.connack.session_present
    assert client.payloads == [b"long"]
    assert client.all(PublishPacket)[0].properties["message_expiry"] == 6


def test_overlapping_subscriptions_give_one_packet_with_all_identifiers() -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    client.subscribe("t", qos=0, subscription_identifier=(5,))
    client.subscribe("#", qos=1, subscription_identifier=(7,))
    client.publish("t", b"x", 2)
    (got,) = client.all(PublishPacket)
    assert got.qos == 1
    assert set(got.properties["subscription_identifier"]) == {5, 7}


def test_no_local_and_retain_as_published() -> None:
    exchange = one_broker()
    one, two = exchange.mqtt(client_id="1"), exchange.mqtt(client_id="2")
    one.subscribe("t", options=SubscriptionOptions(2, no_local=True))
    two.subscribe("t", options=SubscriptionOptions(2, retain_as_published=True))
    one.publish("t", b"x", 1, retain=True)
    assert not one.payloads
    assert two.all(PublishPacket)[0].retain


def test_an_unsubscribed_filter_gets_nothing() -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    client.subscribe("t")
    client.send(UnsubscribePacket(9, ("t", "other")))
    client.publish("t", b"x", 1)
    assert not client.payloads


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (PublishPacket("a/#", b""), ReasonCode.INVALID_TOPIC_NAME),
        (PublishPacket("", b""), ReasonCode.INVALID_TOPIC_NAME),
        (PublishPacket("t", b"", properties={"topic_alias": 0}), ReasonCode.INVALID_TOPIC_ALIAS),
        (PublishPacket("t", b"", properties={"topic_alias": 101}), ReasonCode.INVALID_TOPIC_ALIAS),
        (PublishPacket("", b"", properties={"topic_alias": 1}), ReasonCode.INVALID_TOPIC_ALIAS),
        (PublishPacket("t", b"", properties={"response_topic": "+"}), ReasonCode.PROTOCOL_ERROR),
        (PublishPacket("t", b"", properties={"subscription_identifier": (1,)}), ReasonCode.PROTOCOL_ERROR),
        (PingResponse(), ReasonCode.PROTOCOL_ERROR),
        (DisconnectPacket(properties={"session_expiry": 5}), ReasonCode.PROTOCOL_ERROR),
    ],
)  # fmt: skip
def test_what_must_not_come_ends_the_connection_with_its_code(
    packet: PublishPacket, code: ReasonCode
) -> None:
    client = one_broker().mqtt()
    client.send(packet)
    assert client.end is code


def test_bytes_that_are_no_packet_end_the_connection() -> None:
    client = one_broker().mqtt()
    client.send_bytes(b"\x00\x00")
    assert client.end is ReasonCode.MALFORMED_PACKET


def test_receive_maximum_of_the_server() -> None:
    exchange = one_broker(MqttSettings(receive_maximum=2))
    client = exchange.mqtt()
    client.answers = False
    assert client.connack.properties["receive_maximum"] == 2
    for id in (1, 2):
        client.send(PublishPacket("t", b"", 2, packet_id=id))
    client.send(PublishPacket("t", b"", 2, duplicate=True, packet_id=2))
    assert client.end is None
    client.send(PublishPacket("t", b"", 2, packet_id=3))
    assert client.end is ReasonCode.RECEIVE_MAXIMUM_EXCEEDED


def test_receive_maximum_of_the_client() -> None:
    exchange = one_broker()
    client = exchange.mqtt(properties={"receive_maximum": 2})
    client.subscribe("t")
    client.answers = False
    for number in range(4):
        exchange.mqtt(client_id="w").publish("t", b"%d" % number, 1)
    assert client.payloads == [b"0", b"1"]
    client.send(Ack(PacketType.PUBACK, client.all(PublishPacket)[0].packet_id))
    assert client.payloads == [b"0", b"1", b"2"]


def test_a_qos_2_message_that_is_sent_twice_is_published_once() -> None:
    exchange = one_broker()
    client, reader = exchange.mqtt(), exchange.mqtt(client_id="r")
    reader.subscribe("t")
    client.answers = False
    packet = PublishPacket("t", b"x", 2, packet_id=7)
    client.send(packet, packet)
    client.send(packet)
    client.send(Ack(PacketType.PUBREL, 7))
    assert reader.payloads == [b"x"]
    assert client.acks(PacketType.PUBCOMP)[0].code is ReasonCode.SUCCESS
    client.send(Ack(PacketType.PUBREL, 7))
    assert client.acks(PacketType.PUBCOMP)[1].code is ReasonCode.PACKET_ID_NOT_FOUND


def test_topic_aliases_both_ways() -> None:
    exchange = one_broker()
    client = exchange.mqtt(properties={"topic_alias_maximum": 1})
    client.subscribe("#")
    client.publish("a", b"1", topic_alias=3)
    client.publish("", b"2", topic_alias=3)
    client.publish("b", b"3", topic_alias=3)
    client.publish("", b"4", topic_alias=3)
    got = [(one.topic, one.properties.get("topic_alias")) for one in client.all(PublishPacket)]
    assert got == [("a", 1), ("", 1), ("b", None), ("b", None)]


def test_a_packet_larger_than_the_client_takes_is_left_out() -> None:
    exchange = one_broker()
    client = exchange.mqtt(properties={"maximum_packet_size": 50})
    client.subscribe("t")
    client.publish("t", b"x" * 50, 1)
    client.publish("t", b"y" * 20, 1)
    assert client.payloads == [b"y" * 20]


def test_silence_ends_the_connection_after_one_and_a_half_keep_alives() -> None:
    exchange = one_broker(MqttSettings(keepalive_s_max=10))
    client = exchange.mqtt(keep_alive_s=100)
    assert client.connack.properties["server_keep_alive"] == 10
    exchange.advance(14 * _SECOND)
    client.send(PingRequest())
    assert client.all(PingResponse)
    exchange.advance(14 * _SECOND)
    assert client.end is None
    exchange.advance(2 * _SECOND)
    assert client.end is ReasonCode.KEEP_ALIVE_TIMEOUT


def test_a_newer_connection_takes_over() -> None:
    exchange = one_broker()
    old = exchange.mqtt()
    new = exchange.mqtt()
    assert old.end is ReasonCode.SESSION_TAKEN_OVER
    assert new.end is None
    new.subscribe("t")
    new.publish("t", b"x")
    assert new.payloads == [b"x"]


def test_a_client_without_an_id_gets_one() -> None:
    client = one_broker().mqtt(client_id="")
    assert client.connack.properties["assigned_client_id"].startswith("new-")


def test_who_may_not_connect_is_told() -> None:
    exchange = one_broker(access=Access())
    client = exchange.mqtt(user_name="ann", password=b"wrong")
    assert client.connack.code is ReasonCode.NOT_AUTHORIZED
    client = exchange.mqtt(user_name="ann", password=b"wrong", version=Version.V311)
    assert client.connack.code is ReasonCode.NOT_AUTHORIZED


def people() -> Access:
    """Their tokens are their names."""
    names = ("ann", "eve")
    return Access({token_hash(name): Identity(name, EVERYTHING, EVERYTHING) for name in names})


@pytest.mark.parametrize("version", Version)
def test_the_user_name_is_that_of_the_token(version: Version) -> None:
    exchange = one_broker(access=people())
    for user, code in (
        ("ann", ReasonCode.SUCCESS),
        ("eve", ReasonCode.BAD_USER_NAME_OR_PASSWORD), ("bob", ReasonCode.BAD_USER_NAME_OR_PASSWORD),
    ):  # fmt: skip
        client = exchange.mqtt(user_name=user or None, password=b"ann", version=version)
        assert client.connack.code is code
        assert (client.link in exchange.mqtt_clients) is (code is ReasonCode.SUCCESS)
    client = exchange.mqtt(user_name="ann", password=b"\xff", version=version)
    assert client.connack.code is ReasonCode.BAD_USER_NAME_OR_PASSWORD


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"client_id": "x" * 1025}, ReasonCode.INVALID_CLIENT_ID),
        ({"properties": {"authentication_method": "k"}}, ReasonCode.BAD_AUTHENTICATION_METHOD),
        ({"will": Will("a/+", b"", 0, False, {})}, ReasonCode.INVALID_TOPIC_NAME),
        ({"password": b"x" * 60_000}, ReasonCode.BAD_USER_NAME_OR_PASSWORD),
    ],
)
def test_who_says_connect_wrongly_is_told(fields: dict[str, Any], code: ReasonCode) -> None:
    client = one_broker().mqtt(**fields)
    assert client.connack.code is code
    assert client.connack.properties["reason_string"]


def test_a_condition_is_bounded_in_bytes() -> None:
    exchange = one_broker(MqttSettings(condition_bytes_max=40))
    client = exchange.mqtt()
    quota = (ReasonCode.QUOTA_EXCEEDED,)
    assert client.subscribe("a?x = '" + "e" * 30 + "'") == (ReasonCode.GRANTED_QOS_2,)
    assert client.subscribe("a?x = '" + "é" * 30 + "'") == quota
    where = (("$where", "x = '" + "é" * 8 + "'"),)
    assert client.subscribe("a?x = '" + "é" * 8 + "'", user=where) == quota


def test_a_condition_may_end_with_a_comment() -> None:
    client = one_broker().mqtt()
    found = client.subscribe("a?x > 1 -- one", user=(("$where", "y > 1 -- two"),))
    assert found == (ReasonCode.GRANTED_QOS_2,)
    for x, y in ((1, 2), (2, 1), (2, 2)):
        payload = b'{"x": %d, "y": %d}' % (x, y)
        client.publish("a", payload, content_type="application/json")
    assert client.payloads == [b'{"x": 2, "y": 2}']


def test_a_client_that_asks_is_told_where_replies_to_it_go() -> None:
    exchange = one_broker(access=people())
    ann = {"password": b"ann"}
    asks = {"request_response_information": 1}
    told = [
        exchange.mqtt(client_id=id, properties=asks, **ann).connack.properties
        for id in ("a", "b", "a")
    ]
    topics = [one["response_information"] for one in told]
    assert topics[0] == topics[2] != topics[1]
    assert all(topic.startswith("replies/ann/") for topic in topics)
    for more in ({}, {"request_response_information": 0}):
        client = exchange.mqtt(properties=more, **ann)
        assert "response_information" not in client.connack.properties
    client = exchange.mqtt(version=Version.V311, user_name="ann", **ann)
    assert not client.connack.properties


def test_a_message_that_a_schema_refuses_has_a_code_of_its_own() -> None:
    """And so have one that a grant refuses, and one that makes no sense."""
    schema = MessageSchema(
        parse("topic = 'order'"), lambda found: None if "id" in found else "no id"
    )
    identity = Identity("anonymous", EVERYTHING, parse("topic != 'secret'"))
    exchange = one_broker(access=Access(anonymous=identity), schemas={"orders": schema})
    client = exchange.mqtt()
    json = {"content_type": "application/json"}
    for qos, kind in ((1, PacketType.PUBACK), (2, PacketType.PUBREC)):
        client.packets.clear()
        client.publish("order", b'{"id": 1}', qos, **json)
        client.publish("order", b"{}", qos, **json)
        client.publish("secret", b"", qos)
        assert [one.code for one in client.acks(kind)] == [
            ReasonCode.SUCCESS, ReasonCode.INVALID_PAYLOAD_FORMAT, ReasonCode.NOT_AUTHORIZED,
        ]  # fmt: skip
        refused = client.acks(kind)[1]
        assert "no id" in refused.properties["reason_string"]


@pytest.mark.parametrize("kept", [0, 50])
def test_messages_wait_while_all_packet_ids_are_in_use(kept: int) -> None:
    exchange = one_broker()
    client = exchange.mqtt(properties={"session_expiry": kept})
    client.subscribe("t")
    session = client.mqtt.delivering.session
    session.reserved.update(range(1, 65_535))
    client.answers = False
    for number in range(3):
        client.publish("t", b"%d" % number, 2)
    (first,) = client.all(PublishPacket)
    assert first.packet_id == 65_535
    client.send(Ack(PacketType.PUBREC, first.packet_id))
    client.send(Ack(PacketType.PUBCOMP, first.packet_id))
    assert [one.packet_id for one in client.all(PublishPacket)] == [65_535] * 2
    session.reserved.clear()
    client.send(Ack(PacketType.PUBREC, first.packet_id))
    client.send(Ack(PacketType.PUBCOMP, first.packet_id))
    assert client.payloads == [b"0", b"1", b"2"]
