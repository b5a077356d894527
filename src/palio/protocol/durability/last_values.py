"""The last values of keys, for those who subscribe later: each broker holds those of the whole network.

    published here, or ──offer──▶ newest, on the disk ──(the commit of the message)──▶ committed ──▶ new
    carried here                  last/v/<key>                                                       subscribers

Of two values of a key the one with the larger order (wire/last_values.py) stays, whichever comes first, so
all brokers that got the same values hold the same. A key that was forgotten, or whose value has expired,
leaves a small mark, by which an older value that comes late is recognised; it goes after GONE_US.

Bounded in number and bytes: what does not fit is refused and counted, and then its key has no last value
rather than an old one. There are as many marks at most as there may be values; the oldest go first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Final

import msgspec

from palio.protocol.durability.bounds import LastValueBounds
from palio.protocol.durability.storage import Store, decoded
from palio.protocol.wire.batch import OVERHEAD_BYTES, Entry
from palio.protocol.wire.last_values import ValueOrder, forgetting, stamp_of
from palio.protocol.wire.message_headers import EXPIRES_US, RETAIN_FORGET, headers_of

PREFIX: Final = "last/"
_VALUES: Final = f"{PREFIX}v/"
GONE_US: Final = 7 * 24 * 3600 * 1_000_000
"""How long it is remembered that a key is gone: no value waits for longer on its way to a broker, unless that
is down for longer."""
_SWEPT_AT_ONCE: Final = 1000


class LastValue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The newest message of a key."""

    key: bytes
    time_us: int
    publisher: str
    number: int
    published_us: int
    origin: str
    """The broker from which this one has it."""
    attributes: bytes
    """Empty: the key is gone."""
    payload: bytes
    expires_us: int = 0

    @property
    def order(self) -> ValueOrder:
        return ValueOrder(self.time_us, self.publisher, self.number)

    @property
    def is_gone(self) -> bool:
        return not self.attributes

    @property
    def size(self) -> int:
        """The bytes that it counts; marks are bounded by their number."""
        if self.is_gone:
            return 0
        texts = len(self.attributes) + len(self.payload) + len(self.publisher)
        return OVERHEAD_BYTES + texts

    @property
    def due_us(self) -> int:
        """When it is to be removed; 0: never."""
        return self.time_us + GONE_US if self.is_gone else self.expires_us

    def entry(self) -> Entry:
        """The message; of a key that is gone, one that says so."""
        attributes, payload = self.attributes, self.payload
        if self.is_gone:
            attributes, payload = b"{}", forgetting(self.time_us, self.key)
        return Entry(self.publisher, self.number, self.published_us, attributes, payload)

    def gone(self) -> LastValue:
        """The mark that it leaves."""
        return msgspec.structs.replace(self, attributes=b"", payload=b"", expires_us=0)


def value_of(message: Entry, origin: str) -> LastValue | None:
    """A message as a last value; None: it is none."""
    headers = headers_of(message.payload)
    stamp = stamp_of(headers)
    if stamp is None:
        return None
    publisher, number, time, attributes, payload, _ = message
    if headers.get(RETAIN_FORGET):
        attributes = payload = b""
    expires = headers.get(EXPIRES_US, 0) if attributes else 0
    expires_us = expires if isinstance(expires, int) else 0
    return LastValue(
        stamp.key, stamp.time_us, publisher, number, time, origin, attributes, payload, expires_us
    )


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(LastValue)


def _stored_at(key: bytes) -> str:
    return _VALUES + key.hex()


class ValueRoom:
    """How much more fits; marks of what is gone do not count as values."""

    def __init__(self, newest: Mapping[bytes, LastValue], values: int, size: int) -> None:
        self._newest, self._values, self._bytes = newest, values, size
        self._sizes: dict[bytes, int] = {}
        """Of what has been found to fit, by key; 0: it will be gone."""

    def fits(self, value: LastValue) -> bool:
        """Whether a value fits beside those that were found to fit before."""
        before = self._newest.get(value.key)
        freed = self._sizes.get(value.key)
        if freed is None:
            freed = 0 if before is None else before.size
            is_new = before is None or before.is_gone
        else:
            is_new = not freed
        if value.is_gone:
            self._values += not is_new
            self._bytes += freed
            self._sizes[value.key] = 0
            return True
        if self._values < is_new or self._bytes < value.size - freed:
            return False
        self._values -= is_new
        self._bytes -= value.size - freed
        self._sizes[value.key] = value.size
        return True


