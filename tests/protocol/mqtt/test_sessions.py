"""What outlives connections: wills, sessions, shared subscriptions, retained messages, restarts."""

from __future__ import annotations

import pytest

from palio.model.language import parse
from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.durability.bounds import LastValueBounds
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.values import (
    Ack,
    DisconnectPacket,
    PublishPacket,
    SubscriptionOptions,
    UnsubscribePacket,
    Will,
)
from tests.protocol.mqtt.mqtt_exchange import one_broker

_SECOND = 1_000_000


def test_a_will_is_published_when_the_connection_is_lost_and_not_when_it_is_left() -> None:
    exchange = one_broker()
    reader = exchange.mqtt(client_id="r")
    reader.subscribe("wills")
    will = Will("wills", b"gone", 1)
    exchange.mqtt(will=will).leave()
    assert not reader.payloads
    exchange.mqtt(will=will).leave(ReasonCode.DISCONNECT_WITH_WILL)
    exchange.mqtt(will=will).lose()
    assert reader.payloads == [b"gone", b"gone"]


def test_a_delayed_will_waits_for_the_client_or_the_end_of_its_session() -> None:
    exchange = one_broker()
    reader = exchange.mqtt(client_id="r", keep_alive_s=0)
    reader.subscribe("wills")
    will = Will("wills", b"gone", properties={"will_delay": 5})
    exchange.mqtt(will=will, properties={"session_expiry": 10}).lose()
    exchange.advance(3 * _SECOND)
    again = exchange.mqtt(will=will, properties={"session_expiry": 10}, clean_start=False)
    again.lose()
    exchange.advance(4 * _SECOND)
    assert not reader.payloads
    exchange.advance(2 * _SECOND)
    assert reader.payloads == [b"gone"]
    exchange.mqtt(client_id="d", will=will, properties={"session_expiry": 2}).lose()
    exchange.advance(3 * _SECOND)
    assert reader.payloads == [b"gone"] * 2


def test_a_session_stays_until_it_expires() -> None:
    exchange = one_broker()
    kept = {"session_expiry": 5}
    client = exchange.mqtt(properties=kept)
    client.subscribe("t", qos=1)
    client.lose()
    writer = exchange.mqtt(client_id="w", keep_alive_s=0)
    writer.publish("t", b"1", 1)
    exchange.advance(3 * _SECOND)
    client = exchange.mqtt(clean_start=False, properties=kept)
    assert client.connack.session_present
    assert client.payloads == [b"1"]
    client.lose()
    exchange.advance(6 * _SECOND)
    writer.publish("t", b"2", 1)
    client = exchange.mqtt(clean_start=False, properties=kept)
    assert not client.connack.session_present
    assert not client.payloads
    client.leave()
    client.exchange.run()
    assert not exchange.brokers["a"].snapshot().queues.count


def test_a_session_that_ends_with_its_connection_misses_what_comes_meanwhile() -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    client.subscribe("t", qos=2)
    client.lose()
    exchange.mqtt(client_id="w").publish("t", b"1", 2)
    client = exchange.mqtt(clean_start=False)
    assert not client.connack.session_present
    client.subscribe("t", qos=2)
    assert not client.payloads
    client.publish("t", b"2", 2)
    assert client.payloads == [b"2"]


def test_what_was_not_acknowledged_comes_again_with_its_packet_id() -> None:
    exchange = one_broker()
    kept = {"session_expiry": 50}
    client = exchange.mqtt(properties=kept)
    client.subscribe("t")
    client.answers = False
    client.publish("t", b"1", 1)
    client.publish("t", b"2", 2)
    client.publish("t", b"3", 2)
    first = {one.payload: one.packet_id for one in client.all(PublishPacket)}
    client.send(Ack(PacketType.PUBREC, first[b"3"]))
    client.lose()
    client = exchange.mqtt(clean_start=False, properties=kept)
    again = {one.payload: (one.packet_id, one.duplicate) for one in client.all(PublishPacket)}
    assert again == {b"1": (first[b"1"], True), b"2": (first[b"2"], True)}
    assert Ack(PacketType.PUBREL, first[b"3"]) in client.all(Ack)
    assert not client.mqtt.delivering.session.in_flight
    client.lose()
    client = exchange.mqtt(clean_start=False, properties=kept)
    assert not client.payloads


