"""From pivots back to predicates, interface by interface: for explanations.

The predicates mean what the compiled ones meant. A set that a filter was filed under comes back as
one filter for each member, and filters that a wider one of the same interface made useless are
gone. `decoding` makes columns of a whole table, without objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.arrays import Strings
from palio.matching.encode.decoding import Decoder
from palio.matching.pivot.arrays import Pivots, PivotTable
from palio.model.predicate import Filter, Predicate


class Operands:
    """The strings of a table by rank."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings

    def __getitem__(self, rank: int) -> bytes:
        begin, end = self._strings.begin[rank], self._strings.begin[rank + 1]
        return self._strings.blob[begin:end].tobytes()


def pivot_predicates(table: PivotTable, interfaces: Iterable[int]) -> Iterator[Predicate]:
    """The predicates of the interfaces at these positions, out of pivots."""
    pivots = table.pivots
    sets = (pivots.set_at, pivots.set_split, pivots.set_keys)
    decoder = Decoder(table.names, Operands(table.strings), sets)
    alone = _by_interface(pivots.alone)
    others = _by_interface(pivots.entries[:, 0])
    for interface in interfaces:
        found = [
            _filter(pivots, decoder, _key_of(pivots.alone_at, e), -1) for e in alone(interface)
        ]
        found += [
            _filter(pivots, decoder, _key_of(pivots.entries_at, e), int(e))
            for e in others(interface)
        ]
        yield Predicate(tuple(found))


def _by_interface(owners: Any) -> Callable[[int], Any]:
    """The postings of an interface: a scan for the first, one sort for all further ones."""
    sorted_once: list[Any] = []
    asked = [0]

    def postings(interface: int) -> Any:
        asked[0] += 1
        if asked[0] == 1:
            return np.flatnonzero(owners == interface)
        if not sorted_once:
            order = np.argsort(owners, kind="stable")
            sorted_once.extend((order, owners[order]))
        order, ranked = sorted_once
        low, high = np.searchsorted(ranked, [interface, interface + 1])
        return order[low:high]

    return postings


def _key_of(at: Any, posting: Any) -> int:
    return int(np.searchsorted(at, posting, side="right")) - 1


def _filter(pivots: Pivots, decoder: Decoder, k: int, entry: int) -> Filter:
    """A filter from the key that it is filed under and its entry, if it has one."""
    d = int(np.searchsorted(pivots.keys_at, k, side="right")) - 1
    kind, domain = int(pivots.kind[d]), int(pivots.domain[d])
    inline = list(_inline(pivots, entry)) if entry >= 0 else []
    parts = [
        decoder.constraint(
            head >> codes.NAME_SHIFT,
            (head >> codes.OP_SHIFT) & 15,
            (head >> codes.DOMAIN_SHIFT) & 7,
            key,
        )
        for head, key in inline
    ]
    name = int(np.searchsorted(pivots.directory_at, d, side="right")) - 1
    if d not in pivots.always and not (inline and _is_weak(inline[0][0], kind, domain, name)):
        parts.insert(0, decoder.constraint(name, kind, domain, int(pivots.keys[k])))
    return Filter(tuple(parts))


def _is_weak(head: int, kind: int, domain: int, name: int) -> bool:
    """Filed under the presence of a name for a weak constraint on it, which comes first inline.

    The presence is that of a value of its type; of another type it is a constraint of its own.
    """
    op, own = (head >> codes.OP_SHIFT) & 15, (head >> codes.DOMAIN_SHIFT) & 7
    said = codes.NUMBER if own in (codes.INT, codes.FLOAT) else own
    return (
        kind == codes.ANY
        and op in codes.KEPT_INLINE
        and head >> codes.NAME_SHIFT == name
        and said == domain
    )


def _inline(pivots: Pivots, entry: int) -> Iterator[tuple[int, int]]:
    _, at, head, low, high = (int(x) for x in pivots.entries[entry])
    while True:
        yield head, (high << 32) | (low & 0xFFFFFFFF)
        if head & 1:
            return
        head, low, high = (int(x) for x in pivots.rest[at])
        at += 1
