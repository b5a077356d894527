"""The sessions of a broker, and who holds each of them now.

    CONNECT ─▶ take: the session that is there, or a new one; who held it before is told
    the connection ends ─▶ its connection holds it while the client is away, and ends it when it expires
    the core ended that, or the broker has restarted ─▶ nobody holds it ─▶ `expired`

Sessions that outlive connections are stored (session_records.py) and survive a restart; then their time
begins anew. So are wills: a restart ended the connections of all clients, and `bereaved` says whose wills wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from palio.protocol.mqtt.counts import MqttCounts
from palio.protocol.mqtt.session import MqttSession, SessionKey
from palio.protocol.mqtt.session_records import SessionRecords
from palio.protocol.mqtt.shared import QueueName, SharedQueues

_SECOND = 1_000_000


class Holder(Protocol):
    """The connection of a session."""

    def taken_over(self) -> None:
        """Another connection has the session now."""
        ...


class Sessions:
    """`new_client_id` makes ids for clients that have none."""

    def __init__(
        self, sessions_max: int, records: SessionRecords, now_us: int,
        new_client_id: Callable[[], str],
    ) -> None:  # fmt: skip
        self.new_client_id = new_client_id
        self.records = records
        self.counts = MqttCounts()
        self._max = sessions_max
        self._sessions = {session.key: session for session in records.load()}
        self.shared = SharedQueues(records.store, self._sessions.values())
        self._bereaved = [key for key, one in self._sessions.items() if one.will is not None]
        self._holders: dict[SessionKey, Holder] = {}
        self._ends_us = {
            key: now_us + session.expiry_s * _SECOND for key, session in self._sessions.items()
        }
        """When sessions expire that nobody holds."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def has_room(self) -> bool:
        """May another session wait for its client?"""
        return len(self._sessions) <= self._max

    def bereaved(self, count: int) -> list[SessionKey]:
        """The next clients, at most so many, that a restart has cut off and whose wills are due, or soon."""
        found, self._bereaved = self._bereaved[:count], self._bereaved[count:]
        return [key for key in found if self.waiting(key) is not None]

    def take(self, key: SessionKey, holder: Holder) -> MqttSession | None:
        """The session of before, if there is one; its connection is told."""
        before = self._holders.get(key)
        if before is not None and before is not holder:
            before.taken_over()
        self._holders[key] = holder
        self._ends_us.pop(key, None)
        return self._sessions.get(key)

    def waiting(self, key: SessionKey) -> MqttSession | None:
        """The session, if nobody holds it."""
        return None if key in self._holders else self._sessions.get(key)

    def begin(self, key: SessionKey) -> MqttSession:
        """A new session instead of the one of before."""
        before = self._sessions.get(key)
        session = self._sessions[key] = MqttSession(key)
        session.is_stored = before is not None and before.is_stored
        return session

    def release(self, key: SessionKey, holder: Holder, now_us: int) -> None:
        """A connection holds its session no more; the session stays."""
        if self._holders.get(key) is holder:
            del self._holders[key]
            self._ends_us[key] = now_us + self._sessions[key].expiry_s * _SECOND

    def end(self, key: SessionKey, holder: Holder) -> None:
        """The session is over."""
        if self._holders.get(key) is holder:
            del self._holders[key]
            session = self._sessions.pop(key, None)
            if session is not None:
                self.records.delete(session)
                for one in session.subscriptions.values():
                    self.shared.discard(key, one)

    def expired(self, now_us: int) -> list[QueueName]:
        """End sessions that nobody holds and whose time is over; gives the durable subscriptions that end
        with them."""
        waiting = {*self._bereaved}
        over = [
            key
            for key, ends_us in self._ends_us.items()
            if ends_us <= now_us and key not in waiting
        ]
        found = self.shared.take_unused()
        for key in over:
            del self._ends_us[key]
            session = self._sessions.pop(key)
            self.records.delete(session)
            found += [
                QueueName(key.identity, one.durable, one.group)
                for one in session.subscriptions.values()
                if self.shared.leave(key, one)
            ]
        return found
