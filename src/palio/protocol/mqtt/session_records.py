"""Sessions that outlive their connections, as they are stored: what a restart of the broker needs.

    mqtt/s/<client id, identity>    its subscriptions and its will; also of a session that does not stay, if it
                                    has a will
    mqtt/x/<client id, identity>    its exchanges of QoS 2: those of the client, and how far each subscription is

Queues of messages are the core's, and so are their positions. A record is written together with the request
to the core that it belongs to, so that one commit holds both. Messages of QoS 1 that were not acknowledged come
again after a crash with new packet ids; those of QoS 2 keep theirs (progress.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import msgspec

from palio.protocol.durability.storage import Store, decoded
from palio.protocol.mqtt.content import MqttMessage
from palio.protocol.mqtt.packets.values import SubscriptionOptions, Will
from palio.protocol.mqtt.progress import DeliveryProgress, Sent
from palio.protocol.mqtt.session import InFlight, MqttSession, MqttSubscription, SessionKey

_SESSIONS, _EXCHANGES = "mqtt/s/", "mqtt/x/"
_FORGOTTEN = MqttMessage("", b"", 2, True, {})
"""A message that the client has, and whose PUBREL may come again."""


class _StoredSubscription(msgspec.Struct, frozen=True, array_like=True):
    text: str
    predicate: str
    options: SubscriptionOptions
    identifier: int
    durable: str
    group: str


class _StoredSession(msgspec.Struct, frozen=True, array_like=True):
    identity: str
    client_id: str
    expiry_s: int
    subscriptions: tuple[_StoredSubscription, ...]
    will: Will | None = None


class _StoredExchanges(msgspec.Struct, frozen=True, array_like=True):
    incoming: dict[int, int]
    progress: dict[str, tuple[int, dict[int, Sent]]]
    """By the name of a durable subscription: `top` and `outstanding`."""


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_StoredSession)
_exchanges_decoder = msgspec.msgpack.Decoder(_StoredExchanges)


def _name(key: SessionKey) -> str:
    return f"{quote(key.client_id, safe='')}/{quote(key.identity, safe='')}"


class SessionRecords:
    def __init__(self, store: Store) -> None:
        self.store = store

    def save(self, session: MqttSession) -> None:
        """Write down a session, but for its exchanges, if anything of it outlives its connection: a queue of its own does, if the
        client came back to a session that stayed, and asked that it ends now."""
        session.is_unsaved = False
        has_queue = any(one.progress is not None for one in session.subscriptions.values())
        if not session.expiry_s and session.will is None and not has_queue:
            self.delete(session)
            return
        subscriptions = tuple(
            [
                _StoredSubscription(
                    one.text, one.predicate, one.options, one.identifier, one.durable, one.group
                )
                for one in session.subscriptions.values()
                if one.durable and (session.expiry_s or not one.group)
            ]
        )
        record = _StoredSession(*session.key, session.expiry_s, subscriptions, session.will)
        session.is_stored = True
        self.store.put(_SESSIONS + _name(session.key), _encode(record))

    def save_changes(self, session: MqttSession) -> None:
        """Write down what has changed of its subscriptions and its exchanges of QoS 2."""
        if session.is_unsaved:
            self.save(session)
        if not session.is_changed:
            return
        session.is_changed = False
        if not session.expiry_s:
            return
        progress = {
            one.durable: (one.progress.top, one.progress.outstanding)
            for one in session.subscriptions.values()
            if one.progress is not None and one.progress.top
        }
        record = _StoredExchanges(session.incoming, progress)
        self.store.put(_EXCHANGES + _name(session.key), _encode(record))

    def delete(self, session: MqttSession) -> None:
        if session.is_stored:
            session.is_stored = False
            self.store.delete(_SESSIONS + _name(session.key))
            self.store.delete(_EXCHANGES + _name(session.key))

    def load(self) -> Iterator[MqttSession]:
        """All sessions that are stored."""
        for key, value in self.store.scan(_SESSIONS):
            record = decoded(_decoder, key, value)
            session = MqttSession(SessionKey(record.identity, record.client_id))
            session.expiry_s, session.is_stored = record.expiry_s, True
            session.will = record.will
            for one in record.subscriptions:
                made = MqttSubscription(one.text, one.predicate, one.options)
                made.identifier, made.durable, made.group = one.identifier, one.durable, one.group
                if one.durable and not one.group:
                    made.progress = DeliveryProgress(session.reserved)
                session.subscriptions[one.text] = made
            self._load_exchanges(session)
            yield session

    def _load_exchanges(self, session: MqttSession) -> None:
        key = _EXCHANGES + _name(session.key)
        value = self.store.get(key)
        if value is None:
            return
        record = decoded(_exchanges_decoder, key, value)
        session.incoming = record.incoming
        for one in session.subscriptions.values():
            if one.progress is None or one.durable not in record.progress:
                continue
            one.progress.top, one.progress.outstanding = record.progress[one.durable]
            for position, sent in one.progress.outstanding.items():
                if sent.is_received:
                    waiting = InFlight(_FORGOTTEN, [one], position, 2, False)
                    waiting.is_received = True
                    session.in_flight[sent.packet_id] = waiting
                elif sent.packet_id:
                    session.reserved.add(sent.packet_id)
