"""The table of publishers is bounded, in time and for each identity."""

from __future__ import annotations

import pytest

from palio.protocol.durability import publishers
from palio.protocol.durability.publishers import PublisherTable
from tests.protocol.durability.memory_store import MemoryStore

DAY_US = 86_400_000_000


def test_an_identity_with_very_many_publishers_loses_the_longest_silent_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publishers, "PUBLISHERS_MAX", 100)
    store = MemoryStore()
    table = PublisherTable(store, 7 * DAY_US)
    quiet = table.row("bob/app/1")
    quiet.number = quiet.safe = 5
    table.put([quiet], 1)
    for i in range(1000):
        row = table.row(f"ann/app/{i}")
        row.number = row.safe = 1
        row.heard_us = i
        table.put([row], 1)
    unsafe = table.row("ann/app/unsafe")
    unsafe.number = 1  # accepted, and not committed
    for i in range(1000, 1200):
        row = table.row(f"ann/app/{i}")
        row.number = row.safe = 1
        row.heard_us = i
        table.put([row], 1)
    own = [name for name in table.rows if name.startswith("ann/")]
    assert len(own) <= 111
    assert "ann/app/1199" in table.rows
    assert "ann/app/0" not in table.rows
    assert "ann/app/unsafe" in table.rows
    assert table.safe("bob/app/1") == 5  # others keep theirs
    again = PublisherTable(store, 7 * DAY_US)
    assert set(again.rows) == {name for name in table.rows if name != "ann/app/unsafe"}
