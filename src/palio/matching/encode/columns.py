"""Constraints as columns: what every engine compiles, however the predicates came.

    constraint     0    1    2    3   ...        one row each, grouped by filter
    filter         0    0    1    2              ascending
    name           4    7    4    9              position in `names`
    op, domain     codes of `codes`
    key            an integer that keeps the order of its domain: the int itself, the ordered bits
                   of a double, microseconds, the rank of a string among all operands, the
                   position of a set in `sets`

    owner          filter -> interface           interfaces in the order they were given

A float that is integral and fits becomes an INT, so that equal numbers have equal keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from palio.errors import InvalidPredicate
from palio.matching.encode import codes
from palio.model.predicate import Op, Predicate
from palio.model.ranges import float_key
from palio.model.values import INT_MAX, INT_MIN, Type, Value, instant_micros

Ints: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sets:
    """The members of `in` constraints: set s has keys[start[s] : split[s]] in its domain, and
    for numbers the members that are not integral in keys[split[s] : start[s + 1]]."""

    start: Ints
    split: Ints
    keys: Ints


@dataclass(frozen=True, slots=True)
class ConstraintColumns:
    """Constraints in columns; see the head of the module."""

    filter: Ints
    name: Ints
    op: Ints
    domain: Ints
    key: Ints
    owner: Ints
    sets: Sets
    names: list[str]
    strings: list[bytes]  # all operands that are strings, sorted
    interfaces: Sequence[str]  # a list, or an Arrow array

    @property
    def filters(self) -> int:
        return len(self.owner)


def number_key(value: int | float) -> tuple[int, int]:
    """The domain and key of a number."""
    if isinstance(value, float):
        if value.is_integer() and INT_MIN <= value <= INT_MAX:
            return codes.INT, int(value)
        return codes.FLOAT, float_key(value)
    return codes.INT, value


class _Collector:
    """Gathers columns from predicates, one constraint at a time."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int, int]] = []
        self.owner: list[int] = []
        self.names: dict[str, int] = {}
        self.texts: dict[str, int] = {}
        self.text_rows: list[int] = []
        self.sets: list[tuple[int, list[Value]]] = []
        self.interfaces: dict[str, int] = {}

    def add(self, interface: str, predicate: Predicate) -> None:
        owner = self.interfaces.setdefault(interface, len(self.interfaces))
        for conjunction in predicate.filters:
            number = len(self.owner)
            self.owner.append(owner)
            for constraint in conjunction.constraints:
                name = self.names.setdefault(constraint.name, len(self.names))
                op, type, operand = constraint.op, constraint.type, constraint.value
                domain, key = self.operand(op, type, operand)
                self.rows.append((number, name, codes.OP[op], domain, key))

    def operand(self, op: Op, type: Type | None, operand: Any) -> tuple[int, int]:
        if type is None:
            return codes.EVERY, 0
        domain = codes.DOMAIN[type]
        if op is Op.ANY:
            return domain, 0
        if op is Op.IN:
            self.sets.append((domain, list(operand)))
            return (codes.INT if domain == codes.FLOAT else domain), len(self.sets) - 1
        return self.key(domain, operand)

    def key(self, domain: int, value: Any) -> tuple[int, int]:
        if domain == codes.STRING:
            self.text_rows.append(len(self.rows))
            return domain, self.texts.setdefault(value, len(self.texts))
        if isinstance(value, datetime):
            return domain, instant_micros(value)
        if domain == codes.BOOL:
            return domain, int(value)
        return number_key(value)


def from_predicates(pairs: Iterable[tuple[str, Predicate]]) -> ConstraintColumns:
    """Columns from interfaces and their predicates; an interface may come more than once."""
    collector = _Collector()
    for interface, predicate in pairs:
        collector.add(interface, predicate)
    if len(collector.names) > codes.NAMES_MAX:
        raise InvalidPredicate(
            f"{len(collector.names):,} attribute names; a table takes {codes.NAMES_MAX:,}"
        )
    for _, members in collector.sets:
        if members and isinstance(members[0], str):
            for member in members:
                collector.texts.setdefault(str(member), len(collector.texts))
    ordered = sorted(collector.texts)
    rank = {text: i for i, text in enumerate(ordered)}
    table = np.array(collector.rows, dtype=np.int64).reshape(-1, 5)
    if collector.text_rows:
        by_id = np.empty(len(rank), np.int64)
        for text, number in collector.texts.items():
            by_id[number] = rank[text]
        rows = np.array(collector.text_rows)
        table[rows, 4] = by_id[table[rows, 4]]
    return ConstraintColumns(
        filter=table[:, 0].astype(np.int32),
        name=table[:, 1].astype(np.int32),
        op=table[:, 2].astype(np.uint8),
        domain=table[:, 3].astype(np.uint8),
        key=np.ascontiguousarray(table[:, 4]),
        owner=np.array(collector.owner, dtype=np.int32),
        sets=pack_sets(collector.sets, rank),
        names=list(collector.names),
        strings=[text.encode() for text in ordered],
        interfaces=list(collector.interfaces),
    )


def pack_sets(found: list[tuple[int, list[Value]]], rank: dict[str, int]) -> Sets:
    """Sets as keys, from their values and the ranks of strings."""
    start, split, keys = [0], [], []
    for domain, members in found:
        own: list[int] = []
        fractional: list[int] = []
        for member in members:
            if isinstance(member, str):
                own.append(rank[member])
            elif isinstance(member, datetime):
                own.append(instant_micros(member))
            elif domain == codes.BOOL:
                own.append(int(member))
            else:
                where, key = number_key(member)
                (own if where == codes.INT else fractional).append(key)
        keys += [*sorted(own), *sorted(fractional)]
        split.append(len(keys) - len(fractional))
        start.append(len(keys))
    return Sets(
        np.array(start, np.int64), np.array(split, np.int64), np.array(keys, dtype=np.int64)
    )
