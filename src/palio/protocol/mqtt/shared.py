"""The queues of shared subscriptions: which sessions take part in each, so that it ends with the last of them.

    mqtt/g/<identity>/<name>     there is such a queue

Members of one share may have sessions that stay and others; all take from one queue, so that each message goes
to one of them. The record says after a crash which queues may have lost their last member.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

from palio.protocol.durability.storage import Store
from palio.protocol.mqtt.session import MqttSession, MqttSubscription, SessionKey

GROUP = "mqtt"
"""The group of their durable subscriptions."""
_PREFIX = "mqtt/g/"


class QueueName(NamedTuple):
    """A durable subscription."""

    identity: str
    durable: str
    group: str = ""


class SharedQueues:
    def __init__(self, store: Store, sessions: Iterable[MqttSession]) -> None:
        """`sessions` are those of before a restart."""
        self._store = store
        self._members: dict[QueueName, set[SessionKey]] = {}
        for key, _ in store.scan(_PREFIX):
            identity, _, durable = key[len(_PREFIX) :].partition("/")
            self._members[QueueName(unquote(identity), unquote(durable), GROUP)] = set()
        for session in sessions:
            for one in session.subscriptions.values():
                self.join(session.key, one)

    def join(self, session: SessionKey, one: MqttSubscription) -> None:
        if one.group:
            name = QueueName(session.identity, one.durable, one.group)
            if name not in self._members:
                self._store.put(_key(name), b"")
                self._members[name] = set()
            self._members[name].add(session)

    def leave(self, session: SessionKey, one: MqttSubscription) -> bool:
        """Whether nobody is left, so that the queue must end; also for a queue that is not shared."""
        if not one.group:
            return bool(one.durable)
        self.discard(session, one)
        name = QueueName(session.identity, one.durable, one.group)
        if name not in self._members or self._members[name]:
            return False
        self._remove(name)
        return True

    def discard(self, session: SessionKey, one: MqttSubscription) -> None:
        """As `leave`, when the core cannot be told: `take_unused` has the queue later."""
        self._members.get(QueueName(session.identity, one.durable, one.group), set()).discard(
            session
        )

    def take_unused(self) -> list[QueueName]:
        """The queues that have no member: they must end."""
        found = [name for name, members in self._members.items() if not members]
        for name in found:
            self._remove(name)
        return found

    def _remove(self, name: QueueName) -> None:
        del self._members[name]
        self._store.delete(_key(name))


def _key(name: QueueName) -> str:
    return f"{_PREFIX}{quote(name.identity, safe='')}/{quote(name.durable, safe='')}"
