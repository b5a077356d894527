"""What a client publishes: packets become messages of the core, and its answers acknowledgements.

    PUBLISH QoS 0                ─▶ live message
            QoS 1, 2, or retain  ─▶ durable message ─▶ Published ─▶ PUBACK, PUBREC; retained from then on
    PUBREL                       ─▶ PUBCOMP

At most `receive_maximum` messages of QoS 1 and 2 are between PUBLISH and PUBACK or PUBCOMP; one more ends
the connection.

With QoS 2 the packet id is written down with the number that the message has at the core. So after a crash the
number tells whether the message was stored, when the client sends it again; and PUBCOMP, after which the client
may use the packet id for another message, waits until it is written down that the id is free.
"""

from __future__ import annotations

from palio.errors import InvalidValue
from palio.protocol.mqtt.content import attributes_of, headers_of
from palio.protocol.mqtt.counts import MqttCounts
from palio.protocol.mqtt.events import event_in
from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode, protocol_error
from palio.protocol.mqtt.packets.properties import NONE, PacketType, Properties
from palio.protocol.mqtt.packets.reader import PacketReader
from palio.protocol.mqtt.packets.values import Ack, PublishPacket, Version, Will
from palio.protocol.mqtt.ports import ClientPort, CorePort
from palio.protocol.mqtt.retained import RetainedMessages
from palio.protocol.mqtt.runs import PublishRun
from palio.protocol.mqtt.session import MqttSession, Unstored, UnstoredRun
from palio.protocol.mqtt.settings import MqttSettings
from palio.protocol.mqtt.topics import check_topic
from palio.protocol.mqtt.turns import Slices
from palio.protocol.wire.codes import RejectionCode
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.message_headers import Headers, packed

_ANSWERS = {1: PacketType.PUBACK, 2: PacketType.PUBREC}
_REJECTED = {
    RejectionCode.DENIED: ReasonCode.NOT_AUTHORIZED,
    RejectionCode.SCHEMA: ReasonCode.INVALID_PAYLOAD_FORMAT,
    RejectionCode.INVALID: ReasonCode.IMPLEMENTATION_SPECIFIC,
}