class LastValues:
    def __init__(self, store: Store, bounds: LastValueBounds) -> None:
        self._store, self._bounds = store, bounds
        self.label = ""
        """What other brokers write on the messages that they carry here as last values."""
        self.bytes = 0
        self.refused = 0
        """Since start: values for which there was no room."""
        self._newest: dict[bytes, LastValue] = {}
        self._gone: dict[bytes, None] = {}
        """Keys that are gone, the oldest first."""
        self._due: list[tuple[int, bytes]] = []
        """A heap of times at which a key is to be looked at."""
        self._last_us = 0
        self.unsealed: list[LastValue] = []
        """What was offered since the last commit began."""
        self.uncommitted: dict[int, list[LastValue]] = {}
        """What commits hold that are under way, by ticket."""
        for key, encoded in store.scan(_VALUES):
            value = decoded(_decoder, key, encoded)
            self._note(value)
            self._last_us = max(self._last_us, value.time_us)
        self._due = [(value.due_us, value.key) for value in self._newest.values() if value.due_us]
        heapify(self._due)
        self._committed = {one.key: one for one in self._newest.values() if not one.is_gone}

    def __len__(self) -> int:
        """How many keys have a last value that subscribers may get."""
        return len(self._committed)

    @property
    def is_on(self) -> bool:
        return self._bounds.values > 0

    # ---- new values

    def next_time_us(self, key: bytes, now_us: int) -> int:
        """The time of a new value: later than all of its key, and all that were given before."""
        before = self._newest.get(key)
        self._last_us = max(now_us, self._last_us + 1, 0 if before is None else before.time_us + 1)
        return self._last_us

    def has_room(self, key: bytes, size: int) -> bool:
        """Whether a value of about so many bytes fits."""
        before = self._newest.get(key)
        is_new = before is None or before.is_gone
        held = len(self._newest) - len(self._gone)
        freed = 0 if before is None else before.size
        fits = self.bytes - freed + size + OVERHEAD_BYTES <= self._bounds.bytes
        return fits and held + is_new <= self._bounds.values

    def room(self) -> ValueRoom:
        """For values that are about to be offered together."""
        held = len(self._newest) - len(self._gone)
        return ValueRoom(self._newest, self._bounds.values - held, self._bounds.bytes - self.bytes)

    def offer(self, value: LastValue) -> bool:
        """Take a value, unless a newer one of its key is known. It is written with the next commit."""
        before = self._newest.get(value.key)
        if before is not None and before.order >= value.order:
            return False
        if not value.is_gone and not self.room().fits(value):
            self.refused += 1
            value = value.gone()
        self._set(value)
        self.unsealed.append(value)
        return not value.is_gone

    def _set(self, value: LastValue) -> None:
        self._note(value)
        self._store.put(_stored_at(value.key), _encode(value))
        if value.due_us:
            heappush(self._due, (value.due_us, value.key))
        if len(self._gone) > self._bounds.values:
            self._drop(next(iter(self._gone)))

    def _note(self, value: LastValue) -> None:
        before = self._newest.get(value.key)
        if before is not None:
            self.bytes -= before.size
            self._gone.pop(value.key, None)
        self._newest[value.key] = value
        self.bytes += value.size
        if value.is_gone:
            self._gone[value.key] = None

    def _drop(self, key: bytes) -> None:
        """Forget even that a key is gone."""
        self.bytes -= self._newest.pop(key).size
        del self._gone[key]
        self._store.delete(_stored_at(key))

    def sealed(self, ticket: int) -> None:
        """The commit with this ticket covers what was offered so far."""
        if self.unsealed:
            self.uncommitted[ticket], self.unsealed = self.unsealed, []

    def committed(self, ticket: int) -> list[LastValue]:
        """The values that subscribers may get from now on."""
        tickets = [one for one in self.uncommitted if one <= ticket]
        new: list[LastValue] = []
        for value in [value for one in tickets for value in self.uncommitted.pop(one)]:
            before = self._committed.get(value.key)
            if before is not None and before.order >= value.order:
                continue
            if value.is_gone:
                self._committed.pop(value.key, None)
            else:
                self._committed[value.key] = value
                new.append(value)
        return new

    # ---- for subscribers and other brokers

    def values(self) -> list[LastValue]:
        """All, those that are not committed yet and those that are gone among them."""
        return list(self._newest.values())

    def keys(self) -> list[bytes]:
        """Of all values that a subscriber who comes now is to get, when they are committed."""
        return [key for key, value in self._newest.items() if not value.is_gone]

    def find(self, key: bytes, now_us: int) -> LastValue | None:
        """The value of a key that subscribers may get."""
        value = self._committed.get(key)
        is_over = value is not None and 0 < value.expires_us <= now_us
        return None if is_over else value

    def awaited(self, key: bytes) -> ValueOrder | None:
        """The order of the newest value of a key, while it waits for its commit."""
        newest = self._newest.get(key)
        if newest is None or newest.is_gone or self._committed.get(key) is newest:
            return None
        return newest.order

    def is_safe(self, key: bytes, order: ValueOrder) -> bool:
        """Whether the value of a key with this order is committed, or a newer one, or the key is gone."""
        newest, committed = self._newest.get(key), self._committed.get(key)
        if newest is None or newest.is_gone:
            return True
        return committed is not None and committed.order >= order

    def __iter__(self) -> Iterator[LastValue]:
        """Those that subscribers may get."""
        return iter(list(self._committed.values()))

    # ---- time

    @property
    def deadline_us(self) -> int | None:
        """When to call `wake`."""
        return self._due[0][0] if self._due else None

    def wake(self, now_us: int) -> None:
        """Remove values that have expired, and marks that are old; some of them."""
        for _ in range(_SWEPT_AT_ONCE):
            if not self._due or self._due[0][0] > now_us:
                return
            _, key = heappop(self._due)
            value = self._newest.get(key)
            if value is None or not 0 < value.due_us <= now_us:
                continue
            if value.is_gone:
                self._drop(key)
            else:
                self._committed.pop(key, None)
                self._set(value.gone())
