"""Reduced disjunctions of the predicates of any set of receivers.

A scheme stores one disjunction for each set of receivers that lies behind a link: up to a million
of them in a network of a thousand, all over the same filters. Which filter covers which is found
once; reducing the disjunction of a set is then a walk over its filters, and gives what
`palio.reduce` gives for them.

    receivers   0        1     2            mask 0b101: receivers 0 and 2
    filters     0 1      2     3 4          their disjunction: 0 1 3 4 without what others cover
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from palio.model.boxes import box, box_covers
from palio.model.cover_index import CoverIndex
from palio.model.predicate import Filter, Predicate
from palio.model.reduction import reduce
from palio.routing.schemes.memory import Amount, filter_bits
from palio.routing.trees import members

_KEPT = 1 << 16  # disjunctions that are remembered as predicates


class Disjunctions:
    """The disjunctions over the predicates of receivers, which are named by numbers of nodes."""

    def __init__(self, predicates: Mapping[int, Predicate]) -> None:
        self.parts = {node: reduce(predicates[node]) for node in sorted(predicates)}
        self.receivers = sum(1 << node for node, part in self.parts.items() if part.filters)
        self._filters: list[Filter] = []
        self._of_node: dict[int, range] = {}
        for node, part in self.parts.items():
            start = len(self._filters)
            self._filters += part.filters
            self._of_node[node] = range(start, len(self._filters))
        self._coverers = _coverers(self._filters)
        self._bits = [filter_bits(f) for f in self._filters]
        self._amounts: dict[int, Amount] = {}
        self.of = lru_cache(_KEPT)(self._predicate)

    def _predicate(self, mask: int) -> Predicate:
        """The reduced disjunction of the predicates of these receivers."""
        return Predicate(tuple(self._filters[i] for i in self._kept(mask)))

    def amount(self, mask: int) -> Amount:
        """What one such disjunction takes, without making it; of no receivers: nothing."""
        known = self._amounts.get(mask)
        if known is None:
            kept = self._kept(mask)
            known = self._amounts[mask] = Amount(
                entries=int(bool(kept)),
                predicates=int(bool(kept)),
                constraints=sum(len(self._filters[i]) for i in kept),
                predicate_bits=sum(self._bits[i] for i in kept),
            )
        return known

    def advantage(self, count: int) -> float:
        """Alpha of all receivers' predicates in this many disjunctions: their bits over the sum of
        the bits of their parts. Runs of neighbours by number, of about equal length, are combined."""
        nodes = list(members(self.receivers))
        count = min(count, len(nodes))
        masks = [
            sum(
                1 << node for node in nodes[i * len(nodes) // count : (i + 1) * len(nodes) // count]
            )
            for i in range(count)
        ]
        parts = sum(self.amount(1 << node).predicate_bits for node in nodes)
        return sum(self.amount(mask).predicate_bits for mask in masks) / parts if parts else 1.0

    def _kept(self, mask: int) -> list[int]:
        """The filters of these receivers that no other one of them covers."""
        chosen = [i for node in members(mask & self.receivers) for i in self._of_node[node]]
        alive = set(chosen)
        for i in reversed(chosen):  # as `palio.reduce` does: of two equal filters the first stays
            if not alive.isdisjoint(self._coverers[i]):
                alive.discard(i)
        return [i for i in chosen if i in alive]


def _coverers(filters: list[Filter]) -> list[tuple[int, ...]]:
    """For each filter the others that cover it."""
    boxes = [box(f) for f in filters]
    index = CoverIndex(boxes)
    return [
        tuple(
            j
            for j in index.candidates(narrow)
            if j != i and len(boxes[j]) <= len(narrow) and box_covers(boxes[j], narrow, False)
        )
        for i, narrow in enumerate(boxes)
    ]
