"""What a broker publishes itself: delayed messages at their time, and dead letters.

A dead letter is a message that a durable subscription did not process, published anew by its home broker:

    {"x": 5} ──▶ {"dead_letter": "work", "dead_queue": "ann/work", "dead_reason": "deliveries",
                  "deliveries": 3, "dead_publisher": "bob/shop/5f", "dead_number": 17, "original": {"x": 5}}

Objects in messages are flattened, so the attribute `x` is `original.x` now. Body and headers stay, but
for the instant at which the message expires, and that it is a last value. Whoever subscribes to `dead_letter = 'work'` gets it, as far
as grants allow. The store decides what is dead, and stores both changes at once (republishing.py).
"""

from __future__ import annotations

import json
from functools import partial

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.protocol.broker.data_path import DataPath
from palio.protocol.broker.durable_names import DurableNames
from palio.protocol.durability.republishing import DeadEntry, Republishing
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.codes import DeadReason
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.last_values import without_retain
from palio.protocol.wire.message_headers import EXPIRES_US, without
from palio.protocol.wire.publishers import broker_key

SESSION = "dead-letters"
ORIGINAL = "original"


class DeadLetters:
    def __init__(
        self, me: str, store: Republishing, data_path: DataPath, names: DurableNames, limits: Limits
    ) -> None:
        self._publisher = broker_key(me, SESSION)
        self._store = store
        self._data_path = data_path
        self._names = names
        self._limits = limits

    def publish(self, now_us: int) -> None:
        """Publish what is dead, and what was delayed until now; a part of it in each turn."""
        retaining = self._data_path.retaining
        for due in self._store.take_due(now_us):
            message = retaining.restamped(due, now_us)
            store = partial(retaining.release, message, now_us=now_us)
            if not self._data_path.publish_own(message, store):
                self._store.drop_due(now_us)
        for dead in self._store.take():
            number = self._store.number(self._publisher, now_us)
            payload = without_retain(without(dead.message.payload, EXPIRES_US))
            entry = Entry(self._publisher, number, now_us, self._attributes(dead), payload)
            dead_letter = MessageBatch.of([entry], durable=True)

            store = partial(self._store.publish, dead, dead_letter, now_us=now_us)
            if not self._data_path.publish_own(dead_letter, store):
                self._store.drop(dead)

    def _attributes(self, dead: DeadEntry) -> bytes:
        name = self._names.name(dead.name)
        reason = DeadReason.DELIVERIES if dead.rejection is None else DeadReason.REJECTED
        facts = {
            "dead_letter": name.called,
            "dead_queue": str(name),
            "dead_reason": reason.value,
            "deliveries": dead.deliveries,
            "dead_publisher": dead.message.publisher,
            "dead_number": dead.message.number,
        }
        if dead.rejection:
            facts["dead_text"] = dead.rejection
        text = json.dumps(facts, ensure_ascii=False).encode()
        with_original = b'%s, "%s": %s}' % (text[:-1], ORIGINAL.encode(), dead.message.attributes)
        if len(with_original) <= self._limits.attributes:
            try:
                Message.from_json(with_original)
            except InvalidValue:  # it is nested as deeply as may be
                return text
            return with_original
        return text
