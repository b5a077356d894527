"""Subscriptions with sinks as they are stored, beside the durable subscriptions that hold their events.

    sinks/<identity>/<id>    a record

A new record is put before its durable subscription is made, so the commit of that holds both.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import msgspec

from palio.protocol.durability.storage import Store, decoded

_PREFIX = "sinks/"


class SinkRecord(msgspec.Struct, frozen=True, array_like=True):
    """`document` has the secrets of the sink. `version` counts its predicates: each has a queue of its own."""

    identity: str
    id: str
    version: int
    document: bytes

    @property
    def durable(self) -> str:
        """The name of the durable subscription, among those of the identity."""
        return durable_name(self.id, self.version)


def durable_name(id: str, version: int) -> str:
    return f"sink-{id}-{version}"


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(SinkRecord)


class SinkRecords:
    def __init__(self, store: Store) -> None:
        self._store = store

    def save(self, record: SinkRecord) -> None:
        self._store.put(_key(record.identity, record.id), _encode(record))

    def delete(self, identity: str, id: str) -> None:
        self._store.delete(_key(identity, id))

    def load(self) -> Iterator[SinkRecord]:
        for key, value in self._store.scan(_PREFIX):
            yield decoded(_decoder, key, value)


def _key(identity: str, id: str) -> str:
    return f"{_PREFIX}{quote(identity, safe='')}/{id}"
