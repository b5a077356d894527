"""MQTT: readers of packets against each other, and whole connections in front of a broker core.

mqtt_packets    whole against pieces; what is read is written and read again; the properties against paho-mqtt
mqtt_clients    packets of clients that come, go and come back, with a clock and crashes of the broker
"""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any, ClassVar

from palio.protocol.durability.bounds import LastValueBounds
from palio.protocol.mqtt.packets.codes import PacketError
from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.fields import Cursor
from palio.protocol.mqtt.packets.properties import PacketType, read_properties
from palio.protocol.mqtt.packets.reader import PacketReader
from palio.protocol.mqtt.packets.values import Packet, Version
from palio.protocol.mqtt.session import SessionKey
from palio.protocol.mqtt.settings import MqttSettings
from palio.protocol.mqtt.states import AWAY, ENDED
from tests.fuzz.findings import Finding
from tests.fuzz.mqtt_grammar import MqttPackets
from tests.fuzz.targets import Target
from tests.protocol.mqtt.mqtt_exchange import MqttClient, MqttExchange

try:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import MQTTException, Properties
except ImportError:  # then nobody else reads
    Properties = None  # type: ignore[assignment, misc]

PACKET_MAX = 1 << 16


class MqttReaders(Target):
    name, goal, chunk = "mqtt_packets", 10_000_000, 2_000

    def run(self, seed: int) -> int:
        random = Random(f"{self.name} {seed}")
        grammar, count = MqttPackets(random), 0
        while count < self.chunk:
            self._version = grammar.version()
            packets = [grammar.bytes(self._version) for _ in range(random.randrange(1, 9))]
            size = sum(map(len, packets))
            self._cuts = sorted(random.randrange(size + 1) for _ in range(random.randrange(5)))
            self.check_small(packets)
            count += len(packets)
        return count

    _version = Version.V5
    _cuts: ClassVar[list[int]] = []

    def draw(self, random: Random) -> list[bytes]:
        return [MqttPackets(random).bytes(Version.V5)]

    def check(self, case: list[bytes]) -> None:
        data, version = b"".join(case), self._version
        whole, reason = _read(data, (), version)
        cuts = [min(cut, len(data)) for cut in self._cuts]
        assert _read(data, cuts, version) == (whole, reason), "pieces are read as the whole is"
        for packet in whole:
            version = getattr(packet, "version", version)
            again = encode(packet, version)
            assert _read(again, (), version) == ([packet], "0 bytes wait"), "written, then read"
            if version is Version.V5 and Properties is not None:
                _compare_properties(packet)


def _read(data: bytes, cuts: Any, version: Version) -> tuple[list[Packet], str]:
    reader, found = PacketReader(PACKET_MAX, version), []
    try:
        for begin, end in pairwise((0, *cuts, len(data))):
            for packet in reader.feed(data[begin:end]):
                found.append(packet)  # noqa: PERF402  what came before an error counts
    except PacketError as error:
        return found, f"{error.code!r}: {error}"
    assert reader.waiting < PACKET_MAX
    return found, f"{reader.waiting} bytes wait"


_NAMES = {
    "user": "UserProperty", "reason_string": "ReasonString", "session_expiry": "SessionExpiryInterval",
    "message_expiry": "MessageExpiryInterval", "content_type": "ContentType",
    "response_topic": "ResponseTopic", "correlation_data": "CorrelationData", "topic_alias": "TopicAlias",
    "payload_format": "PayloadFormatIndicator", "subscription_identifier": "SubscriptionIdentifier",
    "topic_alias_maximum": "TopicAliasMaximum", "receive_maximum": "ReceiveMaximum",
    "maximum_packet_size": "MaximumPacketSize", "request_problem_information": "RequestProblemInformation",
    "authentication_method": "AuthenticationMethod", "will_delay": "WillDelayInterval",
}  # fmt: skip


def _compare_properties(packet: Packet) -> None:
    """What paho-mqtt reads of the properties that this packet has."""
    from palio.protocol.mqtt.packets.properties import put_properties

    properties = getattr(packet, "properties", {})
    if not properties:
        return
    kind = (
        PacketType[type(packet).__name__.removesuffix("Packet").upper()]
        if not hasattr(packet, "type")
        else packet.type
    )
    body = bytearray()
    put_properties(body, properties)
    other = Properties(getattr(PacketTypes, kind.name))
    try:
        _, size = other.unpack(bytes(body))
    except MQTTException as error:
        if {"topic_alias", "subscription_identifier", "maximum_packet_size"} & properties.keys():
            return  # it also judges their values
        raise Finding(f"paho-mqtt does not read {properties}: {error}", [bytes(body)]) from error
    assert size == len(body)
    for name, value in properties.items():
        if name not in _NAMES:
            continue
        found = getattr(other, _NAMES[name])
        wanted = [*value] if name in ("user", "subscription_identifier") else value
        assert found == wanted, f"{name}: {value!r}, and paho-mqtt reads {found!r}"
    assert read_properties(Cursor(bytes(body)), kind) == properties


