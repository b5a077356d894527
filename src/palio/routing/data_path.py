"""The data path: to which peers does a message go?

The poset decides what is forwarded; messages are matched by a forwarding table of what the peers
said. Few filters are evaluated one by one, until that has cost more than to compile a table. Above
`EVALUATED_MAX` filters there is always a table, of the engine pivot, and what peers say makes new
versions of it when the next message comes. Messages that come together are matched together, as
the JSON texts that they are.

    peer ──▶ buckets of at most BUCKET_MAX filters ──▶ interfaces "0", "1", ... of the table

A table forgets whole interfaces only. Hence the buckets: to take one filter back, its bucket is
compiled again, not all that the peer said. After as many changes as half of the filters, the
table is compiled as a whole, so the versions never weigh more than the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.routing.packets import Peer

if TYPE_CHECKING:
    import pyarrow as pa

    from palio.matching.table import ForwardingTable

EVALUATED_MAX = 256  # filters: about 0.2 ms a message; compiling takes 10 ms and more
EVALUATIONS_MAX = 50_000  # of filters since the last change; about as long as compiling
PARSING = 20  # evaluations: as long as to read a message
BATCH_MIN = 8  # messages: fewer are quicker one by one
BUCKET_MAX = 256  # filters of one interface of the table


class Peers:
    """The peers of the interfaces of a table, by number: each is looked up when it is asked for, since
    with every change the numbers are others."""

    __slots__ = ("_buckets", "_known", "_several", "_table")

    def __init__(
        self, table: ForwardingTable, buckets: Mapping[str, _Bucket], several: Mapping[Peer, int]
    ) -> None:
        self._table = table
        self._buckets = buckets
        self._several = several
        self._known: dict[int, Peer] = {}

    def __getitem__(self, interface: int) -> Peer:
        found = self._known.get(interface)
        if found is None:
            found = self._buckets[self._table.named(interface)].peer
            self._known[interface] = found
        return found

    def is_several(self, peer: Peer) -> bool:
        """Does it have more than one interface?"""
        return self._several[peer] > 1


class Matches(NamedTuple):
    """Which interfaces of a table messages match."""

    ends: Any
    """Those of message i are found[ends[i]:ends[i + 1]]."""
    found: Any
    peers: Peers
    """By interface; the same while nobody says anything new. A peer may be there twice."""


class _Bucket:
    """Filters of one peer that are one interface of the table."""

    __slots__ = ("filters", "interface", "peer")

    def __init__(self, peer: Peer, interface: str) -> None:
        self.peer = peer
        self.interface = interface
        self.filters: dict[Filter, None] = {}


class DataPath:
    """The filters of all peers, ready to match."""

    def __init__(self) -> None:
        self._places: dict[Peer, dict[Filter, _Bucket]] = {}
        self._open: dict[Peer, _Bucket] = {}  # where the next filter of a peer goes
        self._buckets: dict[str, _Bucket] = {}
        self._made = 0  # buckets, ever
        self._filters = 0
        self._table: ForwardingTable | None = None
        self._compiled: set[str] = set()  # interfaces of the table
        self._new: dict[_Bucket, list[Filter]] = {}  # not in the table yet
        self._stale: dict[_Bucket, None] = {}  # with filters in the table that are gone
        self._changes = 0  # since the table was compiled as a whole
        self._evaluations = 0  # since the last change, while there is no table
        self._peer_of: Peers | None = None
        self._several: dict[Peer, int] = {}  # how many buckets each has

    def __len__(self) -> int:
        """How many filters there are, each counted for every peer that said it."""
        return self._filters

    def change(self, peer: Peer, news: Mapping[Filter, bool]) -> None:
        """A peer has said filters (True) or taken them back (False)."""
        for found, is_said in news.items():
            (self._add if is_said else self._remove)(peer, found)

    def peers(self, message: Message) -> set[Peer]:
        """The peers of which a filter matches the message."""
        if not self._needs_table(1):
            return {
                peer
                for peer, filters in self._places.items()
                if any(f.matches(message) for f in filters)
            }
        table = self._current()
        return {self._buckets[interface].peer for interface in table.forward(message)}

    def peers_of(self, texts: Sequence[bytes]) -> list[list[Peer]]:
        """The same for many messages, which are JSON objects; InvalidValue if one is not. Each
        peer is there once, in an order that depends on nothing but what was said."""
        import pyarrow as pa

        # the engine looks for bad UTF-8
        column = pa.array(texts, pa.binary()).view(pa.string()) if len(texts) >= BATCH_MIN else None
        matches = self.matches(column) if column is not None else None
        if matches is None:
            return [sorted(self.peers(Message.from_json(text))) for text in texts]
        peer_of, found = matches.peers, matches.found.tolist()
        answers: list[list[Peer]] = []
        for start, end in pairwise(matches.ends.tolist()):
            if end <= start + 1:
                answers.append([peer_of[found[start]]] if start < end else [])
            else:
                answers.append(list(dict.fromkeys([peer_of[i] for i in found[start:end]])))
        return answers

    def matches(self, column: pa.Array) -> Matches | None:
        """The same for a column of JSON objects, as numbers; None: it is quicker one by one."""
        if len(column) < BATCH_MIN or not self._needs_table(len(column)):
            return None
        table = self._current()
        ends, found = table.match_json(column)
        if self._peer_of is None:
            self._peer_of = Peers(table, self._buckets, self._several)
        return Matches(ends, found, self._peer_of)

    def _needs_table(self, messages: int) -> bool:
        """Is a table worth while for so many more messages?"""
        if self._filters > EVALUATED_MAX or self._table is not None:
            return True
        self._evaluations += messages * max(self._filters, PARSING)
        return self._evaluations > EVALUATIONS_MAX

    def _add(self, peer: Peer, found: Filter) -> None:
        bucket = self._open.get(peer)
        if bucket is None or len(bucket.filters) >= BUCKET_MAX:
            bucket = self._open[peer] = _Bucket(peer, str(self._made))
            self._buckets[bucket.interface] = bucket
            self._several[peer] = self._several.get(peer, 0) + 1
            self._made += 1
        bucket.filters[found] = None
        self._places.setdefault(peer, {})[found] = bucket
        self._filters += 1
        self._note_change()
        if self._table is not None:
            self._new.setdefault(bucket, []).append(found)

    def _remove(self, peer: Peer, found: Filter) -> None:
        places = self._places[peer]
        bucket = places.pop(found)
        if not places:
            del self._places[peer]
        del bucket.filters[found]
        self._filters -= 1
        self._note_change()
        if self._table is not None:
            self._stale[bucket] = None
        if not bucket.filters:
            del self._buckets[bucket.interface]
            self._several[peer] -= 1
            if not self._several[peer]:
                del self._several[peer]
            if self._open.get(peer) is bucket:
                del self._open[peer]

    def _note_change(self) -> None:
        self._changes += 1
        self._evaluations = 0
        self._peer_of = None
        if self._filters <= EVALUATED_MAX:
            self._table = None

    def _current(self) -> ForwardingTable:
        """The table with all that was said until now."""
        if self._table is None or 2 * self._changes > self._filters:
            self._table = self._whole()
        elif self._new or self._stale:
            self._table = self._updated(self._table)
        self._new, self._stale = {}, {}
        return self._table

    def _whole(self) -> ForwardingTable:
        from palio.matching.table import ForwardingTable

        self._changes = 0
        self._compiled = set(self._buckets)
        return ForwardingTable.compile(
            {name: Predicate(tuple(b.filters)) for name, b in self._buckets.items()}
        )

    def _updated(self, table: ForwardingTable) -> ForwardingTable:
        remove = [b.interface for b in self._stale if b.interface in self._compiled]
        add = {
            b.interface: Predicate(tuple(b.filters if b in self._stale else self._new[b]))
            for b in {**self._stale, **self._new}
            if b.filters
        }
        self._compiled.difference_update(remove)
        self._compiled.update(add)
        return table.updated(add=add, remove=remove)