@pytest.mark.parametrize("kept", [0, 50])
def test_shared_subscriptions_share(kept: int) -> None:
    exchange = one_broker()
    members = [exchange.mqtt(client_id=name, properties={"session_expiry": kept}) for name in "xy"]
    for one in members:
        one.subscribe("$share/g/t/#")
    for number in range(10):
        members[0].publish("t/a", b"%d" % number, 1)
    got = members[0].payloads + members[1].payloads
    assert sorted(got) == sorted(b"%d" % number for number in range(10))


def test_retained_messages() -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    client.publish("a/b", b"1", 1, retain=True)
    client.publish("a/b", b"2", 0, retain=True)
    client.publish("a/c", b"3", 1, retain=True)
    client.publish("a/d", b"4", 1)
    client.publish("a/c", b"", 1, retain=True)
    client.subscribe("a/+")
    (got,) = client.all(PublishPacket)
    assert (got.payload, got.retain) == (b"2", True)
    client.subscribe("a/b", options=SubscriptionOptions(1, retain_handling=1))
    client.subscribe("a/b", options=SubscriptionOptions(1, retain_handling=1))
    client.subscribe("a/+", options=SubscriptionOptions(1, retain_handling=2))
    client.subscribe("a/+?x = 1")
    assert client.payloads == [b"2", b"2"]


def test_a_message_is_retained_although_its_publisher_leaves_before_it_is_stored() -> None:
    exchange = one_broker()
    writer = exchange.mqtt()
    writer.send(PublishPacket("t", b"x", 0, True), DisconnectPacket())
    exchange.mqtt(client_id="w2").send(
        PublishPacket("u", b"y", 1, True, packet_id=1), DisconnectPacket()
    )
    reader = exchange.mqtt(client_id="r")
    reader.subscribe("#")
    assert sorted(reader.payloads) == [b"x", b"y"]
    assert list(exchange.mqtt_clients) == [reader.link]


def test_a_session_survives_a_restart_of_the_broker() -> None:
    exchange = one_broker()
    kept = {"session_expiry": 50}
    client = exchange.mqtt(properties=kept)
    client.subscribe("t/+", qos=1, subscription_identifier=(7,))
    client.subscribe("u", qos=2)
    client.send(UnsubscribePacket(9, ("u",)))
    client.send(PublishPacket("x", b"", 2, packet_id=500))
    client.lose()
    writer = exchange.mqtt(client_id="w")
    writer.publish("t/1", b"before", 1)
    exchange.crash("a")
    exchange.start("a")
    writer = exchange.mqtt(client_id="w")
    writer.publish("t/1", b"after", 2)
    client = exchange.mqtt(clean_start=False, properties=kept)
    assert client.connack.session_present
    got = client.all(PublishPacket)
    assert [one.payload for one in got] == [b"before", b"after"]
    assert {one.properties["subscription_identifier"] for one in got} == {(7,)}


def test_a_session_expires_although_its_client_does_not_return_after_a_restart() -> None:
    exchange = one_broker()
    exchange.mqtt(properties={"session_expiry": 5}).subscribe("t")
    exchange.crash("a")
    exchange.start("a")
    exchange.stranger()
    exchange.advance(4 * _SECOND)
    exchange.expire("a")
    assert exchange.brokers["a"].snapshot().queues.count == 1
    exchange.advance(2 * _SECOND)
    exchange.expire("a")
    assert exchange.brokers["a"].snapshot().queues.count == 0
    exchange.crash("a")
    exchange.start("a")
    client = exchange.mqtt(clean_start=False)
    assert not client.connack.session_present


