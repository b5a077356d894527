"""Placing: into which queues and streams messages go, many at a time.

    messages   0  1  2  3  4         matches of each ──▶ Ways, found once for each set of matches
    part       {Ways(x): [0, 2, 3], Ways(x, y): [1], Ways(): [4]}
    place      journal: all, one after the other     x: 0 1 2 3     y: 1

A queue or stream gets its messages in the order of the journal, whatever else they match.
"""

from __future__ import annotations

from collections.abc import Sequence

from palio.protocol.answers import Matched
from palio.protocol.durability.kept import Message, Pack
from palio.protocol.durability.known import Known
from palio.protocol.durability.ledger import Sent
from palio.protocol.durability.outgoing import Key, Keys
from palio.protocol.durability.queues import Full, Queue
from palio.protocol.durability.streams import Outbound
from palio.protocol.durability.vault import Vault

_WAYS_MAX = 10_000


class Ways:
    """Where messages go that match the same subscriptions."""

    __slots__ = ("destinations", "queues", "streams")

    def __init__(self, queues: list[Queue], streams: dict[Outbound, tuple[str, ...]]) -> None:
        self.queues = queues
        self.streams = list(streams.items())
        self.destinations: list[Queue | Outbound] = [*queues, *streams]

    @classmethod
    def of(cls, found: list[Known]) -> Ways:
        queues: list[Queue] = []
        streams: dict[Outbound, tuple[str, ...]] = {}
        for known in found:
            destination = known.destination
            if isinstance(destination, Queue):
                queues.append(destination)
            else:
                streams[destination] = streams.get(destination, ()) + known.labels
        return cls(queues, streams)

    @property
    def is_full(self) -> bool:
        return any(destination.is_full for destination in self.destinations)

    def fits(self, count: int, size: int) -> bool:
        """There is room everywhere for so many messages of so many bytes together."""
        return all(destination.fits(count, size) for destination in self.destinations)


class Placing:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._ways: dict[Keys, Ways] = {}

    def clear(self) -> None:
        """Forget all ways: subscriptions have changed."""
        self._ways.clear()

    def find(self, keys: Keys) -> Ways:
        """Where a message goes that matches these, but those that a replay still gives it to."""
        ways = self._ways.get(keys)
        if ways is None:
            known = self._vault.known
            found = [k for key in keys if (k := known.get(key)) is not None and k.cursor is None]
            if len(self._ways) >= _WAYS_MAX:
                self._ways.clear()
            ways = self._ways[keys] = Ways.of(found)
        return ways

    def part(self, matches: Sequence[Keys] | Matched[Key]) -> dict[Ways, list[int]]:
        """Which messages go the same ways."""
        if isinstance(matches, Matched):
            return {self.find(keys): places for keys, places in matches.parts()}
        parts: dict[Keys, list[int]] = {}
        for at, keys in enumerate(matches):
            parts.setdefault(keys, []).append(at)
        return {self.find(keys): places for keys, places in parts.items()}

    def place(
        self, messages: list[Message] | Pack, sizes: list[int], parts: dict[Ways, list[int]]
    ) -> list[Queue]:
        """Put messages into the journal, queues and streams; the queues that do not block."""
        references = [0] * len(messages)
        queued: dict[Queue, list[int]] = {}
        sent: dict[Outbound, list[Sent]] = {}
        for ways, places in parts.items():
            for at in places:
                references[at] = len(ways.destinations)
            for queue in ways.queues:
                queued.setdefault(queue, []).extend(places)
            for stream, labels in ways.streams:
                sent.setdefault(stream, []).extend([(at, labels) for at in places])
        first = self._vault.journal.extend(messages, sizes, references)
        for stream, entries in sent.items():
            entries.sort()
            stream.push([(first + at, labels) for at, labels in entries])
            self._vault.pushed[stream] = None
        for queue, places in queued.items():
            places.sort()
            queue.push([first + at for at in places], sum([sizes[at] for at in places]))
            self._vault.pushed[queue] = None
        return [queue for queue in queued if queue.full is not Full.BLOCK]
