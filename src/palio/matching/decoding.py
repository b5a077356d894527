"""From compiled arrays back to predicates: for explanations and for the naive engine.

The predicates mean what the compiled ones meant. An integral float comes back as an int; out of
pivots, a set that a filter was filed under comes back as one filter for each member, and filters
that a wider one of the same interface made useless are gone. `pivot_decoding` does the same for a
whole table, without objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from palio.matching import codes
from palio.matching.arrays import Pivots, Strings
from palio.matching.columns import Columns
from palio.model.predicate import Constraint, Filter, Op, Predicate
from palio.model.ranges import value_from_key
from palio.model.values import Value

_OPS = {code: op for op, code in codes.OP.items()}
_TYPES = {code: type for type, code in codes.DOMAIN.items()}


class Decoder:
    """Makes constraints of codes and keys."""

    def __init__(self, names: list[str], strings: Any, sets: tuple[Any, Any, Any]) -> None:
        self._names, self._strings = names, strings
        self._set_at, self._set_split, self._set_keys = sets

    def constraint(self, name: int, op: int, domain: int, key: int) -> Constraint:
        kind, shown = _OPS[op], self._names[name]
        if kind is Op.ABSENT or domain == codes.EVERY:
            return Constraint(shown, kind)
        if kind is Op.ANY:
            return Constraint(shown, kind, type=_TYPES[domain])
        if kind is not Op.IN:
            return Constraint(shown, kind, self.value(domain, key))
        begin, split, end = self._set_at[key], self._set_split[key], self._set_at[key + 1]
        members = [self.value(domain, int(k)) for k in self._set_keys[begin:split]]
        members += [self.value(codes.FLOAT, int(k)) for k in self._set_keys[split:end]]
        return Constraint(shown, kind, members)

    def value(self, domain: int, key: int) -> Value:
        if domain == codes.STRING:
            return bytes(self._strings[key]).decode()
        return key if domain == codes.INT else value_from_key(_TYPES[domain], key)


def column_predicates(columns: Columns) -> Iterator[Predicate]:
    """The predicates of all interfaces, out of columns."""
    sets = (columns.sets.start, columns.sets.split, columns.sets.keys)
    decoder = Decoder(columns.names, columns.strings, sets)
    order = np.argsort(columns.owner, kind="stable")
    first = np.searchsorted(columns.owner[order], np.arange(len(columns.interfaces) + 1))
    rows = np.searchsorted(columns.filter, np.arange(columns.filters + 1))
    for i in range(len(columns.interfaces)):
        filters = []
        for f in order[first[i] : first[i + 1]]:
            parts = (
                decoder.constraint(
                    *(int(c[row]) for c in (columns.name, columns.op, columns.domain, columns.key))
                )
                for row in range(rows[f], rows[f + 1])
            )
            filters.append(Filter(tuple(parts)))
        yield Predicate(tuple(filters))


class _Operands:
    """The strings of a table by rank."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings

    def __getitem__(self, rank: int) -> bytes:
        begin, end = self._strings.begin[rank], self._strings.begin[rank + 1]
        return self._strings.blob[begin:end].tobytes()


def pivot_predicates(
    pivots: Pivots, strings: Strings, names: list[str], interfaces: Iterable[int]
) -> Iterator[Predicate]:
    """The predicates of the interfaces at these positions, out of pivots."""
    sets = (pivots.set_at, pivots.set_split, pivots.set_keys)
    decoder = Decoder(names, _Operands(strings), sets)
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
