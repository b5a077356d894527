"""Messages for a client: frames of the core become PUBLISH packets, and its answers acknowledgements.

    DELIVER ─▶ QoS 0 ─────────────────────────────────────────▶ PUBLISH
            └▶ QoS 1, 2 ─▶ waiting (receive maximum) ─▶ PUBLISH ─▶ in flight ─▶ PUBACK, PUBCOMP ─▶ done

Done means that the core hears of it: a position of a durable subscription is acknowledged, credit of a
live one is granted again. What waits in memory is bounded: durable messages by the credit of their
subscriptions, live ones by bytes, and what is over the bound is dropped and counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from palio.protocol.durability.last_values import LastValue
from palio.protocol.mqtt.content import MqttMessage, received
from palio.protocol.mqtt.counts import MqttCounts
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.values import Ack, PublishPacket, Version
from palio.protocol.mqtt.ports import ClientPort, CorePort
from palio.protocol.mqtt.runs import DeliveryRun
from palio.protocol.mqtt.session import InFlight, MqttSession, MqttSubscription
from palio.protocol.wire.control import Credit
from palio.protocol.wire.frames import MessageFrame
from palio.protocol.wire.headers import DeliverHeader

_OVERHEAD_BYTES = 300


class OutboundMessages:
    def __init__(
        self, core: CorePort, client: ClientPort, waiting_bytes_max: int, counts: MqttCounts
    ) -> None:
        self._core, self._client = core, client
        self._waiting_bytes_max = waiting_bytes_max
        self._waiting: deque[InFlight] = deque()
        self._waiting_bytes = 0
        self._sent = 0  # of QoS 1 and 2, on this connection, and not acknowledged
        self._aliases: dict[str, int] = {}
        self.subscriptions: dict[int, MqttSubscription] = {}
        """Those at the core, by their id there."""
        self.session = MqttSession.__new__(MqttSession)
        self.publisher = ""
        """Of this client's own messages."""
        self.receive_maximum = 65_535
        self.alias_maximum = 0
        self._counts = counts

    def begin(self, session: MqttSession) -> None:
        """The connection has a session: send again what the client has not acknowledged (4.4)."""
        self.session = session
        for subscription in session.subscriptions.values():
            subscription.resent.clear()
            if subscription.progress is not None:
                subscription.progress.resume(
                    [
                        one.position
                        for one in session.in_flight.values()
                        if one.subscriptions[0] is subscription
                    ]
                )
        for packet_id, one in session.in_flight.items():
            self._sent += 1
            if one.position > 0:
                one.subscriptions[0].resent.add(one.position)
            is_held = one.qos == 2
            if one.is_received:
                self._client.send(Ack(PacketType.PUBREL, packet_id), held=is_held)
            else:
                packet = self._packet(one, packet_id, duplicate=True)
                self._client.publish(packet, held=is_held)

    # ---- the core

    def deliver(self, frames: list[MessageFrame], now_us: int) -> None:
        """Messages, in their order. A message that comes for several live subscriptions, one after the
        other, is one packet."""
        last: DeliverHeader | None = None
        ids: tuple[int, ...] = ()
        pending: MessageFrame | None = None
        for frame in frames:
            header = frame.header
            assert type(header) is DeliverHeader
            is_same = (
                last is not None
                and header.number == last.number
                and header.publisher == last.publisher
                and not header.position
                and not last.position
            )
            if is_same:
                ids += header.subscriptions
                continue
            if pending is not None:
                self._arrived(pending, ids, now_us)
            pending, last, ids = frame, header, header.subscriptions
        if pending is not None:
            self._arrived(pending, ids, now_us)

    def _arrived(self, frame: MessageFrame, ids: tuple[int, ...], now_us: int) -> None:
        header = frame.header
        assert type(header) is DeliverHeader
        wanting = [self.subscriptions[id] for id in ids if id in self.subscriptions]
        if not wanting:
            return
        progress = wanting[0].progress
        if progress is not None and header.position and not progress.arrived(header.position):
            self._core.acknowledge(wanting[0].id, header.position)
            return
        if header.position in wanting[0].resent:
            self._sent_already(wanting[0], header.position)
            return
        is_own = header.publisher == self.publisher
        getting = [one for one in wanting if not (is_own and one.options.no_local)]
        usual_qos = 1 if header.position else 0
        message = received(frame.attributes, frame.payload, now_us, usual_qos) if getting else None
        if message is None:
            if progress is not None and header.position:
                progress.finished(header.position)
            self._done(wanting, header.position)
            return
        # those that do not get it have their credit back with the others
        self._give(message, wanting, getting, header.position)

    def deliver_run(self, run: DeliveryRun) -> int:
        """Send the first messages of a run at once, and say how many. None of them would be sent again on
        another connection: live subscriptions are those of a session that ends with this one."""
        wanting = list(map(self.subscriptions.get, run.ids))
        is_v5 = self._client.version is Version.V5
        if self._waiting or self.session.expiry_s or (is_v5 and self.alias_maximum):
            return 0
        getting = [one for one in wanting if one is not None and one.is_plain]
        if len(getting) < len(wanting):
            return 0
        qualities = [
            qos and min(qos, one.options.qos)
            for qos, one in zip(run.qualities, getting, strict=True)
        ]
        ids = range(0)
        if any(qualities):
            room = self.receive_maximum - self._sent
            ids = self.session.next_packet_ids(min(room, sum(qualities)))
            if len(ids) < sum(qualities):
                ends = [place for place, qos in enumerate(qualities) if qos]
                del qualities[ends[len(ids)] :]
        if not qualities:
            return 0
        self._client.publish_many(run.packets(qualities, ids.start, self._client.version))
        self._counts.delivered += len(qualities)
        self._sent += len(ids)
        sent = [one.run_member for one, qos in zip(getting, qualities, strict=False) if qos]
        self.session.use_packet_ids(ids, sent)
        for one, qos in zip(getting, qualities, strict=False):
            if not qos:
                self._owe(one)
        return len(qualities)

    def _sent_already(self, subscription: MqttSubscription, position: int) -> None:
        """The core sends what this connection has sent again; the client may have acknowledged it."""
        subscription.resent.discard(position)
        is_in_flight = any(
            one.position == position and subscription in one.subscriptions
            for one in self.session.in_flight.values()
        )
        if not is_in_flight:
            self._core.acknowledge(subscription.id, position)

    def _give(
        self, message: MqttMessage, wanting: list[MqttSubscription], getting: list[MqttSubscription],
        position: int,
    ) -> None:  # fmt: skip
        qos = min(message.qos, max([one.options.qos for one in getting]))
        retain = message.retain and any(one.options.retain_as_published for one in getting)
        self._offer(InFlight(message, getting, position, qos, retain))
        if len(getting) < len(wanting):
            self._done([one for one in wanting if one not in getting], 0)

    def retained(self, message: LastValue, subscription: MqttSubscription, now_us: int) -> None:
        """A retained message for a new subscription."""
        found = received(message.attributes, message.payload, now_us, 0)
        if found is not None:
            qos = min(found.qos, subscription.options.qos)
            self._offer(InFlight(found, [subscription], -1, qos, True))

    def _offer(self, one: InFlight) -> None:
        if not one.qos:
            self._client.publish(self._packet(one, 0))
            self._counts.delivered += 1
            self._finished(one)
        elif self._waiting or self._sent >= self.receive_maximum or not self._send(one):
            self._wait(one)

    def _wait(self, one: InFlight) -> None:
        size = len(one.message.payload) + _OVERHEAD_BYTES
        if one.position <= 0 and self._waiting_bytes + size > self._waiting_bytes_max:
            self._counts.dropped += 1
            self._finished(one)
            return
        self._waiting.append(one)
        self._waiting_bytes += size

    def _send(self, one: InFlight) -> bool:
        """False: all packet ids are in use, so it must wait for an acknowledgement."""
        progress = one.subscriptions[0].progress if one.qos == 2 and one.position > 0 else None
        reserved = progress.reserved_id(one.position) if progress is not None else 0
        packet_id = reserved or self.session.new_packet_id()
        if not packet_id:
            return False
        packet = self._packet(one, packet_id, duplicate=bool(reserved))
        if not self._client.publish(packet, held=progress is not None):
            self._counts.dropped += 1  # larger than the client takes (3.1.2.11.4)
            self._finished(one)
            return True
        if progress is not None:
            progress.sent(one.position, packet_id)
            self.session.is_changed = True
        self.session.in_flight[packet_id] = one
        self._sent += 1
        self._counts.delivered += 1
        return True

    def _packet(self, one: InFlight, packet_id: int, *, duplicate: bool = False) -> PublishPacket:
        message, topic = one.message, one.message.topic
        properties: Mapping[str, Any] = message.properties
        if self._client.version is Version.V5:
            identifiers = tuple([s.identifier for s in one.subscriptions if s.identifier])
            if identifiers:
                properties = {**properties, "subscription_identifier": identifiers}
            if self.alias_maximum:
                alias, topic = self._alias(topic)
                if alias:
                    properties = {**properties, "topic_alias": alias}
        return PublishPacket(
            topic, message.payload, one.qos, one.retain, duplicate, packet_id, properties
        )

    def _alias(self, topic: str) -> tuple[int, str]:
        """The alias of a topic, and what stands for the topic in the packet."""
        alias = self._aliases.get(topic)
        if alias is not None:
            return alias, ""
        if (
            len(self._aliases) >= self.alias_maximum
            or self._client.packet_bytes_max < (1 << 28) - 1
        ):
            return 0, topic  # a packet that is too large would set an alias and never arrive
        self._aliases[topic] = alias = len(self._aliases) + 1
        return alias, topic

    # ---- the client

    def acknowledged(self, ack: Ack) -> None:
        """PUBACK, PUBREC or PUBCOMP."""
        one = self.session.in_flight.get(ack.packet_id)
        if ack.type is PacketType.PUBREC:
            code = ReasonCode.PACKET_ID_NOT_FOUND
            if one is not None and one.qos == 2:
                if ack.code.is_error:
                    self._settle(ack.packet_id, one)
                    return
                self._received(one)
                code = ReasonCode.SUCCESS
            elif ack.code.is_error:
                return
            self._client.send(Ack(PacketType.PUBREL, ack.packet_id, code), held=True)
        elif one is not None and (one.qos == 1) == (ack.type is PacketType.PUBACK):
            self._settle(ack.packet_id, one)

    def _received(self, one: InFlight) -> None:
        """PUBREC: from now on only PUBREL may be sent, after a crash too."""
        one.is_received = True
        progress = one.subscriptions[0].progress
        if progress is not None and one.position > 0:
            progress.received(one.position)
            self.session.is_changed = True

    def acknowledged_run(self, packet_ids: Sequence[int]) -> None:
        """PUBACKs."""
        in_flight = self.session.in_flight
        for packet_id in packet_ids:
            one = in_flight.get(packet_id)
            if one is not None and one.qos == 1:
                self._settle(packet_id, one)

    def _settle(self, packet_id: int, one: InFlight) -> None:
        del self.session.in_flight[packet_id]
        self._sent -= 1
        self._finished(one)
        while self._waiting and self._sent < self.receive_maximum:
            if not self._send(self._waiting[0]):
                break
            waiting = self._waiting.popleft()
            self._waiting_bytes -= len(waiting.message.payload) + _OVERHEAD_BYTES

    def _finished(self, one: InFlight) -> None:
        if one.position < 0:
            return
        progress = one.subscriptions[0].progress
        if progress is not None and one.position:
            progress.finished(one.position)
            if one.qos == 2:
                self.session.is_changed = True
        self._done(one.subscriptions, one.position)

    def _done(self, subscriptions: list[MqttSubscription], position: int) -> None:
        for one in subscriptions:
            if not position:
                self._owe(one)
            elif one.id:
                self._core.acknowledge(one.id, position)

    def _owe(self, one: MqttSubscription) -> None:
        """The client has a live message: its credit is granted again, with that of others."""
        if not one.id:
            return
        one.owed += 1
        if one.owed * 2 >= one.credit:
            self._core.say(Credit(one.id, one.owed))
            one.owed = 0
