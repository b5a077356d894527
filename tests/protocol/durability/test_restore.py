"""Values that cannot be read back are one error, which names the key."""

from __future__ import annotations

import msgspec
import pytest

from palio.protocol.durability import keys
from palio.protocol.durability.message_store import MessageStore
from palio.protocol.durability.repair import repair
from palio.protocol.durability.storage import DamagedStore
from tests.protocol.durability.memory_store import MemoryStore

PREFIXES = [
    keys.SEGMENT_METADATA, keys.RECORDS, keys.STREAMS, keys.SUBSCRIPTIONS, keys.INCOMING,
    keys.PUBLISHERS,
]  # fmt: skip
MISFITS = {
    keys.SEGMENT_METADATA: (10, [1 << 40], [(1, 0, True)]),
    keys.RECORDS: (0, 1, {f"{keys.STREAMS}rome": [(1, 3, [])]}),
}
"""Values that can be decoded, and make no sense."""


def stored(values: dict[str, bytes]) -> MemoryStore:
    store = MemoryStore()
    keys.put_format(store)
    for key, value in values.items():
        store.put(key, value)
    return store


def open_store(store: MemoryStore) -> MessageStore:
    return MessageStore(store, "milan", "epoch", 0)


@pytest.mark.parametrize("value", [b"", b"\xff", b"\x93\x01", msgspec.msgpack.encode({"a": 1})])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_values_that_cannot_be_decoded(prefix: str, value: bytes) -> None:
    key = keys.numbered(prefix, 1)
    with pytest.raises(DamagedStore, match="cannot be decoded") as caught:
        open_store(stored({key: value}))
    assert caught.value.key == key


@pytest.mark.parametrize("prefix", MISFITS)
def test_values_that_do_not_fit_together(prefix: str) -> None:
    values = {keys.numbered(prefix, 1): msgspec.msgpack.encode(MISFITS[prefix])}
    values[f"{keys.STREAMS}rome"] = msgspec.msgpack.encode((1, 1, 0, ()))
    with pytest.raises(DamagedStore, match="does not fit together"):
        open_store(stored(values))


def test_an_entry_without_its_message() -> None:
    record = (0, 9, {f"{keys.STREAMS}rome": [(1, 3, [5], [["1@far"]])]})
    store = stored({keys.numbered(keys.RECORDS, 1): msgspec.msgpack.encode(record)})
    store.put(f"{keys.STREAMS}rome", msgspec.msgpack.encode((1, 1, 0, ())))
    with pytest.raises(DamagedStore, match="message 5 is not in the journal"):
        open_store(store)
    report = repair(store, "milan", [])
    assert report.queues == {"the stream to rome": 3}
    assert open_store(store).statistics().backlogs == {"rome": 0}
