"""What is known of a durable subscription, here or at another broker, and its replay.

    k/<broker, name>   predicate, since, version, policy, cursor

    journal   1 2 3 4 5 6 7 8 9 10 11 12
                    │   │            │
                  since cursor       everything from the cursor on is still to be looked at

A subscription that is new gets everything of the journal that was published here since its start
time. The cursor goes through the journal in steps, waits while the destination is full, and holds
what it needs. Until it is at the end, new messages are left to it; then they go directly. So each
message is judged once for each subscription, and in order. The cursor is stored in the same commit
as the entries that it made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from palio.protocol.durability.journal import Journal
from palio.protocol.durability.queues import Full, Queue
from palio.protocol.durability.streams import Outbound
from palio.protocol.words import Durable

Matching: TypeAlias = Callable[[list[bytes]], Sequence[bool]]
"""Which of these attributes (JSON) a subscription matches."""


_STEP = 2048
"""How many messages a replay looks at before something else has its turn, about."""


class Fact(msgspec.Struct, frozen=True, array_like=True):
    """The stored form."""

    broker: str
    name: str
    durable: Durable
    full: Full
    cursor: int | None


fact_decoder = msgspec.msgpack.Decoder(Fact)


def label(name: str, durable: Durable) -> str:
    """What a subscription is called between brokers: a name that is used again is another one."""
    return f"{durable.version}@{name}"


class Known:
    """A subscription. `destination` is its queue, or the stream to its home."""

    __slots__ = ("cursor", "destination", "fact", "key", "label", "labels", "matching")

    def __init__(self, fact: Fact, destination: Queue | Outbound) -> None:
        self.fact = fact
        self.key = (fact.broker, fact.name)
        self.label = label(fact.name, fact.durable)
        self.labels = (self.label,)
        self.cursor = fact.cursor
        self.matching: Matching | None = None
        self.destination = destination

    def stored(self) -> Fact:
        return msgspec.structs.replace(self.fact, cursor=self.cursor)

    @property
    def can_replay(self) -> bool:
        return (
            self.cursor is not None and self.matching is not None and not self.destination.is_full
        )

    def replay(self, journal: Journal) -> None:
        """Look at some more of the journal."""
        end = (self.cursor or 0) + _STEP
        while self.cursor is not None and self.cursor < end and self.can_replay:
            self._look(self.cursor, journal)
            if self.cursor >= journal.next:
                self.cursor = None

    def _look(self, cursor: int, journal: Journal) -> None:
        """At one batch, as far as there is room for what matches."""
        page, self.cursor = journal.page(cursor)
        hits = self.matching([m.attributes for _, m in page]) if page and self.matching else ()
        for (position, _), is_hit in zip(page, hits, strict=True):
            if not is_hit:
                continue
            if self.destination.is_full:
                self.cursor = position
                return
            size = journal.retain(position)
            if isinstance(self.destination, Queue):
                self.destination.push((position,), size)
            else:
                self.destination.push(((position, self.labels),))