class InboundMessages:
    def __init__(
        self, core: CorePort, client: ClientPort, settings: MqttSettings, limits: Limits,
        retained: RetainedMessages, counts: MqttCounts,
    ) -> None:  # fmt: skip
        self._core, self._client, self._settings = core, client, settings
        self._retained = retained
        self._limits = limits
        self._aliases: dict[int, str] = {}
        self._counts = counts

    def publish(self, packet: PublishPacket, session: MqttSession, now_us: int) -> None:
        topic = self._topic(packet)
        if packet.qos:
            id = packet.packet_id
            if id in session.unstored_ids:
                return  # again, and it will be answered
            if id in session.incoming:
                self._client.send(Ack(PacketType.PUBREC, id))
                return
            if self._is_over_maximum(session, 1):
                raise PacketError(
                    ReasonCode.RECEIVE_MAXIMUM_EXCEEDED,
                    f"{self._settings.receive_maximum} messages are not acknowledged, and one more "
                    "came",
                )
        self.send(
            topic, packet.payload, packet.qos, packet.retain, packet.properties, now_us,
            packet.packet_id, session,
        )  # fmt: skip

    def _is_over_maximum(self, session: MqttSession, more: int) -> bool:
        """Would so many more messages be too many? 3.1.1 knows no such bound, but packet ids."""
        maximum = self._settings.receive_maximum - more
        stored, incoming = session.unstored_ids, session.incoming
        if self._client.version is not Version.V5 or len(stored) + len(incoming) <= maximum:
            return False
        return len(stored | incoming.keys()) > maximum

    def publish_run(self, run: PublishRun, session: MqttSession, now_us: int) -> bool:
        """Publish many messages; False: one is not new, or they are too many. Then none is published."""
        ids = run.packet_ids if run.qos else []
        waiting, incoming = session.unstored_ids, session.incoming
        is_new = len(set(ids)) == len(ids) and waiting.isdisjoint(ids)
        if not is_new or not incoming.keys().isdisjoint(ids):
            return False
        if self._is_over_maximum(session, len(ids)):
            return False
        number = self._core.publish_run(run, now_us)
        self._counts.published += len(run)
        if ids:
            session.unstored.append(UnstoredRun(number, ids))
            waiting.update(ids)
        return True

    def one_by_one(self, run: PublishRun, session: MqttSession, now_us: int) -> Slices:
        """Publish the messages of a run that cannot be published at once."""
        for packet in PacketReader(len(run.data), self._client.version).feed(run.packets):
            assert isinstance(packet, PublishPacket)
            self.publish(packet, session, now_us)
            yield

    def publish_will(self, will: Will, session: MqttSession, now_us: int) -> None:
        self.send(
            will.topic, will.payload, will.qos, will.retain, will.properties, now_us, 0, session
        )

    def send(
        self, topic: str, payload: bytes, qos: int, retain: bool, properties: Properties,
        now_us: int, packet_id: int, session: MqttSession,
    ) -> None:  # fmt: skip
        event = event_in(payload, properties, self._settings) if properties else None
        own = event.headers if event is not None and event.body == payload else {}
        try:
            attributes = attributes_of(topic, payload, properties, self._settings, event)
            told: Headers = {**own, **headers_of(properties, qos, retain, now_us)}
            if retain:
                told = self._retained.headers(topic, attributes, payload, told)
            headers = packed(told, self._limits.headers)
        except InvalidValue as error:
            self._refuse(packet_id, qos, ReasonCode.QUOTA_EXCEEDED, str(error))
            return
        if len(attributes) > self._limits.attributes:
            reason = (
                f"attributes of {len(attributes):,} bytes; the most are {self._limits.attributes:,}"
            )
            self._refuse(packet_id, qos, ReasonCode.QUOTA_EXCEEDED, reason)
            return
        self._counts.published += 1
        durable = qos > 0 or retain
        number = self._core.publish(attributes, headers, payload, now_us, durable=durable)
        if durable:
            session.unstored.append(Unstored(number, packet_id, qos))
            if packet_id:
                session.unstored_ids.add(packet_id)
                if qos == 2:
                    session.incoming[packet_id] = number
                    session.is_changed = True

    def _refuse(self, packet_id: int, qos: int, code: ReasonCode, reason: str) -> None:
        self._counts.refused += 1
        if qos and packet_id:
            self._client.send(Ack(_ANSWERS[qos], packet_id, code, self._client.reason(reason)))

    def _topic(self, packet: PublishPacket) -> str:
        alias = packet.properties.get("topic_alias") if packet.properties else None
        topic = packet.topic
        if packet.properties:
            if "subscription_identifier" in packet.properties:
                raise protocol_error("a client must not send subscription identifiers")
            response = packet.properties.get("response_topic")
            if response is not None and ("+" in response or "#" in response):
                raise protocol_error("a response topic has no + and no #")
        if alias is not None:
            if not 1 <= alias <= self._settings.topic_alias_maximum:
                raise PacketError(
                    ReasonCode.INVALID_TOPIC_ALIAS,
                    f"a topic alias is 1 to {self._settings.topic_alias_maximum}, not {alias}",
                )
            if not topic:
                if alias not in self._aliases:
                    raise PacketError(
                        ReasonCode.INVALID_TOPIC_ALIAS, f"the topic alias {alias} is not set"
                    )
                return self._aliases[alias]
        check_topic(topic, self._settings.levels_max)
        if alias is not None:
            self._aliases[alias] = topic
        return topic

    def release(self, ack: Ack, session: MqttSession) -> None:
        """PUBREL."""
        code = ReasonCode.SUCCESS
        if ack.packet_id in session.incoming:
            del session.incoming[ack.packet_id]
            session.is_changed = True
        else:
            code = ReasonCode.PACKET_ID_NOT_FOUND
        self._client.send(Ack(PacketType.PUBCOMP, ack.packet_id, code), held=True)

    # ---- the core

    def stored(self, number: int, session: MqttSession) -> None:
        """All durable messages up to this number are stored."""
        while session.unstored and session.unstored[0].number <= number:
            one = session.unstored.popleft()
            if isinstance(one, UnstoredRun):
                stored, others = one.split(number)
                if others is not None:
                    session.unstored.appendleft(others)
                session.unstored_ids.difference_update(stored)
                self._client.acknowledge(stored)
                continue
            if one.packet_id:
                session.unstored_ids.discard(one.packet_id)
                self._client.send(Ack(_ANSWERS[one.qos], one.packet_id, properties=NONE))

    def rejected(self, number: int, reason: str, code: RejectionCode, session: MqttSession) -> None:
        one = session.take_unstored(number)
        if one is None:
            self._counts.refused += 1
            return
        session.unstored_ids.discard(one.packet_id)
        if session.incoming.pop(one.packet_id, None) is not None:
            session.is_changed = True
        self._refuse(one.packet_id, one.qos, _REJECTED[code], reason)