FEW_VALUES = LastValueBounds(values=3, bytes=4000)
SMALL = MqttSettings(
    receive_maximum=3, topic_alias_maximum=2, session_expiry_s_max=60, sessions_max=3, levels_max=8, subscriptions_max=5, credit=4, waiting_bytes_max=2000,
    packet_bytes_max=8000,
)  # fmt: skip


class _Reader(MqttClient):
    """Reads the version that the broker has read, whatever it said itself."""

    def arrived(self, data: bytes) -> bool:
        self.version = self._reader.version = self.mqtt.client.version
        return super().arrived(data)


class MqttClients(Target):
    """A broker of this process, and its clients; they are new with each seed."""

    name, goal, chunk = "mqtt_clients", 10_000_000, 1_000

    def run(self, seed: int) -> int:
        random = Random(f"{self.name} {seed}")
        grammar = MqttPackets(random)
        exchange = MqttExchange(SMALL)
        exchange.add("a", last_values=FEW_VALUES)
        connected: list[MqttClient] = []
        said: list[bytes] = []
        self._unbound.clear()
        try:
            while len(said) < self.chunk:
                self._step(random, grammar, exchange, connected, said)
            exchange.advance(200_000_000, 1_000_000)
            exchange.expire("a")
            self._check_idle(exchange)
        except Exception as error:
            raise Finding(f"{type(error).__name__}: {error}", said[-50:]) from error
        return len(said)

    def _step(
        self, random: Random, grammar: MqttPackets, exchange: MqttExchange, connected: list[MqttClient],
        said: list[bytes],
    ) -> None:  # fmt: skip
        roll = random.random()
        if not connected or (roll < 0.04 and len(connected) < 4):
            client = exchange.stranger("a", grammar.version())
            client.__class__ = _Reader
            client.answers = random.random() < 0.7
            connected.append(client)
            said.append(grammar.bytes(client.version, connect=random.random() < 0.95))
            client.send_bytes(said[-1])
        elif roll < 0.06:
            client = connected.pop(random.randrange(len(connected)))
            client.lose()
        elif roll < 0.08:
            exchange.advance(random.choice((100_000, 5_000_000, 40_000_000)), 5_000_000)
            exchange.expire("a")
        elif roll < 0.083:
            exchange.crash("a")
            exchange.start("a")
            connected.clear()
        else:
            client = random.choice(connected)
            said.append(grammar.bytes(client.version))
            data = said[-1]
            if random.random() < 0.1:
                at = random.randrange(len(data) + 1)
                client.send_bytes(data[:at])
                data = data[at:]
            client.send_bytes(data)
        for client in list(connected):
            if client.mqtt.state in (AWAY, ENDED):
                client.is_open = False
                connected.remove(client)
            self._check_bounds(client)

    _unbound: ClassVar[set[SessionKey]] = set()
    """Sessions that clients of 3.1.1 have had."""

    def _check_bounds(self, client: MqttClient) -> None:
        client.packets.clear()
        session = client.mqtt.delivering.session
        if hasattr(session, "subscriptions"):
            assert len(session.subscriptions) <= SMALL.subscriptions_max
            if client.mqtt.client.version is Version.V311:  # knows no receive maximum
                self._unbound.add(session.key)
            most = 65_535 if session.key in self._unbound else SMALL.receive_maximum
            assert len(session.incoming) <= most
            for one in session.subscriptions.values():
                if one.progress is not None:
                    assert len(one.progress.outstanding) <= 4 * SMALL.credit

    def _check_idle(self, exchange: MqttExchange) -> None:
        """After the longest time that a session may wait nothing of it is left."""
        if "a" in exchange.sessions:
            values = exchange.brokers["a"].listener_acts.last_values
            assert len(values) <= FEW_VALUES.values
            assert values.bytes <= FEW_VALUES.bytes
            held = len(exchange.mqtt_clients)
            assert len(exchange.sessions["a"]) <= held, "sessions are over"
            if not held:
                left = [k for k, _ in exchange.stores["a"].scan("mqtt/")]
                assert not left, left
                assert not exchange.brokers["a"].snapshot().queues.count

    def draw(self, random: Random) -> list[bytes]:
        return [MqttPackets(random).bytes(Version.V5)]

    def check(self, case: list[bytes]) -> None:
        raise NotImplementedError
