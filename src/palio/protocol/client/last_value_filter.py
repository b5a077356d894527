"""Which messages of a subscription with last values are new to the application.

A last value may come twice, as the broker gives it and live, and an older value of a key after a newer one:
on another path, or from another broker after a reconnect. The filter remembers the newest of each key, of so
many keys; of a key that it has forgotten, the next one counts as new.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from palio.protocol.wire.headers import DeliverHeader
from palio.protocol.wire.last_values import ValueOrder, may_be_retained, stamp_of
from palio.protocol.wire.message_headers import headers_of

KEYS_MAX: Final = 100_000


class LastValueFilter:
    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._newest: OrderedDict[bytes, ValueOrder] = OrderedDict()

    def is_new(self, header: DeliverHeader, payload: bytes) -> bool:
        """Record a message. False: one of its key that is as new has been there."""
        if not may_be_retained(payload):
            return True
        stamp = stamp_of(headers_of(payload))
        if stamp is None:
            return True
        order = ValueOrder(stamp.time_us, header.publisher, header.number)
        before = self._newest.get(stamp.key)
        if before is not None and before >= order:
            return False
        self._newest[stamp.key] = order
        self._newest.move_to_end(stamp.key)
        if len(self._newest) > self._keys_max:
            self._newest.popitem(last=False)
        return True
