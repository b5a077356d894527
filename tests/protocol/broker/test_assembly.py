"""How a broker is put together from its store."""

from __future__ import annotations

from random import Random

import pytest

from palio.errors import PalioError
from palio.protocol.broker.assembly import assemble
from palio.protocol.broker.settings import Settings
from palio.protocol.durability.storage import DamagedStore
from tests.protocol.durability.memory_store import MemoryStore
from tests.protocol.exchange import ANYBODY


def assembled(store: MemoryStore, name: str = "a") -> None:
    assemble(Settings(name, ANYBODY), store, 0, Random(1).randbytes, False)


def test_a_store_has_an_owner() -> None:
    store = MemoryStore()
    assembled(store)
    assembled(store)
    with pytest.raises(PalioError, match="belongs to broker 'a', not to 'b'"):
        assembled(store, "b")


@pytest.mark.parametrize("key", ["broker/name", "broker/epoch"])
def test_a_name_or_an_epoch_that_cannot_be_read(key: str) -> None:
    store = MemoryStore()
    assembled(store)
    store.put(key, b"\xc0")
    with pytest.raises(DamagedStore, match="not UTF-8"):
        assembled(store)
