"""SUBSCRIBE and UNSUBSCRIBE: topic filters become subscriptions at the core, whose answers are gathered.

    SUBSCRIBE ─▶ a SubscribeRequest for each filter ─▶ Subscribed, Refused ... ─▶ SUBACK ─▶ retained messages
    UNSUBSCRIBE ─▶ an UnsubscribeRequest for each ─▶ Unsubscribed ...            ─▶ UNSUBACK

With a session that outlives its connection a subscription is durable; its name is made of the client id
and the topic filter. A filter that is subscribed to again keeps its subscription if only options change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import blake2b
from urllib.parse import quote

from palio.errors import PalioError
from palio.model.language import parse
from palio.protocol.mqtt.delivering import OutboundMessages
from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode, protocol_error
from palio.protocol.mqtt.packets.properties import NONE, PacketType
from palio.protocol.mqtt.packets.values import (
    SubscribeAck,
    SubscribePacket,
    SubscriptionOptions,
    UnsubscribePacket,
)
from palio.protocol.mqtt.ports import GRANTED, ClientPort, CorePort
from palio.protocol.mqtt.progress import DeliveryProgress
from palio.protocol.mqtt.retained import RetainedMessages
from palio.protocol.mqtt.session import MqttSession, MqttSubscription
from palio.protocol.mqtt.sessions import Sessions
from palio.protocol.mqtt.settings import MqttSettings
from palio.protocol.mqtt.shared import GROUP
from palio.protocol.mqtt.topics import TopicFilter, enclosed, parse_topic_filter
from palio.protocol.mqtt.turns import Slices
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import Refused, SubscribeRequest, UnsubscribeRequest
from palio.protocol.wire.queue_control import ForgetDurable

WHERE = "$where"
"""The user property of SUBSCRIBE with a predicate for all its topic filters."""
_NAME_MAX = 120
_REFUSED = {
    RefusalCode.DENIED: ReasonCode.NOT_AUTHORIZED,
    RefusalCode.LIMIT: ReasonCode.QUOTA_EXCEEDED,
    RefusalCode.FULL: ReasonCode.QUOTA_EXCEEDED,
    RefusalCode.TOO_LARGE: ReasonCode.QUOTA_EXCEEDED,
    RefusalCode.PARSE: ReasonCode.INVALID_TOPIC_FILTER,
    RefusalCode.PREDICATE: ReasonCode.INVALID_TOPIC_FILTER,
}


def own_name(client_id: str) -> str:
    """A client id as a name of the core, and the first part of the names of durable subscriptions.

    >>> own_name("desk/7")
    'mqtt.desk%2F7'
    """
    name = "mqtt." + quote(client_id, safe=" .@+=,;~!()")
    return name if len(name) <= _NAME_MAX else "mqtt.=" + _digest(client_id)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


class _Answer:
    """A SUBACK or UNSUBACK, until all its codes are known."""

    __slots__ = ("codes", "missing", "packet_id", "reason", "retained", "type")

    def __init__(self, type: PacketType, packet_id: int, count: int) -> None:
        self.type, self.packet_id, self.missing = type, packet_id, count
        self.codes = [ReasonCode.UNSPECIFIED] * count
        self.reason = ""
        self.retained: list[MqttSubscription] = []


class Subscribing:
    def __init__(
        self, core: CorePort, client: ClientPort, delivering: OutboundMessages, settings: MqttSettings,
        retained: RetainedMessages, sessions: Sessions, slices: deque[Slices],
    ) -> None:  # fmt: skip
        self._slices = slices
        self._shared = sessions.shared
        self._core, self._client, self._delivering = core, client, delivering
        self._settings, self._retained = settings, retained
        self._asked: dict[int, Callable[[ReasonCode, str], None]] = {}
        self._replaced: dict[str, MqttSubscription] = {}
        """Subscriptions of before, by topic filter, until the core has taken those that replace them."""

    # ---- the client

    def subscribe(self, packet: SubscribePacket, session: MqttSession, now_us: int) -> Slices:
        where = dict(packet.properties.get("user", ())).get(WHERE, "")
        identifier = packet.properties.get("subscription_identifier", (0,))[0]
        answer = _Answer(PacketType.SUBACK, packet.packet_id, len(packet.filters))
        for place, (text, options) in enumerate(packet.filters):
            try:
                self._subscribe_one(
                    answer, place, text, options, where, identifier, session, now_us
                )
            except PacketError as error:
                if error.code is ReasonCode.PROTOCOL_ERROR:
                    raise
                self._answer(answer, place, error.code, str(error), now_us)
            except PalioError as error:
                self._answer(answer, place, ReasonCode.INVALID_TOPIC_FILTER, str(error), now_us)
            yield

    def _subscribe_one(
        self, answer: _Answer, place: int, text: str, options: SubscriptionOptions, where: str,
        identifier: int, session: MqttSession, now_us: int,
    ) -> None:  # fmt: skip
        if text in self._settings.denied_filters:
            raise PacketError(ReasonCode.UNSPECIFIED, f"nobody may subscribe to {text}")
        parsed = self._parsed(text, where)
        if parsed.group and options.no_local:
            raise protocol_error("a shared subscription must not have `no local`")
        before = session.subscriptions.get(text)
        is_new = before is None
        wants_retained = not parsed.group and (
            options.retain_handling == 0 or (options.retain_handling == 1 and is_new)
        )
        if before is not None and before.predicate == parsed.predicate and before.id:
            before.options, before.identifier = options, identifier
            session.is_unsaved = True
            self._join(before, answer, place, wants_retained, now_us)
            return
        if is_new and len(session.subscriptions) >= self._settings.subscriptions_max:
            reason = f"a client may have {self._settings.subscriptions_max} subscriptions"
            raise PacketError(ReasonCode.QUOTA_EXCEEDED, reason)
        one = MqttSubscription(text, parsed.predicate, options)
        one.identifier = identifier
        if parsed.group:  # its members share one queue, whether their sessions stay or not
            digest = _digest(f"{parsed.group}/{_digest(text)}")
            one.durable = f"mqtt.{quote(parsed.group)[:_NAME_MAX]}/{digest}"
            one.group = GROUP
        elif session.expiry_s:
            one.durable = f"{own_name(session.key.client_id)}/{_digest(text + where)}"
            one.progress = DeliveryProgress(session.reserved)
        if before is not None:
            self._replaced.setdefault(text, before)
        session.subscriptions[text] = one
        self._shared.join(session.key, one)
        session.is_unsaved = True

        def answered(code: ReasonCode, reason: str) -> None:
            self._replaced.pop(text, None)
            if code is ReasonCode.SUCCESS:
                if before is not None:
                    self._leave(before, forget=before.durable != one.durable)
                if wants_retained:
                    answer.retained.append(one)
                code = GRANTED[one.options.qos]
            else:
                self._delivering.subscriptions.pop(one.id, None)
                one.id = 0
                if session.subscriptions.get(text) is one:
                    del session.subscriptions[text]
                    if before is not None and before.id:
                        session.subscriptions[text] = before
                    elif self._shared.leave(session.key, one) and one.group:
                        self._core.say(ForgetDurable(self._core.new_id(), one.durable, one.group))
                    session.is_unsaved = True
            self._answer(answer, place, code, reason, now_us)

        self.request(one, answered)

    def _join(
        self, one: MqttSubscription, answer: _Answer, place: int, wants_retained: bool, now_us: int
    ) -> None:
        """Subscribe to what is there. While the core has not granted it, this is not granted either, and
        gets nothing that is retained."""
        first = self._asked.pop(one.id, None)

        def answered(code: ReasonCode, reason: str) -> None:
            if first is not None:
                first(code, reason)
            if code is ReasonCode.SUCCESS:
                if wants_retained:
                    answer.retained.append(one)
                code = GRANTED[one.options.qos]
            self._answer(answer, place, code, reason, now_us)

        if first is None:
            answered(ReasonCode.SUCCESS, "")
        else:
            self._asked[one.id] = answered

    def _parsed(self, text: str, where: str) -> TopicFilter:
        parsed = parse_topic_filter(text, self._settings.levels_max)
        both = [one for one in (parsed.condition, where.strip()) if one]
        if len("".join(both).encode()) > self._settings.condition_bytes_max:
            raise PacketError(
                ReasonCode.QUOTA_EXCEEDED,
                f"a condition has {self._settings.condition_bytes_max} bytes at most",
            )
        for one in both:
            parse(one)  # so that the error is about the condition alone
        condition = both[0] if len(both) == 1 else " AND ".join(map(enclosed, both))
        return parsed._replace(condition=condition)

    def unsubscribe(self, packet: UnsubscribePacket, session: MqttSession, now_us: int) -> None:
        answer = _Answer(PacketType.UNSUBACK, packet.packet_id, len(packet.filters))
        for place, text in enumerate(packet.filters):
            one = session.subscriptions.pop(text, None)
            if one is None:
                self._answer(answer, place, ReasonCode.NO_SUBSCRIPTION_EXISTED, "", now_us)
                continue

            def answered(_: ReasonCode, reason: str, place: int = place) -> None:
                self._answer(answer, place, ReasonCode.SUCCESS, reason, now_us)

            self._leave(one, forget=self._shared.leave(session.key, one), answered=answered)
        session.is_unsaved = True

    # ---- the core

    def request(self, one: MqttSubscription, answered: Callable[[ReasonCode, str], None]) -> None:
        """Ask the core for a subscription."""
        one.id, one.owed, one.credit = self._core.new_id(), 0, self._settings.credit
        self._asked[one.id] = answered
        self._delivering.subscriptions[one.id] = one
        self._core.say(
            SubscribeRequest(
                one.id, one.predicate, durable=one.durable, group=one.group, credit=one.credit
            )
        )

    def resume(self, session: MqttSession) -> None:
        """Ask again for all subscriptions of a session, on a new connection."""
        for one in list(session.subscriptions.values()):

            def answered(code: ReasonCode, _: str, one: MqttSubscription = one) -> None:
                if code is not ReasonCode.SUCCESS and one.text in session.subscriptions:
                    del session.subscriptions[one.text]
                    self._forget(session, one)

            self.request(one, answered)

    def forget(self, session: MqttSession) -> None:
        """The session is over, and with it its durable subscriptions."""
        for one in [*session.subscriptions.values(), *self._replaced.values()]:
            self._forget(session, one)
        session.subscriptions.clear()
        self._replaced.clear()

    def _forget(self, session: MqttSession, one: MqttSubscription) -> None:
        if self._shared.leave(session.key, one):
            self._core.say(ForgetDurable(self._core.new_id(), one.durable, one.group))

    def pause(self, session: MqttSession) -> None:
        """The client is away: what comes waits in the queues of its durable subscriptions."""
        self._core.settle()
        for text, one in self._replaced.items():
            if one.durable != session.subscriptions[text].durable:
                self._forget(session, one)
        self._replaced.clear()
        for one in session.subscriptions.values():
            if one.id:
                self._leave(one, forget=False)

    def _leave(
        self, one: MqttSubscription, *, forget: bool,
        answered: Callable[[ReasonCode, str], None] | None = None,
    ) -> None:  # fmt: skip
        id, one.id = one.id, 0
        self._delivering.subscriptions.pop(id, None)
        self._core.settle()
        self._core.say(UnsubscribeRequest(id, forget))
        if answered is not None:
            self._asked[id] = answered

    def answered(self, id: int) -> None:
        """Subscribed, or Unsubscribed."""
        answered = self._asked.pop(id, None)
        if answered is not None:
            answered(ReasonCode.SUCCESS, "")

    def refused(self, refused: Refused) -> None:
        answered = self._asked.pop(refused.id, None)
        if answered is not None:
            answered(_REFUSED.get(refused.code, ReasonCode.UNSPECIFIED), refused.reason)

    def ended(self, id: int, session: MqttSession) -> MqttSubscription | None:
        """The core has ended a subscription."""
        one = self._delivering.subscriptions.pop(id, None)
        if one is not None and session.subscriptions.get(one.text) is one:
            del session.subscriptions[one.text]
            self._shared.discard(session.key, one)
        return one

    def _answer(
        self, answer: _Answer, place: int, code: ReasonCode, reason: str, now_us: int
    ) -> None:
        answer.codes[place] = code
        answer.reason = answer.reason or reason
        answer.missing -= 1
        if answer.missing:
            return
        properties = self._client.reason(answer.reason) if answer.reason else NONE
        self._client.send(
            SubscribeAck(answer.type, answer.packet_id, tuple(answer.codes), properties)
        )
        if answer.retained:
            self._slices.append(self._send_retained(answer.retained, now_us))

    def _send_retained(self, subscriptions: list[MqttSubscription], now_us: int) -> Slices:
        for one in subscriptions:
            yield
            parsed = self._parsed(one.text, "")
            is_one = not any(wild in parsed.topic_filter for wild in "+#")
            topic = parsed.topic_filter if is_one else ""
            for message in self._retained.matching(parse(one.predicate), topic, now_us):
                if message is not None:
                    self._delivering.retained(message, one, now_us)
                yield
