"""References are released in parts, each once."""

from __future__ import annotations

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.releases import RELEASED_AT_ONCE, Releases
from palio.protocol.wire.batch import Entry, MessageBatch

from .memory_store import MemoryStore


def test_a_part_is_released_at_once_and_the_others_later() -> None:
    parts: list[list[int]] = []
    releases = Releases(lambda positions: parts.append(list(positions)))
    releases.add(range(10))
    assert not releases
    releases.add(range(100, 100 + 2 * RELEASED_AT_ONCE + 1))
    releases.add([1, 2, 3])
    while releases:
        releases.release_some()
    assert [len(part) for part in parts] == [10, RELEASED_AT_ONCE, RELEASED_AT_ONCE, 1, 3]
    assert parts[1] + parts[2] + parts[3] == list(range(100, 100 + 2 * RELEASED_AT_ONCE + 1))


def test_segments_are_freed_after_the_last_part() -> None:
    store, count = MemoryStore(), RELEASED_AT_ONCE + 1
    journal = Journal(store, Bounds())
    batch = MessageBatch.of([Entry("p", n, 0, b"{}", b"") for n in range(count)], durable=True)
    first = journal.append(batch, batch.sizes(), [1] * count, 0, False)
    journal.seal()
    journal.releases.add(range(first, first + count))
    journal.sweep(0, 1 << 62)
    assert 0 < len(journal) < count
    journal.releases.release_some()
    journal.sweep(0, 1 << 62)
    assert len(journal) == 0