def test_retained_messages_survive_a_restart_and_expire() -> None:
    exchange = one_broker(last_values=LastValueBounds(3))
    client = exchange.mqtt(keep_alive_s=0)
    for topic in "abcd":
        client.publish(
            topic, topic.encode(), 1, retain=True, message_expiry=3 if topic == "b" else 9
        )
    client.publish("c", b"", 0, retain=True)
    exchange.crash("a")
    exchange.start("a")
    reader = exchange.mqtt(keep_alive_s=0)
    reader.subscribe("#")
    assert sorted(reader.payloads) == [b"a", b"b"]
    exchange.advance(4 * _SECOND)
    reader.subscribe("+")
    assert sorted(reader.payloads) == [b"a", b"a", b"b"]
    assert len(exchange.brokers["a"].listener_acts.last_values) == 1


def test_what_may_not_be_published_is_not_retained() -> None:
    identity = Identity("anybody", EVERYTHING, parse("topic = 'a' AND x IS NULL"))
    exchange = one_broker(access=Access(anonymous=identity))
    client = exchange.mqtt()
    client.publish("a", b"1", 1, retain=True)
    client.publish("a", b"2", 1, retain=True, user=(("x", "1"),))
    client.publish("b", b"3", 1, retain=True)
    codes = [one.code for one in client.acks(PacketType.PUBACK)]
    assert codes == [ReasonCode.SUCCESS, ReasonCode.NOT_AUTHORIZED, ReasonCode.NOT_AUTHORIZED]
    for _ in range(2):
        reader = exchange.mqtt(client_id="r")
        reader.subscribe("#")
        assert reader.payloads == [b"1"]
        exchange.crash("a")
        exchange.start("a")


@pytest.mark.parametrize("kept", [(50, 50), (0, 0), (50, 0), (0, 50)])
def test_a_shared_queue_ends_with_its_last_member(kept: tuple[int, int]) -> None:
    exchange = one_broker()
    members = [
        exchange.mqtt(client_id=name, properties={"session_expiry": s})
        for name, s in zip("xy", kept, strict=True)
    ]
    for one in members:
        one.subscribe("$share/g/t/#")
    for number in range(10):
        members[0].publish("t/a", b"%d" % number, number % 3)
    got = members[0].payloads + members[1].payloads
    assert sorted(got) == sorted(b"%d" % number for number in range(10)), "each goes to one"
    for at, one in enumerate(members):
        assert exchange.brokers["a"].snapshot().queues.count == 1, at
        one.leave(session_expiry=0) if kept[at] else one.lose()
    assert exchange.brokers["a"].snapshot().queues.count == 0
    assert not [key for key, _ in exchange.stores["a"].scan("mqtt/")]


def test_a_shared_queue_ends_after_a_crash_of_its_last_members() -> None:
    exchange = one_broker()
    exchange.mqtt(client_id="x", properties={"session_expiry": 5}).subscribe("$share/g/t/#")
    exchange.mqtt(client_id="y").subscribe("$share/g/t/#", "$share/h/t/#")
    assert exchange.brokers["a"].snapshot().queues.count == 2
    exchange.crash("a")
    exchange.start("a")
    exchange.stranger()
    exchange.expire("a")
    assert exchange.brokers["a"].snapshot().queues.count == 1
    exchange.advance(6 * _SECOND)
    exchange.expire("a")
    assert exchange.brokers["a"].snapshot().queues.count == 0
    assert not [key for key, _ in exchange.stores["a"].scan("mqtt/")]


def test_leaving_a_share_ends_its_queue() -> None:
    exchange = one_broker()
    clients = [exchange.mqtt(client_id=name) for name in "xy"]
    for one in clients:
        one.subscribe("$share/g/t")
    for one, left in zip(clients, (1, 0), strict=True):
        one.send(UnsubscribePacket(9, ("$share/g/t",)))
        assert exchange.brokers["a"].snapshot().queues.count == left
